"""Hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from latticework.losses.base import (
    CurvatureKind,
    FloatArray,
    Loss,
    Task,
    class_weights,
    margin_domain,
)


@dataclass(frozen=True)
class Hinge(Loss):
    """Hinge loss ``max(0, 1 - y f)`` with y in {-1, +1}.

    With p = -y u in [0, 1], the conjugate is -p.

    Examples
    --------
    >>> import numpy as np
    >>> y, f = np.array([[1.0], [1.0]]), np.array([[0.5], [2.0]])
    >>> Hinge().value(y, f)
    array([[0.5],
           [0. ]])
    """

    name: ClassVar[str] = "hinge"
    task: ClassVar[Task] = "binary"
    smooth: ClassVar[bool] = False
    curvature_kind: ClassVar[CurvatureKind] = "none"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Loss ``max(0, 1 - y f)``."""
        return np.maximum(0.0, 1.0 - y * f)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Subgradient: -y below margin 1, otherwise 0."""
        return np.where(y * f < 1.0, -y, 0.0)

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Not available: the loss is piecewise linear."""
        self._no_curvature()

    def conjugate(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """``y u`` on the domain."""
        inner, inside = self._snap(y, u)
        return np.where(inside, y * inner, np.inf)

    def dual_domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Interval [-1, 0] for y = +1 and [0, 1] for y = -1."""
        return margin_domain(y, 1.0)

    def best_constant(self, y: FloatArray, c: FloatArray) -> FloatArray:
        """The heavier class, -1 or +1; 0, the middle of the solutions, when they tie."""
        positive, negative = class_weights(y, c)
        return np.sign(positive - negative)

    def pieces(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The two pieces 0 and ``1 - y f``."""
        zero = np.zeros_like(y)
        return np.stack([zero, -y]), np.stack([zero, np.ones_like(y)])
