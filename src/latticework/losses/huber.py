"""Huber's loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from latticework.losses.base import CurvatureKind, FloatArray, Loss, Task, weighted_mean

# Newton on a piecewise linear equation ends after a few steps; a bisection of doubles in 1,100.
_MOST_STEPS = 1200


@dataclass(frozen=True)
class Huber(Loss):
    """Huber's loss: ``r^2 / 2`` for ``|r| <= delta``, beyond it ``delta (|r| - delta / 2)``.

    The residual is r = f - y.  The conjugate is ``u y + u^2 / 2`` for ``|u| <= delta``.

    Parameters
    ----------
    delta : float
        Residuals beyond this size count linearly; > 0, in units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(delta=1.0).value(np.zeros((2, 1)), np.array([[0.5], [3.0]]))
    array([[0.125],
           [2.5  ]])
    """

    delta: float = 1.35

    name: ClassVar[str] = "huber"
    task: ClassVar[Task] = "regression"
    curvature_kind: ClassVar[CurvatureKind] = "majoriser"
    gradient_lipschitz: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.delta < np.inf:
            raise ValueError(
                f"delta of the huber loss must be a positive number, got {self.delta!r}; use the "
                "squared_error loss for no limit, epsilon_insensitive with epsilon=0 for none."
            )

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Loss, quadratic within delta and linear beyond."""
        size = np.abs(f - y)
        within = np.minimum(size, self.delta)
        return within * (size - 0.5 * within)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Derivative: the residual, clipped to [-delta, delta]."""
        return np.clip(f - y, -self.delta, self.delta)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Weight ``min(1, delta / |r|)`` of the quadratic that touches at f and lies above.

        The second derivative is 0 on the outer pieces, where a Newton step would be infinite.
        """
        # delta / max(|r|, delta) is the same number and needs no division by zero.
        return self.delta / np.maximum(np.abs(f - y), self.delta)

    def conjugate(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """``u y + u^2 / 2`` on the domain."""
        inner, inside = self._snap(y, u)
        return np.where(inside, inner * (y + 0.5 * inner), np.inf)

    def dual_domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Interval [-delta, delta]."""
        return np.full_like(y, -self.delta), np.full_like(y, self.delta)

    def best_constant(self, y: FloatArray, c: FloatArray) -> FloatArray:
        """Root of the weighted sum of clipped residuals, by Newton kept inside a bracket."""
        c = np.broadcast_to(c, y.shape)
        tasks = [self._location(y[:, t], c[:, t]) for t in range(y.shape[1])]
        return np.array(tasks, dtype=np.float64)

    def _location(self, y: FloatArray, c: FloatArray) -> float:
        """Best constant of one task; targets and weights of shape (n,)."""
        known = c > 0
        if not known.any():
            return 0.0
        y, c = y[known], c[known]
        low, high = float(y.min()), float(y.max())
        centre = min(max(float(weighted_mean(y[:, None], c[:, None])[0]), low), high)
        last_step = np.inf
        for _ in range(_MOST_STEPS):
            residual = centre - y
            slope = float(c @ np.clip(residual, -self.delta, self.delta))
            if slope == 0.0:
                break
            low, high = (low, centre) if slope > 0 else (centre, high)
            curvature = float(c @ (np.abs(residual) < self.delta))
            proposal = centre - slope / curvature if curvature > 0 else np.inf
            # Newton may cycle between two pieces: steps that do not shrink give way to halving.
            if not (low < proposal < high and abs(proposal - centre) <= 0.5 * last_step):
                proposal = 0.5 * (low + high)
            if not low < proposal < high:
                break
            last_step, centre = abs(proposal - centre), proposal
        return centre
