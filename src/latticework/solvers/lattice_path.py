"""Certified regularisation paths over all conjunctions (rho = 1).

Each alpha alternates two problems.  The *restricted* problem finds the best coefficients of the
rules at hand.  The *search* asks, at the dual point that this gives, whether any conjunction of
the lattice has ‖g_w‖ > alpha D_w; those that do join the rules at hand.  When there are none the
dual point is feasible, up to a factor, and its value is a lower bound on every model's objective.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from latticework.search.branch_and_bound import SearchResult, find_conjunctions, thread_pool
from latticework.solvers import result as outcome
from latticework.solvers.piecewise_linear import PolyhedralDescent
from latticework.solvers.prox_newton import (
    Model,
    ProximalNewton,
    Restricted,
    penalty_value,
    refresh_predictions,
)
from latticework.solvers.result import Certificate, Solution
from latticework.solvers.working_set import WorkingSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from latticework.solvers.problem import LatticeProblem

# Share of the wanted gap that the restricted problem may leave open.
_RESTRICTED_SHARE = 0.3
_MAX_ROUNDS = 200
_N_BEST = 64
METHOD = "branch and bound over all conjunctions, rho = 1"


@dataclass(frozen=True)
class Limits:
    """When to stop early.

    Parameters
    ----------
    max_nodes : int or None
        Nodes of the search, over the whole path.
    deadline : float or None
        A ``time.perf_counter()``.
    """

    max_nodes: int | None = None
    deadline: float | None = None


class LatticePath:
    """Solves the problem for one alpha after another, each from the last solution.

    Parameters
    ----------
    problem : LatticeProblem
    tol : float
        Relative duality gap to reach.
    limits : Limits
    n_jobs : int or None
        Threads of the search; they do not change the result.
    """

    def __init__(
        self,
        problem: LatticeProblem,
        tol: float = 1e-3,
        limits: Limits | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.problem = problem
        self.tol = tol
        self.limits = limits or Limits()
        self.pool = thread_pool(n_jobs)
        self.working_set = WorkingSet(problem)
        self.restricted = (
            ProximalNewton(self.working_set)
            if problem.loss.smooth
            else PolyhedralDescent(self.working_set)
        )
        intercept = problem.loss.best_constant(problem.targets, problem.weights)
        self.model = Model(
            np.zeros((self.working_set.size, problem.n_latent)),
            intercept,
            np.repeat(intercept[:, None], problem.n_rows, axis=1),
        )
        self.n_nodes = 0
        self.n_searches = 0
        # Factor of each column's penalty: below 1 only in the stages of a concave penalty.
        self.discount = np.ones(self.working_set.size)

    # ---- the pieces of one round --------------------------------------------------------------

    @property
    def penalty(self) -> NDArray[np.float64]:
        """D of every column of the working set, discounts included."""
        missing = self.working_set.size - len(self.discount)
        self.discount = np.append(self.discount, np.ones(missing))
        return self.working_set.scale * self.discount

    def search(
        self, dual_point: NDArray, threshold: float, record: float, n_best: int
    ) -> SearchResult:
        """Search the lattice at a dual point, within what is left of the limits."""
        left = None if self.limits.max_nodes is None else self.limits.max_nodes - self.n_nodes
        found = find_conjunctions(
            self.problem.lattice,
            np.ascontiguousarray(self.problem.residual(dual_point)),
            threshold=threshold,
            record=record,
            n_best=n_best,
            max_nodes=left,
            deadline=self.limits.deadline,
            pool=self.pool,
        )
        self.n_nodes += found.n_nodes
        self.n_searches += 1
        return found

    def alpha_max(self) -> float:
        """Smallest alpha at which no rule is used: the dual norm of the constant model's residuals."""
        restricted = self._null_dual()
        found = self.search(restricted, 0.0, 0.0, _N_BEST)
        self.working_set.add(found.conjunctions)
        residual = np.ascontiguousarray((-self.problem.weights * restricted).T)
        dense = 0.0
        if self.problem.n_dense:
            gains = self.working_set.correlate(residual, np.arange(self.problem.n_dense))
            mixing = self.problem.mixing
            gains = gains if mixing is None else gains @ mixing
            dense = float((np.linalg.norm(gains, axis=1) / self.problem.dense_scale).max())
        return max(found.bound, dense)

    def _null_dual(self) -> NDArray[np.float64]:
        problem = self.problem
        f = np.repeat(
            problem.loss.best_constant(problem.targets, problem.weights)[None], problem.n_rows, 0
        )
        u = problem.loss.gradient(problem.targets, f)
        return problem.loss.balance(u, problem.targets, problem.weights)

    def _slack(self, point: Restricted, omega_term: float, target: float) -> float:
        """Largest delta, or nearly, such that u / (1 + delta) still has dual value ``target``.

        A search need not prove more than ‖g_w‖ <= (1 + delta) alpha D_w.
        """
        spare = point.primal - target
        delta = min(1.0, spare / max(omega_term, spare))
        while delta > 1e-12:
            if self.problem.dual_value(point.dual_point / (1.0 + delta)) >= target:
                return delta
            delta *= 0.8
        return 0.0

    # ---- one alpha ----------------------------------------------------------------------------

    def solve(
        self,
        alpha: float,
        tol: float | None = None,
        next_alpha: float | None = None,
    ) -> Solution:
        """The certified solution at ``alpha``.

        Parameters
        ----------
        alpha : float
        tol : float, optional
            Relative gap; the path's by default.
        next_alpha : float, optional
            Rules that are about to be wanted at this alpha are kept at hand.
        """
        tol = self.tol if tol is None else tol
        record = alpha * 0.95 if next_alpha is None else max(next_alpha, 0.7 * alpha)
        best_dual = -np.inf
        best_point = np.zeros_like(self.problem.targets)
        status = outcome.OPTIMAL
        complete = True
        inner = _RESTRICTED_SHARE * tol
        self.model.pad(self.working_set.size)
        refresh_predictions(self.model, self.working_set)
        for n_rounds in range(1, _MAX_ROUNDS + 1):
            penalty = self.penalty
            self.model.pad(len(penalty))
            point = self.restricted.solve(self.model, alpha, penalty, inner)
            omega_term = alpha * penalty_value(self.model, penalty)
            target = point.primal - 0.98 * tol * abs(point.primal)
            slack = self._slack(point, omega_term, target)
            threshold = max(alpha * (1.0 + slack), point.ratio)
            n_best = _N_BEST + 2 * len(self.model.support)
            found = self.search(point.dual_point, threshold, record, n_best)
            ratio = max(found.bound, point.ratio)
            shrink = min(1.0, alpha / ratio) if ratio > 0.0 else 1.0
            dual = self.problem.dual_value(shrink * point.dual_point)
            if dual > best_dual:
                best_dual, best_point, complete = dual, shrink * point.dual_point, found.complete
            added = self.working_set.add(found.conjunctions)
            if point.primal - best_dual <= tol * abs(point.primal):
                break
            status = self._limit_reached()
            if status != outcome.OPTIMAL:
                break
            if not added:
                if inner < 1e-15:
                    break
                inner *= 0.1
        self.model.pad(self.working_set.size)
        return self._solution(
            alpha, point.primal, best_dual, best_point, complete, status, n_rounds
        )

    def _limit_reached(self) -> str:
        limits = self.limits
        if limits.max_nodes is not None and self.n_nodes >= limits.max_nodes:
            return outcome.NODE_LIMIT
        if limits.deadline is not None and time.perf_counter() >= limits.deadline:
            return outcome.TIME_LIMIT
        return outcome.OPTIMAL

    def _solution(
        self,
        alpha: float,
        primal: float,
        dual: float,
        dual_point: NDArray,
        complete: bool,
        status: str,
        n_rounds: int,
    ) -> Solution:
        problem, model = self.problem, self.model
        mixing = problem.mixing
        coef = model.latent if mixing is None else model.latent @ mixing.T
        q = problem.n_dense
        used = np.flatnonzero(np.any(model.latent[q:] != 0.0, axis=1))
        return Solution(
            alpha=alpha,
            conjunctions=[self.working_set.conjunctions[w] for w in used],
            coef=coef[q + used],
            intercept=model.intercept.copy(),
            linear_coef=coef[:q].copy(),
            omega=penalty_value(model, self.working_set.scale[: len(model.latent)]),
            certificate=Certificate(
                primal, dual, complete, self.n_nodes, problem.lattice.size, METHOD
            ),
            status=status,
            n_iter=n_rounds,
            dual_point=dual_point,
        )

    def path(self, alphas: Sequence[float]) -> Iterator[Solution]:
        """Solutions for decreasing alphas; stops after the first that a limit cut short."""
        for k, alpha in enumerate(alphas):
            following = alphas[k + 1] if k + 1 < len(alphas) else None
            solution = self.solve(float(alpha), next_alpha=following)
            yield solution
            if solution.status != outcome.OPTIMAL:
                return
