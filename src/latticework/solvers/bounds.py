"""Lower bounds on the objective of every model, from dual points and what searches say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latticework.solvers.problem import LatticeProblem


@dataclass(frozen=True)
class Proof:
    """What a search said of a dual point: ‖g_w‖ <= reach D_w for all conjunctions w.

    Parameters
    ----------
    dual_point : ndarray of shape (n, T)
        Balanced and in the domain of the loss's conjugate.
    reach : float
    complete : bool
        Whether the search covered the whole lattice.
    """

    dual_point: NDArray[np.float64]
    reach: float
    complete: bool


@dataclass
class Bound:
    """The best lower bound so far, and the feasible dual point behind it.

    Parameters
    ----------
    value : float
    dual_point : ndarray of shape (n, T)
    complete : bool
        Whether the search behind it covered the whole lattice.
    """

    value: float
    dual_point: NDArray[np.float64]
    complete: bool

    @classmethod
    def trivial(cls, problem: LatticeProblem) -> Bound:
        """Zero is a dual point of every problem: no model beats the smallest losses."""
        dual_point = np.zeros_like(problem.targets)
        return cls(problem.dual_value(dual_point), dual_point, False)

    def improve(self, problem: LatticeProblem, proof: Proof, ratio: float, alpha: float) -> None:
        """Scale a proof's dual point until it is feasible; keep it when its value is the best.

        Parameters
        ----------
        problem : LatticeProblem
        proof : Proof
        ratio : float
            Largest ‖g_w‖ / D_w over linear terms and rules with a discount, of which the search
            knows nothing.
        alpha : float
        """
        reach = max(proof.reach, ratio)
        shrink = min(1.0, alpha / reach) if reach > 0.0 else 1.0
        value = problem.dual_value(shrink * proof.dual_point)
        if (value, proof.complete) > (self.value, self.complete):
            self.value = value
            self.dual_point = shrink * proof.dual_point
            self.complete = proof.complete
