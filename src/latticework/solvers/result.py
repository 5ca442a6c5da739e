"""What a solver returns: a model, and how far it can be from the best one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPTIMAL, TIME_LIMIT, NODE_LIMIT, INTERRUPTED = (
    "optimal",
    "time_limit",
    "node_limit",
    "interrupted",
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof of how close a model is to the best one of its kind.

    Parameters
    ----------
    primal : float
        Objective of the model.
    dual : float
        Value of a feasible dual point: no model has a smaller objective.
    complete : bool
        Whether the search behind ``dual`` covered the whole lattice.  When it did not, the bound
        is still valid, only looser.
    nodes_searched : int
        Nodes that the search explored.
    lattice_size : int
        Number of conjunctions that the statement covers.
    method : str
        How the bound was obtained, and of which problem it speaks.
    """

    primal: float
    dual: float
    complete: bool
    nodes_searched: int
    lattice_size: int
    method: str

    @property
    def gap(self) -> float:
        """primal - dual; the model's objective exceeds the optimum by no more."""
        return max(0.0, self.primal - self.dual)

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the objective."""
        if self.gap == 0.0:
            return 0.0
        return self.gap / abs(self.primal) if self.primal else float("inf")


@dataclass(frozen=True, slots=True)
class Solution:
    """One model over the lattice of conjunctions.

    Parameters
    ----------
    alpha : float
        Weight of the penalty.
    conjunctions : list of tuple of int
        The k rules in use, as condition indices.
    coef : ndarray of shape (k, T)
    intercept : ndarray of shape (T,)
    linear_coef : ndarray of shape (q, T)
        Coefficients of the linear terms.
    penalty : ndarray of shape (k + q,)
        D of the rules, then of the linear terms, as this solution paid it.
    omega : float
        Value of the norm: sum of D_w Q_w.
    certificate : Certificate
    status : {"optimal", "time_limit", "node_limit", "interrupted"}
    n_iter : int
        Rounds of restricted problem and search.
    dual_point : ndarray of shape (n, T)
        The feasible dual variables behind the certificate.
    """

    alpha: float
    conjunctions: list[tuple[int, ...]]
    coef: NDArray
    intercept: NDArray
    linear_coef: NDArray
    penalty: NDArray
    omega: float
    certificate: Certificate
    status: str
    n_iter: int
    dual_point: NDArray
