"""Squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from latticework.losses.base import FloatArray, Loss, Task, class_weights, margin_domain


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """Squared hinge loss ``max(0, 1 - y f)^2`` with y in {-1, +1}.

    There is no factor 1/2, as in scikit-learn.  With p = -y u >= 0, the conjugate is
    ``p^2 / 4 - p``.

    Examples
    --------
    >>> import numpy as np
    >>> y, f = np.array([[1.0], [-1.0]]), np.array([[0.5], [0.5]])
    >>> SquaredHinge().value(y, f)
    array([[0.25],
           [2.25]])
    """

    name: ClassVar[str] = "squared_hinge"
    task: ClassVar[Task] = "binary"
    gradient_lipschitz: ClassVar[float] = 2.0

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Loss ``max(0, 1 - y f)^2``."""
        return np.square(np.maximum(0.0, 1.0 - y * f))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Derivative ``-2 y max(0, 1 - y f)``."""
        return -2.0 * y * np.maximum(0.0, 1.0 - y * f)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Generalised second derivative: 2 below margin 1, otherwise 0."""
        return np.where(y * f < 1.0, 2.0, 0.0)

    def conjugate(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """``p^2 / 4 - p`` at p = -y u."""
        inner, inside = self._snap(y, u)
        p = np.abs(inner)
        return np.where(inside, p * (0.25 * p - 1.0), np.inf)

    def dual_domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half-line u <= 0 for y = +1 and u >= 0 for y = -1."""
        return margin_domain(y, np.inf)

    def best_constant(self, y: FloatArray, c: FloatArray) -> FloatArray:
        """Weighted mean of y: between -1 and 1 the loss is ``(f - y)^2``."""
        positive, negative = class_weights(y, c)
        total = positive + negative
        return np.divide(positive - negative, total, out=np.zeros_like(total), where=total > 0)
