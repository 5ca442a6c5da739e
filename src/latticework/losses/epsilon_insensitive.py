"""Epsilon-insensitive loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from latticework.losses.base import EDGE_SLACK, CurvatureKind, FloatArray, Loss, Task


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """Epsilon-insensitive loss ``max(0, |f - y| - epsilon)``; the absolute error at epsilon = 0.

    The conjugate is ``u y + epsilon |u|`` for ``|u| <= 1``.

    Parameters
    ----------
    epsilon : float
        Errors up to this size cost nothing; >= 0, in units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> EpsilonInsensitive(epsilon=0.5).value(np.zeros((2, 1)), np.array([[0.25], [2.0]]))
    array([[0. ],
           [1.5]])
    """

    epsilon: float = 0.1

    name: ClassVar[str] = "epsilon_insensitive"
    task: ClassVar[Task] = "regression"
    smooth: ClassVar[bool] = False
    curvature_kind: ClassVar[CurvatureKind] = "none"

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon < np.inf:
            raise ValueError(
                f"epsilon of the epsilon_insensitive loss must be a number >= 0, got "
                f"{self.epsilon!r}; 0 gives the absolute error."
            )

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Loss ``max(0, |f - y| - epsilon)``."""
        return np.maximum(0.0, np.abs(f - y) - self.epsilon)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Subgradient: the sign of the error where it exceeds epsilon, otherwise 0."""
        residual = f - y
        return np.where(np.abs(residual) > self.epsilon, np.sign(residual), 0.0)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Not available: the loss is piecewise linear."""
        self._no_curvature()

    def conjugate(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """``u y + epsilon |u|`` on the domain."""
        inner, inside = self._snap(y, u)
        return np.where(inside, inner * y + self.epsilon * np.abs(inner), np.inf)

    def dual_domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Interval [-1, 1]."""
        return np.full_like(y, -1.0), np.full_like(y, 1.0)

    def best_constant(self, y: FloatArray, c: FloatArray) -> FloatArray:
        """Weighted median of all ``y - epsilon`` and ``y + epsilon``, where the slope turns."""
        c = np.broadcast_to(c, y.shape)
        corners = np.concatenate([y - self.epsilon, y + self.epsilon])
        weights = np.concatenate([c, c])
        medians = [weighted_median(corners[:, t], weights[:, t]) for t in range(y.shape[1])]
        return np.array(medians, dtype=np.float64)

    def pieces(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The three pieces 0, ``f - y - epsilon`` and ``y - f - epsilon``."""
        zero, one = np.zeros_like(y), np.ones_like(y)
        return np.stack([zero, one, -one]), np.stack([zero, -y - self.epsilon, y - self.epsilon])


def weighted_median(points: FloatArray, weights: FloatArray) -> float:
    """Point with at most half of the weight on either side; the middle of two when they tie.

    Examples
    --------
    >>> weighted_median(np.array([1.0, 5.0, 2.0]), np.array([1.0, 3.0, 1.0]))
    5.0
    >>> weighted_median(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    1.5
    """
    points, weights = points[weights > 0], weights[weights > 0]
    if points.size == 0:
        return 0.0
    order = np.argsort(points, kind="stable")
    below = np.cumsum(weights[order])
    half, slack = 0.5 * below[-1], EDGE_SLACK * below[-1]
    first = np.searchsorted(below, half - slack, side="left")
    last = np.searchsorted(below, half + slack, side="right")
    return float(0.5 * (points[order[first]] + points[order[last]]))
