"""Squared error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from latticework.losses.base import FloatArray, Loss, Task, weighted_mean


@dataclass(frozen=True)
class SquaredError(Loss):
    """Half the squared error, ``1/2 (f - y)^2``; its conjugate is ``u y + u^2 / 2``.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredError().value(np.array([[1.0]]), np.array([[3.0]]))
    array([[2.]])
    """

    name: ClassVar[str] = "squared_error"
    task: ClassVar[Task] = "regression"
    gradient_lipschitz: ClassVar[float] = 1.0

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Loss ``1/2 (f - y)^2``."""
        return 0.5 * np.square(f - y)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Derivative ``f - y``."""
        return f - y

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Second derivative, 1 everywhere."""
        return np.ones_like(f)

    def conjugate(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """``u y + u^2 / 2``, finite everywhere."""
        return u * (y + 0.5 * u)

    def dual_domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The whole line."""
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def best_constant(self, y: FloatArray, c: FloatArray) -> FloatArray:
        """Weighted mean."""
        return weighted_mean(y, c)
