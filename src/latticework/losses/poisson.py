"""Poisson loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlog1py, xlogy

from latticework.losses.base import EPS, FloatArray, Loss, Task, weighted_mean

# exp(690) is 5e299: beyond it means stay there, so that sums over rows remain finite.
_LARGEST_LOG_MEAN = 690.0


@dataclass(frozen=True)
class Poisson(Loss):
    """Half the Poisson deviance with log link, ``exp(f) - y f + y log y - y``, for y >= 0.

    The terms without f make the loss 0 at ``f = log y`` and never negative.  With v = u + y >= 0,
    the conjugate is ``v log v - y log y - u``.  ``exp(f)`` stays at exp(690) for f beyond 690.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[0.0], [1.0]])
    >>> Poisson().value(y, np.zeros((2, 1)))
    array([[1.],
           [0.]])
    """

    name: ClassVar[str] = "poisson"
    task: ClassVar[Task] = "regression"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Loss ``exp(f) - y f + y log y - y``."""
        positive = y > 0
        distance = f - np.log(np.where(positive, y, 1.0))
        near = y * (np.expm1(np.clip(distance, -1.0, 1.0)) - distance)
        far = self.inverse_link(f) - y * (1.0 + distance)
        # Near the minimum the far formula would subtract numbers of the size of y.
        close = positive & (np.abs(distance) <= 1.0)
        return np.maximum(0.0, np.where(close, near, far))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Derivative ``exp(f) - y``."""
        return self.inverse_link(f) - y

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Second derivative ``exp(f)``."""
        return self.inverse_link(f)

    def conjugate(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """``v log v - y log y - u`` at v = u + y."""
        inner, inside = self._snap(y, u)
        v = y + inner
        small = (y > 0) & (np.abs(inner) <= y)
        ratio = np.divide(inner, y, out=np.zeros_like(v), where=small)
        # v log v - y log y as v log(v / y) + u log y: nothing of the size of y log y cancels.
        near = xlog1py(v, ratio) + xlogy(inner, np.where(small, y, 1.0))
        far = xlogy(v, v) - xlogy(y, y)
        return np.where(inside, np.where(small, near, far) - inner, np.inf)

    def dual_domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half-line u >= -y."""
        return -y, np.full_like(y, np.inf)

    def best_constant(self, y: FloatArray, c: FloatArray) -> FloatArray:
        """Log of the weighted mean; log(2e-16) = -36 when the mean is 0."""
        mean = weighted_mean(y, c)
        no_weight = np.broadcast_to(c, y.shape).sum(axis=0) <= 0
        return np.where(no_weight, 0.0, np.log(np.where(mean > 0, mean, EPS)))

    def inverse_link(self, f: FloatArray) -> FloatArray:
        """Mean ``exp(f)``."""
        return np.exp(np.minimum(f, _LARGEST_LOG_MEAN))

    def check_targets(self, y_raw: FloatArray) -> None:
        """Raise a ValueError when a target is negative or infinite."""
        super().check_targets(y_raw)
        negative = np.asarray(y_raw) < 0
        if negative.any():
            smallest = float(np.nanmin(y_raw))
            raise ValueError(
                f"The poisson loss needs targets >= 0, but {int(negative.sum())} are negative "
                f"(the smallest is {smallest:g}); use loss='squared_error' or 'huber' for targets "
                "of both signs."
            )
