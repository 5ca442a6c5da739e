"""What :func:`verify_certificate` recomputes: objectives, dual points, and what they prove."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar

from latticework.search.branch_and_bound import find_conjunctions
from latticework.search.limits import Limits
from latticework.solvers.cost_form import solve_for_cost
from latticework.solvers.lattice_path import _LEAST_DISCOUNT, _LEAST_PENALTY, LatticePath
from latticework.solvers.prox_newton import (
    Model,
    largest_ratio,
    penalty_value,
    refresh_predictions,
)
from latticework.solvers.result import OPTIMAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latticework.estimators.assembly import Assembly
    from latticework.rules.ensemble import RuleEnsemble

# Numbers recomputed in another order agree to this.
ROUNDING = 1e-7
LEAST_DISCOUNT = _LEAST_DISCOUNT
# Scores of the same weights, added in another order, agree to this.
_SAME_SCORES = 1e-9
# A refit may miss the solver's tolerance by this share: its own dual point may be a better one.
_REFIT_SLACK = 0.5
# Shares of the gap that is to be shown, left to the search and to the dual point.
_SHARE_OF_SEARCH = 0.9
_SHARE_OF_POINT = 0.4
# Attempts at a bound, and the least relative gap to ask a solver for.
_MAX_ATTEMPTS, _LEAST_TOLERANCE = 6, 1e-11
# Nodes for a search, per node of the search that is checked.
_NODES_PER_NODE, _NODES_AT_LEAST = 2, 10_000


def model_of(path: LatticePath, coef: NDArray[np.float64], intercept: NDArray) -> Model:
    """A solver's model from coefficients (size, T) of its columns."""
    mixing = path.problem.mixing
    latent = coef if mixing is None else coef @ np.linalg.pinv(mixing).T
    model = Model(np.ascontiguousarray(latent), np.array(intercept, np.float64), np.empty(0))
    refresh_predictions(model, path.working_set)
    return model


def same_scores(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether scores differ by rounding at most."""
    largest = 1.0 + np.abs(other).max(initial=0.0)
    return bool(np.abs(one - other).max(initial=0.0) <= _SAME_SCORES * largest)


def forbidden_signs(path: LatticePath, model: Model) -> bool:
    """Whether a column has a weight on the side that its sign forbids."""
    sign = path.working_set.sign[: len(model.latent), None]
    return bool(np.any(sign * model.latent < 0.0))


def as_shown(rules: RuleEnsemble, assembly: Assembly, path: LatticePath, data: Any) -> Model | str:
    """The ensemble that users see, as a model over the certified columns; or why it is none.

    Parameters
    ----------
    rules : RuleEnsemble
    assembly : Assembly
    path : LatticePath
        With the certified rules in its working set.
    data : Table or csr_array of shape (n, m)
        The rows that the assembly was made from.
    """
    place = assembly.rows.place
    first = np.empty(path.problem.n_rows, np.intp)
    first[place] = np.arange(len(place))
    held = rules.indicators(data)[first].T
    bits = np.ascontiguousarray(path.working_set.bits, dtype=bool)
    column_of = {row.tobytes(): path.problem.n_dense + k for k, row in enumerate(bits)}
    coef = np.zeros((path.working_set.size, path.problem.n_tasks))
    if rules.n_outputs != path.problem.n_tasks:
        return f"rules_ has {rules.n_outputs} outputs, not {path.problem.n_tasks}"
    for rule, row in zip(rules, np.ascontiguousarray(held), strict=True):
        column = column_of.pop(row.tobytes(), None)
        if column is None:
            return f"rules_ has a rule that is not certified: {rule}"
        coef[column] = rule.weights
    names = [term.feature for term in assembly.linear_terms]
    for term in rules.linear_terms:
        if term.feature not in names:
            return f"rules_ has a linear term that is not certified: {term}"
        coef[names.index(term.feature)] = term.weights
    model = model_of(path, coef, np.array(rules.intercept))
    scores = rules.decision_function(data).reshape(len(place), -1)
    if not same_scores(scores[first].T, model.predictions):
        return "rules_ predicts other scores than its weights"
    return model


def refit_that_fails(
    path: LatticePath, refit: Model, alpha: float, relax: float, may_be_rough: bool
) -> list[str]:
    """Why refitted weights are not those of the reduced penalty.

    Parameters
    ----------
    path : LatticePath
        Its model is the certified one.
    refit : Model
    alpha, relax : float
    may_be_rough : bool
        Whether the refit was cut short: then it need only be no worse than the certified weights.
    """
    if forbidden_signs(path, refit):
        return ["a refitted weight has the sign that monotonic_cst forbids"]
    penalty = path.penalty
    alpha *= max(1.0 - relax, _LEAST_PENALTY)
    primal, before = (_objective(path, model, alpha) for model in (refit, path.model))
    if primal > before + ROUNDING * abs(before):
        return [
            f"refitting raised the objective of relax={relax:g} from {before:.9g} to {primal:.9g}"
        ]
    allowed = (1.0 + _REFIT_SLACK) * path.tol * abs(primal) + ROUNDING * abs(primal)
    columns = path.model.support
    dual = -np.inf
    # The dual point that the weights suggest; where it does not do, the best one.
    for tolerance in (np.inf, _SHARE_OF_POINT * path.tol):
        trial = Model(refit.latent.copy(), refit.intercept.copy(), refit.predictions.copy())
        point = path.restricted.solve(trial, alpha, penalty, tolerance, allowed=columns)
        shrink = min(1.0, alpha / point.ratio) if point.ratio > 0.0 else 1.0
        dual = max(dual, path.problem.dual_value(shrink * point.dual_point))
        if may_be_rough or primal - dual <= allowed:
            return []
    return [
        f"the refitted weights are {primal - dual:.3g} above the least objective of "
        f"relax={relax:g}, more than the {allowed:.3g} that tol={path.tol:g} allows"
    ]


def _objective(path: LatticePath, model: Model, alpha: float) -> float:
    loss = path.problem.total_loss(model.predictions.T)
    return loss + alpha * penalty_value(model, path.penalty[: len(model.latent)])


def recomputed_bounds(
    path: LatticePath, alpha: float, cost: float | None, allowed: float, nodes: int
) -> tuple[float, float]:
    """Objective and lower bound of a path's model, on the scale of the model's own form.

    Parameters
    ----------
    path : LatticePath
        Its model is the certified one.
    alpha : float
    cost : float or None
        Where the form is ``1/2 Omega^2 + cost * mean loss``.
    allowed : float
        The gap that is to be shown.
    nodes : int
        Of the search that is checked.
    """
    mean_loss = path.problem.total_loss(path.model.predictions.T)
    omega = penalty_value(path.model, path.penalty)
    objective = mean_loss + alpha * omega
    primal = objective if cost is None else 0.5 * omega**2 + cost * mean_loss
    budget = _NODES_PER_NODE * nodes + _NODES_AT_LEAST
    wanted = allowed
    if cost is not None:  # of this form's gap, a part comes from alpha alone
        wanted = max(
            (allowed - 0.5 * (omega - cost * alpha) ** 2) / cost, ROUNDING * abs(objective)
        )
    point = path.restricted.solve(path.model, alpha, path.penalty, np.inf)
    target = objective - _SHARE_OF_SEARCH * wanted
    slack = path.slack(replace(point, primal=objective), alpha * omega, target)
    dual = _proved_by(path, point.dual_point, alpha, cost, alpha * (1.0 + slack), budget)
    if primal - dual > allowed:
        path.limits = Limits(max_nodes=path.n_nodes + budget)
        near = path.solve(alpha, tol=_SHARE_OF_POINT * wanted / max(abs(objective), 1e-300))
        dual = max(dual, _proved_by(path, near.dual_point, alpha, cost, alpha, budget))
    if primal - dual > allowed:
        dual = max(dual, _better_bound(path, alpha, cost, primal, allowed))
    return primal, dual


def _better_bound(
    path: LatticePath, alpha: float, cost: float | None, primal: float, allowed: float
) -> float:
    """The bound of a dual point that a solver finds: ``primal - allowed``, unless none can be."""
    best, target, gap = -np.inf, primal - allowed, _SHARE_OF_POINT * allowed
    for _ in range(_MAX_ATTEMPTS):
        path.tol = max(gap / max(abs(primal), 1e-300), _LEAST_TOLERANCE)
        found = path.solve(alpha) if cost is None else solve_for_cost(path, cost)
        budget = max(_NODES_AT_LEAST, found.certificate.nodes_searched)
        bound = _proved_by(path, found.dual_point, found.alpha, cost, found.alpha, budget)
        best = max(best, bound)
        # Below the target there is a model, or the solver can do no more, or the search.
        rest = found.certificate.primal - target
        if best >= target or rest <= 0.0 or found.status != OPTIMAL:
            break
        gap = min(_SHARE_OF_POINT * rest, 0.1 * gap)
    return best


def _proved_by(
    path: LatticePath,
    dual_point: NDArray[np.float64],
    alpha: float,
    cost: float | None,
    threshold: float,
    budget: int,
) -> float:
    """The lower bound that a dual point and one search of the whole lattice prove."""
    problem, columns = path.problem, path.working_set
    gains = columns.correlate(np.ascontiguousarray(problem.residual(dual_point).T))
    ratio = float(largest_ratio(gains, path.penalty, columns.sign).max(initial=0.0))
    found = find_conjunctions(
        problem.lattice, np.ascontiguousarray(problem.residual(dual_point)),
        threshold=max(threshold, ratio), n_best=1, max_nodes=budget,
    )  # fmt: skip
    reach = max(found.bound, ratio)
    shrink = min(1.0, alpha / reach) if reach > 0.0 else 1.0
    if cost is None:
        return problem.dual_value(shrink * dual_point)

    def value(t: float) -> float:  # of the dual point times t: concave in t
        return cost * problem.dual_value(t * dual_point) - 0.5 * (cost * t * reach) ** 2

    best = minimize_scalar(lambda t: -value(t), bounds=(0.0, 1.0), method="bounded").x
    return max(value(t) for t in (0.0, shrink, float(best), 1.0))
