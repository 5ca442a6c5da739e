"""Second-order models of a smooth loss on the rules at hand, with the intercepts eliminated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latticework._kernels import coordinate_descent as kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_SWEEPS = 1000
# Blocks without curvature, as a rule that no row of weight satisfies, get this share of the
# largest one, so that a step stays finite.
_LEAST_CURVATURE = 1e-12
_TINY = 1e-300


@dataclass(frozen=True)
class Quadratic:
    """slope' dF + 1/2 dF' H dF over changes dF (k, T) of the coefficients of k columns.

    The best change of the intercepts for given dF is linear in dF and has been put in.

    Parameters
    ----------
    gram : ndarray of shape (M, k, k)
    pairs : ndarray of shape (P, 3)
        Pairs of tasks that H couples: number of the matrix, first and second task.
    gradient : ndarray of shape (k, T)
        The slope.
    intercept : ndarray of shape (T,)
        Best change of the intercepts where dF is zero.
    shift : ndarray of shape (T, T, k)
        What dF takes from it: sum over t' and columns of shift[t, t'] * dF[:, t'].
    """

    gram: NDArray[np.float64]
    pairs: NDArray[np.int64]
    gradient: NDArray[np.float64]
    intercept: NDArray[np.float64]
    shift: NDArray[np.float64]

    def intercept_change(self, change: NDArray[np.float64]) -> NDArray[np.float64]:
        """Best change of the intercepts (T,) for a change of the coefficients (k, T)."""
        return self.intercept - np.einsum("tsk,ks->t", self.shift, change)

    def block_curvature(self, mixing: NDArray[np.float64]) -> NDArray[np.float64]:
        """Diagonal matrices (k, S) above the Hessians of single columns, in latent coordinates.

        The entries are sums of the sizes of the Hessian's rows, which bound its eigenvalues.
        """
        k, n_tasks = self.gradient.shape
        own = np.zeros((k, n_tasks, n_tasks))
        for matrix, s, t in self.pairs:
            own[:, s, t] = self.gram[matrix].diagonal()
        latent = np.abs(mixing.T @ own @ mixing).sum(axis=2)
        largest = latent.max(initial=0.0)
        return np.maximum(latent, max(_LEAST_CURVATURE * largest, _TINY))

    def descend(
        self,
        coefficients: NDArray[np.float64],
        mixing: NDArray[np.float64],
        price: NDArray[np.float64],
        sign: NDArray[np.int8],
        tolerance: float,
    ) -> NDArray[np.float64]:
        """Latent coefficients (k, S) that minimise the model plus sum_a price_a ‖v_a‖."""
        new = coefficients.copy()
        kernels.descend(
            np.ascontiguousarray(self.gram), self.pairs, np.array(self.gradient, order="C"),
            mixing, self.block_curvature(mixing), new, price, sign, tolerance, _MAX_SWEEPS,
        )  # fmt: skip
        return new


def separable(gram: NDArray[np.float64], slope: NDArray[np.float64]) -> Quadratic:
    """The model of a loss that is a sum over tasks.

    Parameters
    ----------
    gram : ndarray of shape (T, 1 + k, 1 + k), or (1, 1 + k, 1 + k) where all tasks share one
        Hessians in (intercept, coefficients).
    slope : ndarray of shape (1 + k, T)
    """
    n_tasks, k = slope.shape[1], len(slope) - 1
    corner = np.maximum(gram[:, 0, 0], _TINY)
    shift = gram[:, 0, 1:] / corner[:, None]
    centred = gram[:, 1:, 1:] - shift[:, :, None] * gram[:, 0, None, 1:]
    task = np.arange(n_tasks)
    matrix = np.minimum(task, len(gram) - 1)
    full = np.zeros((n_tasks, n_tasks, k))
    full[task, task] = shift
    gradient = slope[1:] - (shift * slope[0][:, None]).T
    return Quadratic(centred, np.stack([matrix, task, task], 1), gradient, -slope[0] / corner, full)


def joint(gram: NDArray[np.float64], slope: NDArray[np.float64]) -> Quadratic:
    """The model of a loss that couples the tasks of a row.

    Parameters
    ----------
    gram : ndarray of shape (T (T + 1) / 2, 1 + k, 1 + k)
        Hessian blocks of the pairs ``np.triu_indices(T)`` of tasks, symmetric matrices.
    slope : ndarray of shape (1 + k, T)
    """
    n_tasks = slope.shape[1]
    number = np.zeros((n_tasks, n_tasks), np.int64)
    rows, columns = np.triu_indices(n_tasks)
    number[rows, columns] = number[columns, rows] = np.arange(len(rows))
    corner = gram[number, 0, 0]
    cross = gram[number, 0, 1:]  # (T, T, k): intercept of t, coefficients of t'
    shift = np.linalg.solve(corner, cross.reshape(n_tasks, -1)).reshape(cross.shape)
    intercept = -np.linalg.solve(corner, slope[0])
    gradient = slope[1:] + np.einsum("rsk,r->ks", cross, intercept)
    # Block (s, t) of the Hessian, its rows being the columns of t.
    centred = gram[number, 1:, 1:] - np.einsum("rsb,rta->stab", cross, shift, optimize=True)
    k = len(gradient)
    first, second = np.divmod(np.arange(n_tasks**2), n_tasks)
    pairs = np.stack([np.arange(n_tasks**2), first, second], 1)
    return Quadratic(centred.reshape(-1, k, k), pairs, gradient, intercept, shift)
