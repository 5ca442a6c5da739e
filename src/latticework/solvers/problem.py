"""The problem at rho = 1: a weighted mean loss plus a weighted l1/l2 norm over the lattice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latticework.blocks.lattices.conjunctions import ConjunctionLattice
    from latticework.losses.base import Loss


@dataclass(frozen=True)
class LatticeProblem:
    """min over f, b of  sum_it c_it loss(y_it, F_it) + alpha * sum_w D_w Q_w(f).

    F = sum_w phi_w f_w' + b', Q_w(f)^2 = f_w' B^-1 f_w.  With B = L L' and f_w = L v_w, Q_w is
    ‖v_w‖, and ‖g_w‖_B = ‖L' g_w‖: the solver works with v, the *latent* coefficients.

    Parameters
    ----------
    loss : Loss
    targets : ndarray of shape (n, T)
        Encoded as the loss wants them; any valid value where the label is unknown.
    weights : ndarray of shape (n, T)
        c >= 0; zero where the label is unknown.
    lattice : ConjunctionLattice
    mixing : ndarray of shape (T, S) or None
        L; None for the identity.
    dense : ndarray of shape (q, n) or None
        Numeric columns that enter linearly, each with its own penalty.
    dense_scale : ndarray of shape (q,) or None
        D of the linear terms.
    dense_signs : ndarray of shape (q,) or None
    """

    loss: Loss
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]
    lattice: ConjunctionLattice
    mixing: NDArray[np.float64] | None = None
    dense: NDArray[np.float64] | None = None
    dense_scale: NDArray[np.float64] | None = None
    dense_signs: NDArray[np.int8] | None = None

    @property
    def n_rows(self) -> int:
        return int(self.targets.shape[0])

    @property
    def n_tasks(self) -> int:
        return int(self.targets.shape[1])

    @property
    def n_latent(self) -> int:
        return self.n_tasks if self.mixing is None else int(self.mixing.shape[1])

    @property
    def n_dense(self) -> int:
        return 0 if self.dense is None else int(self.dense.shape[0])

    def total_loss(self, predictions: NDArray[np.float64]) -> float:
        """Sum of c * loss over rows and tasks, for predictions (n, T)."""
        return self._weighted(self.loss.value(self.targets, predictions))

    def dual_value(self, dual: NDArray[np.float64]) -> float:
        """- sum c * loss*(y, u) at dual variables u (n, T)."""
        return -self._weighted(self.loss.conjugate(self.targets, dual))

    def _weighted(self, values: NDArray[np.float64]) -> float:
        weights = self.weights[:, : values.shape[1]]
        known = weights > 0.0
        return float(np.sum(weights[known] * values[known]))

    def residual(self, dual: NDArray[np.float64]) -> NDArray[np.float64]:
        """-c * u, in latent coordinates (n, S): what the search correlates with."""
        residual = -self.weights * dual
        return residual if self.mixing is None else residual @ self.mixing
