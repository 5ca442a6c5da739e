"""A piecewise linear loss as a line plus hinges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latticework.solvers.problem import LatticeProblem


@dataclass(frozen=True)
class Hinges:
    """A weighted piecewise linear loss as a line plus hinges.

        sum_it c_it loss(y_it, F_it) = constant + sum_it slope_it F_it
                                       + sum_h mass_h max(0, F_{row_h, task_h} - knot_h)

    The dual variables are one d_h in [0, mass_h] per hinge: -c u = -slope - sum of d.

    Parameters
    ----------
    slope : ndarray of shape (n, T)
    row, task : ndarray of shape (m,), int
    knot, mass : ndarray of shape (m,)
    ends_fall : ndarray of shape (m,), bool
        Whether the loss falls before the knot.  Together with their part of the line such hinges
        are mass * max(0, knot - F), at least zero, and so is that of their means; with other
        hinges mixed in, the line would be left without a floor.
    """

    slope: NDArray[np.float64]
    row: NDArray[np.int64]
    task: NDArray[np.int64]
    knot: NDArray[np.float64]
    mass: NDArray[np.float64]
    ends_fall: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: LatticeProblem) -> Hinges:
        """The hinges of a problem's loss, unknown labels left out."""
        slopes, offsets = problem.loss.pieces(problem.targets)
        order = np.argsort(slopes, axis=0, kind="stable")
        slopes = np.take_along_axis(slopes, order, axis=0)
        offsets = np.take_along_axis(offsets, order, axis=0)
        rise = np.diff(slopes, axis=0)
        knots = np.divide(-np.diff(offsets, axis=0), rise, out=np.zeros_like(rise), where=rise > 0)
        masses = problem.weights * rise
        _, row, task = used = np.nonzero(masses > 0.0)
        falling = slopes[:-1][used] < 0.0
        return cls(problem.weights * slopes[0], row, task, knots[used], masses[used], falling)

    def __len__(self) -> int:
        return len(self.knot)

    def excess(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions (T, n) minus knots, (m,)."""
        return predictions[self.task, self.row] - self.knot

    def spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of one value per hinge, (m,), over the hinges of each cell: (T, n)."""
        n_rows, n_tasks = self.slope.shape
        cell = self.task * n_rows + self.row
        sums = np.bincount(cell, values, n_rows * n_tasks).astype(np.float64, copy=False)
        return sums.reshape(n_tasks, n_rows)
