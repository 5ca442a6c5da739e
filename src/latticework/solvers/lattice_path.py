"""Certified regularisation paths over all conjunctions (rho = 1).

Each alpha alternates two problems.  The *restricted* problem finds the best coefficients of the
rules at hand.  The *search* asks, at the dual point that this gives, whether any conjunction of
the lattice has ‖g_w‖ > alpha D_w; those that do join the rules at hand.  When there are none the
dual point is feasible, up to a factor, and its value is a lower bound on every model's objective.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latticework.search.branch_and_bound import (
    ROUNDING,
    SearchResult,
    find_conjunctions,
    thread_pool,
    try_neighbours,
)
from latticework.search.limits import Limits
from latticework.solvers import result as outcome
from latticework.solvers.bounds import Bound, Proof
from latticework.solvers.piecewise_linear import PolyhedralDescent
from latticework.solvers.prox_newton import (
    Model,
    ProximalNewton,
    Restricted,
    largest_ratio,
    penalty_value,
    refresh_predictions,
)
from latticework.solvers.result import Certificate, Solution
from latticework.solvers.working_set import WorkingSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from latticework.solvers.problem import LatticeProblem

# Share of the wanted gap that the restricted problem may leave open.
_RESTRICTED_SHARE = 0.05
_MAX_ROUNDS = 500
_N_BEST = 64
# A proof that takes many nodes is tried only when there is nothing left to find around the rules
# that are known; looking there may take this share of the nodes.
_SCOUT_SHARE = 0.1
_SCOUT_FROM = 3000
# Rules are near when their ratio is at least this share of alpha.
_NEAR = 0.9
# Steps towards a single alpha: each shrinks alpha by this much and is solved loosely.
_APPROACH = 0.4
_APPROACH_TOL = 0.05
# Stages of a concave penalty at each alpha, and what a refit without penalty keeps of it, so that
# it exists even where the classes can be separated.
_STAGES = 2
_LEAST_PENALTY = 1e-2
# A rule never gets cheaper than this share of its penalty in a stage: a dual point is feasible for
# a free rule only if it is exactly orthogonal to it.
_LEAST_DISCOUNT = 0.02
# Relative accuracy of the largest useful alpha of a piecewise linear loss.
_QUOTIENT_TOL = 1e-6
_MAX_QUOTIENTS = 60
# Coefficients that add less than this share of the tolerance to the objective are set to zero.
_NEGLIGIBLE = 1e-4

METHOD = "branch and bound over all conjunctions"
STAGE_METHOD = METHOD + "; of the last weighted stage of the concave penalty"


class LatticePath:
    """Solves the problem for one alpha after another, each from the last solution.

    Parameters
    ----------
    problem : LatticeProblem
    tol : float
        Relative duality gap to reach.
    concavity : float
        kappa >= 0.  With kappa > 0 every alpha is solved in stages: a rule in use pays
        max(0, 1 - kappa h ‖v_w‖ / (alpha D_w)) of its penalty, h the mean curvature of the loss
        at the constant model.  This is the local linear approximation of the minimax concave
        penalty; the certificate is that of the last stage.
    limits : Limits
    n_jobs : int or None
        Threads of the search; they do not change the result.
    """

    def __init__(
        self,
        problem: LatticeProblem,
        tol: float = 1e-3,
        concavity: float = 0.0,
        limits: Limits | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.problem = problem
        self.tol = tol
        self.concavity = concavity
        self.limits = limits or Limits()
        self.pool = thread_pool(n_jobs)
        self.working_set = WorkingSet(problem)
        self.restricted = (
            ProximalNewton(self.working_set, self.limits)
            if problem.loss.smooth
            else PolyhedralDescent(self.working_set, self.limits)
        )
        self.model = self.constant_model()
        self.n_nodes = 0
        # Factor of each column's penalty: below 1 only in the stages of a concave penalty.
        self.discount = np.ones(self.working_set.size)
        self._proof_cost = 0
        self._proof: Proof | None = None
        self._steepness = _mean_curvature(problem, self.model) if concavity else 1.0

    def constant_model(self) -> Model:
        """The best model without rules."""
        problem = self.problem
        intercept = problem.loss.best_constant(problem.targets, problem.weights)
        constant = np.repeat(intercept[:, None], problem.n_rows, axis=1)
        return Model(np.zeros((self.working_set.size, problem.n_latent)), intercept, constant)

    # ---- the pieces of one round --------------------------------------------------------------

    @property
    def penalty(self) -> NDArray[np.float64]:
        """D of every column of the working set, discounts included."""
        missing = self.working_set.size - len(self.discount)
        self.discount = np.append(self.discount, np.ones(missing))
        return self.working_set.scale * self.discount

    def search(
        self,
        dual_point: NDArray,
        threshold: float,
        record: float,
        n_best: int,
    ) -> SearchResult:
        """Search the lattice at a dual point, within what is left of the limits."""
        found = find_conjunctions(
            self.problem.lattice,
            np.ascontiguousarray(self.problem.residual(dual_point)),
            threshold=threshold,
            record=record,
            n_best=n_best,
            max_nodes=self.limits.nodes_left(self.n_nodes),
            limits=self.limits,
            pool=self.pool,
        )
        self.n_nodes += found.n_nodes
        return found

    def scout(self, dual_point: NDArray, alpha: float, record: float, n_best: int) -> SearchResult:
        """Look for missing conjunctions around those that are in use, or nearly."""
        residual = np.ascontiguousarray(self.problem.residual(dual_point))
        rules = np.arange(self.problem.n_dense, self.working_set.size)
        gains = self.working_set.correlate(np.ascontiguousarray(residual.T), rules)
        sign = self.working_set.sign[rules]
        ratios = largest_ratio(gains, self.working_set.scale[rules], sign)
        near = [a for a in np.argsort(-ratios, kind="stable") if ratios[a] > _NEAR * alpha]
        most = int(_SCOUT_SHARE * self._proof_cost)
        left = self.limits.nodes_left(self.n_nodes)
        found = try_neighbours(
            self.problem.lattice,
            residual,
            [self.working_set.conjunctions[a] for a in near],
            record=record,
            n_best=n_best,
            most=most if left is None else min(most, left),
            limits=self.limits,
            pool=self.pool,
        )
        self.n_nodes += found.n_nodes
        return found

    def enough_alpha(self) -> float:
        """An alpha at which no rule is used: the dual norm at a dual point of the constant model.

        It is the smallest one where that dual point is unique, as it is for smooth losses.
        """
        problem = self.problem
        dual_point = self.restricted.dual_of(self.constant_model())
        found = self.search(dual_point, 0.0, 0.0, _N_BEST)
        self.working_set.add(found.conjunctions)
        everything = np.arange(problem.n_dense)
        residual = np.ascontiguousarray(problem.residual(dual_point).T)
        gains = self.working_set.correlate(residual, everything)
        signs, scale = self.working_set.sign[everything], self.working_set.scale[everything]
        dense = largest_ratio(gains, scale, signs).max(initial=0.0)
        self._proof = Proof(dual_point, found.bound, found.complete)
        return max(found.bound, float(dense))

    def alpha_max(self) -> float:
        """Smallest alpha at which no rule is used."""
        enough = self.enough_alpha()
        if self.problem.loss.smooth or enough == 0.0:
            return enough
        try:
            return self._smallest_enough(enough)
        finally:
            self.model = self.constant_model()

    def _smallest_enough(self, enough: float) -> float:
        """The largest of (loss of the constant - loss of f) / Omega(f) over all models f.

        The solution at alpha below that value has a larger quotient than alpha: with it as the
        next alpha the quotients rise to the largest one (Dinkelbach's method).
        """
        constant = self.problem.total_loss(self.model.predictions.T)
        tol = min(self.tol, _QUOTIENT_TOL)
        self.discount[:] = 1.0
        best, alpha = 0.0, 0.5 * enough
        for _ in range(_MAX_QUOTIENTS):
            status, _ = self._solve_stage(alpha, tol, 0.95 * alpha, Bound.trivial(self.problem))
            if status != outcome.OPTIMAL:
                return enough
            self.model.pad(self.working_set.size)  # the last search may have added columns
            omega = penalty_value(self.model, self.penalty)
            gain = constant - self.problem.total_loss(self.model.predictions.T)
            quotient = gain / omega if omega > 0.0 else 0.0
            if best == 0.0 and quotient < alpha:  # still no rule worth its penalty
                enough, alpha = alpha, 0.5 * alpha
                continue
            if quotient <= best * (1.0 + _QUOTIENT_TOL):
                break
            alpha = best = quotient
        return min(enough, alpha * (1.0 + _QUOTIENT_TOL))

    def slack(self, point: Restricted, omega_term: float, target: float) -> float:
        """Largest delta, or nearly, such that u / (1 + delta) still has dual value ``target``.

        A search need not prove more than ‖g_w‖ <= (1 + delta) alpha D_w.
        """
        spare = point.primal - target
        if spare <= 0.0:  # nothing to spare, as where the objective is zero
            return 0.0
        delta = min(1.0, spare / max(omega_term, spare))
        while delta > 1e-12:
            # The bound of a search is loosened by what rounding may have done.
            if self.problem.dual_value(point.dual_point / ((1.0 + delta) * ROUNDING)) >= target:
                return delta
            delta *= 0.8
        return 0.0

    def _first_bound(self, alpha: float) -> Bound:
        """What the last search proves about this alpha and these penalties."""
        bound = Bound.trivial(self.problem)
        if self._proof is not None:
            point = self._proof.dual_point
            gains = self.working_set.correlate(np.ascontiguousarray(self.problem.residual(point).T))
            ratios = largest_ratio(gains, self.penalty, self.working_set.sign)
            bound.improve(self.problem, self._proof, float(ratios.max(initial=0.0)), alpha)
        return bound

    # ---- one alpha ----------------------------------------------------------------------------

    def solve(
        self, alpha: float, tol: float | None = None, next_alpha: float | None = None
    ) -> Solution:
        """The certified solution at ``alpha``, from the model at hand.

        Parameters
        ----------
        alpha : float
        tol : float, optional
            Relative gap; the path's by default.
        next_alpha : float, optional
            Rules that are about to be wanted at this alpha are kept at hand.

        Returns
        -------
        Solution
            With a status other than "optimal" when a limit or an interrupt cut it short; its
            certificate is valid all the same.
        """
        tol = self.tol if tol is None else tol
        record = 0.95 * alpha if next_alpha is None else max(next_alpha, 0.7 * alpha)
        bound = Bound.trivial(self.problem)
        rounds = 0
        try:
            for _ in range(_STAGES if self.concavity else 1):
                bound = Bound.trivial(self.problem)  # true whatever the discounts that follow
                self._set_discount(alpha)
                bound = self._first_bound(alpha)
                status, used = self._solve_stage(alpha, tol, record, bound)
                rounds += used
                if status != outcome.OPTIMAL:
                    break
        except KeyboardInterrupt:
            status = outcome.INTERRUPTED
        self.model.pad(self.working_set.size)
        if status == outcome.INTERRUPTED:
            refresh_predictions(self.model, self.working_set)
        return self._solution(alpha, bound, status, rounds)

    def _set_discount(self, alpha: float) -> None:
        """Penalty factors of the next stage, from the coefficients at hand."""
        if self.concavity:
            self.model.pad(self.working_set.size)
            sizes = np.linalg.norm(self.model.latent, axis=1)
            scale = alpha * self.working_set.scale
            self.discount = np.maximum(
                _LEAST_DISCOUNT, 1.0 - self.concavity * self._steepness * sizes / scale
            )

    def _solve_stage(
        self, alpha: float, tol: float, record: float, bound: Bound
    ) -> tuple[str, int]:
        """Alternate restricted problem and search; returns the status and the rounds used."""
        inner = _RESTRICTED_SHARE * tol
        self.model.pad(self.working_set.size)
        refresh_predictions(self.model, self.working_set)
        scouting = self._proof_cost >= _SCOUT_FROM
        for rounds in range(1, _MAX_ROUNDS + 1):
            penalty = self.penalty
            self.model.pad(len(penalty))
            point = self.restricted.solve(self.model, alpha, penalty, inner)
            status = self._limit_reached()
            if status != outcome.OPTIMAL:
                return status, rounds
            threshold = self._threshold(point, alpha, tol)
            if scouting:
                scouting = self._scout_finds(point, alpha, threshold, record)
                if scouting:
                    continue
            found = self.search(point.dual_point, threshold, record, self._n_best())
            if found.complete:
                self._proof_cost = found.n_nodes
            self._proof = Proof(point.dual_point, found.bound, found.complete)
            bound.improve(self.problem, self._proof, point.ratio, alpha)
            added = self.working_set.add(found.conjunctions)
            if point.primal - bound.value <= tol * abs(point.primal):
                return outcome.OPTIMAL, rounds
            status = self._limit_reached()
            if status != outcome.OPTIMAL:
                return status, rounds
            violated = bool(len(found.ratios)) and found.ratios[0] > threshold
            if added and violated:
                scouting = self._proof_cost >= _SCOUT_FROM
            elif found.complete:
                inner *= 0.1
                if inner < 1e-16:
                    break
        return outcome.OPTIMAL, rounds

    def _n_best(self) -> int:
        return _N_BEST + 2 * len(self.model.support)

    def _threshold(self, point: Restricted, alpha: float, tol: float) -> float:
        """What no ratio may exceed so that the gap is small enough."""
        omega_term = alpha * penalty_value(self.model, self.penalty)
        target = point.primal - 0.98 * tol * abs(point.primal)
        return max(alpha * (1.0 + self.slack(point, omega_term, target)), point.ratio)

    def _scout_finds(
        self, point: Restricted, alpha: float, threshold: float, record: float
    ) -> bool:
        """Whether the neighbourhood of the rules at hand held any that were missing."""
        found = self.scout(point.dual_point, alpha, record, self._n_best())
        added = self.working_set.add(found.conjunctions)
        return bool(added) and found.ratios[0] > threshold

    def _limit_reached(self) -> str:
        if self.limits.is_interrupted():
            return outcome.INTERRUPTED
        if self.limits.nodes_left(self.n_nodes) == 0:
            return outcome.NODE_LIMIT
        return outcome.TIME_LIMIT if self.limits.is_late() else outcome.OPTIMAL

    def _solution(self, alpha: float, bound: Bound, status: str, rounds: int) -> Solution:
        penalty = self.penalty
        self._drop_negligible(alpha, penalty, bound.value)
        primal = self._objective(alpha, penalty)
        method = STAGE_METHOD if self.concavity else METHOD
        certificate = Certificate(
            primal, min(bound.value, primal), bound.complete and status == outcome.OPTIMAL,
            self.n_nodes, self.problem.lattice.size, method,
        )  # fmt: skip
        return self._as_solution(self.model, alpha, certificate, status, rounds, bound.dual_point)

    def _objective(self, alpha: float, penalty: NDArray) -> float:
        loss = self.problem.total_loss(self.model.predictions.T)
        return loss + alpha * penalty_value(self.model, penalty)

    def _drop_negligible(self, alpha: float, penalty: NDArray, dual: float) -> None:
        """Set to zero what the solver had not quite brought there, unless that opens the gap."""
        model, before = self.model, self._objective(alpha, penalty)
        share = alpha * penalty * np.linalg.norm(model.latent, axis=1)
        tiny = (share > 0.0) & (share < _NEGLIGIBLE * self.tol * abs(before))
        if not tiny.any():
            return
        latent = model.latent.copy()
        model.latent[tiny] = 0.0
        refresh_predictions(model, self.working_set)
        after = self._objective(alpha, penalty)
        if after - dual > max(self.tol * abs(after), before - dual):
            model.latent = latent
            refresh_predictions(model, self.working_set)

    def _as_solution(
        self,
        model: Model,
        alpha: float,
        certificate: Certificate,
        status: str,
        rounds: int,
        dual_point: NDArray,
    ) -> Solution:
        mixing = self.problem.mixing
        coef = model.latent if mixing is None else model.latent @ mixing.T
        q = self.problem.n_dense
        used = np.flatnonzero(np.any(model.latent[q:] != 0.0, axis=1))
        penalty = self.penalty
        return Solution(
            alpha=alpha,
            conjunctions=[self.working_set.conjunctions[w] for w in used],
            coef=coef[q + used],
            intercept=model.intercept.copy(),
            linear_coef=coef[:q].copy(),
            penalty=np.concatenate([penalty[q + used], penalty[:q]]),
            omega=penalty_value(model, penalty[: len(model.latent)]),
            certificate=certificate,
            status=status,
            n_iter=rounds,
            dual_point=dual_point,
        )

    # ---- several alphas -----------------------------------------------------------------------

    def path(self, alphas: Sequence[float]) -> Iterator[Solution]:
        """Solutions for decreasing alphas; stops after the first that a limit cut short."""
        for k, alpha in enumerate(alphas):
            following = float(alphas[k + 1]) if k + 1 < len(alphas) else None
            solution = self.solve(float(alpha), next_alpha=following)
            yield solution
            if solution.status != outcome.OPTIMAL:
                return

    def approach(self, alpha: float) -> Iterator[Solution]:
        """Solutions on the way to a single alpha, loose ones first; the last one is certified.

        A solution that a limit cut short is the last, and is stated for ``alpha``.
        """
        try:
            largest = self.enough_alpha()
        except KeyboardInterrupt:
            yield self.stopped_at(alpha)
            return
        step = largest * _APPROACH
        while step > alpha / _APPROACH**0.5:
            solution = self.solve(step, tol=max(_APPROACH_TOL, self.tol))
            if solution.status != outcome.OPTIMAL:
                yield self.stopped_at(alpha, solution.status)
                return
            yield solution
            step *= _APPROACH
        yield self.solve(alpha)

    def stopped_at(self, alpha: float, status: str = outcome.INTERRUPTED) -> Solution:
        """The model at hand as a solution for ``alpha`` that was cut short."""
        self.model.pad(self.working_set.size)
        refresh_predictions(self.model, self.working_set)
        return self._solution(alpha, self._first_bound(alpha), status, 0)

    def relaxed(self, solution: Solution, fraction: float) -> Solution:
        """Refit the rules of a solution with (1 - fraction) of their penalty.

        The path goes on from where it was; the certificate stays that of the penalised problem
        that selected the rules.
        """
        model = Model(
            self.model.latent.copy(), self.model.intercept.copy(), self.model.predictions.copy()
        )
        alpha = solution.alpha * max(1.0 - fraction, _LEAST_PENALTY)
        self.restricted.solve(model, alpha, self.penalty, self.tol, allowed=model.support)
        return self._as_solution(
            model, solution.alpha, solution.certificate, solution.status, solution.n_iter,
            solution.dual_point,
        )  # fmt: skip


def _mean_curvature(problem: LatticeProblem, constant: Model) -> float:
    """Mean curvature of the loss at the constant model, or 1 for a piecewise linear loss."""
    if not problem.loss.smooth:
        return 1.0
    curvature = problem.loss.curvature(problem.targets, constant.predictions.T)
    total = problem.weights.sum()
    return float((problem.weights * curvature).sum() / total) if total else 1.0
