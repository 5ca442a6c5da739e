"""``verify_certificate``: check what a fitted model claims, from the data alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latticework.estimators.assembly import centred, rules_of
from latticework.search.branch_and_bound import find_conjunctions
from latticework.solvers.lattice_path import LatticePath
from latticework.solvers.prox_newton import penalty_value, refresh_predictions
from latticework.solvers.result import OPTIMAL

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from latticework.estimators.assembly import Assembly
    from latticework.estimators.base import BaseRuleEstimator
    from latticework.solvers.result import Solution

# Numbers recomputed in another order agree to this.
_ROUNDING = 1e-7
# A refit without a penalty, made again, gives the same scores to this.
_REFIT_TOLERANCE = 1e-4
# A claimed gap may be exceeded by this share: the claim may rest on an earlier dual point.
_SLACK = 0.25


@dataclass(frozen=True)
class Verification:
    """The outcome of :func:`verify_certificate`; true when the model's claims hold.

    Parameters
    ----------
    valid : bool
    primal : float
        Objective of the model's weights, recomputed from the data.
    dual : float
        Lower bound, from a dual point and a search of this check's own.
    reasons : tuple of str
        What does not hold; empty when valid.
    """

    valid: bool
    primal: float
    dual: float
    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.valid

    @property
    def gap(self) -> float:
        """primal - dual, recomputed."""
        return max(0.0, self.primal - self.dual)


def verify_certificate(
    model: BaseRuleEstimator,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    tasks: ArrayLike | None = None,
) -> Verification:
    """Check a fitted rule model's certificate against the data it was fitted on.

    The objective is recomputed from the model's rules and weights on X.  The bound is recomputed
    from a dual point that follows from these weights and from one search of the whole lattice;
    nothing of the solver's state is used.

    Parameters
    ----------
    model : RuleClassifier, RuleRegressor or their CV forms, fitted
    X, y, sample_weight, tasks
        As given to ``fit``.

    Returns
    -------
    Verification
        True in a condition when every claim holds; ``reasons`` says what does not.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import latticework as lw
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = lw.RuleClassifier(alpha=0.03).fit(X, y)
    >>> bool(lw.verify_certificate(model, X, y))
    True
    >>> model.coef_[0] *= 2
    >>> print(lw.verify_certificate(model, X, y).reasons[0])
    coef_ differs from the weights of rules_
    """
    check_is_fitted(model, "rules_")
    plain = model._plain()
    sample = plain._sample(X, y, sample_weight, tasks).counted()
    assembly = plain._assemble(sample)
    stated = model._penalised
    reasons = _weights_that_differ(model)
    if any(
        max(c, default=-1) >= assembly.problem.lattice.n_conditions for c in stated.conjunctions
    ):
        return Verification(False, np.nan, np.nan, (*reasons, "X has other conditions than at fit"))
    path = LatticePath(assembly.problem, tol=float(model.tol))
    if not _install(path, stated):
        return Verification(False, np.nan, np.nan, (*reasons, "X has other columns than at fit"))
    reasons += _scores_that_differ(model, plain, assembly, path, sample.data)
    if plain.concavity == 0.0 and not np.array_equal(path.discount, np.ones_like(path.discount)):
        reasons.append("the penalties are not those of the norm")
    claimed = model.certificate_
    allowed = (1.0 + _SLACK) * claimed.gap + _ROUNDING * abs(claimed.primal)
    cost = None if plain.C is None else float(plain.C) * assembly.total_weight
    primal, dual = _bounds(path, stated, cost, allowed, claimed.nodes_searched)
    reasons += _claims_that_fail(model, primal, dual, allowed)
    return Verification(not reasons, primal, dual, tuple(reasons))


def _weights_that_differ(model: BaseRuleEstimator) -> list[str]:
    """The public attributes must say one thing."""
    reasons = []
    coef, weights = np.asarray(model.coef_), model.rules_.weights
    if coef.size != weights.size or not np.array_equal(coef.reshape(weights.shape), weights):
        reasons.append("coef_ differs from the weights of rules_")
    if not np.array_equal(np.atleast_1d(model.intercept_), np.array(model.rules_.intercept)):
        reasons.append("intercept_ differs from the intercept of rules_")
    certificate = model.certificate_
    if (model.objective_, model.lower_bound_, model.dual_gap_) != (
        certificate.primal, certificate.dual, certificate.gap,
    ):  # fmt: skip
        reasons.append("objective_, lower_bound_ or dual_gap_ differs from certificate_")
    return reasons


def _install(path: LatticePath, stated: Solution) -> bool:
    """Put the stated rules and weights into a fresh solver; False when they do not fit."""
    problem = path.problem
    q = problem.n_dense
    if len(stated.linear_coef) != q or stated.coef.shape[1] != problem.n_tasks:
        return False
    path.working_set.add(stated.conjunctions)
    if path.working_set.size != q + len(stated.conjunctions):
        return False
    coef = np.vstack([stated.linear_coef, stated.coef])
    mixing = problem.mixing
    latent = coef if mixing is None else coef @ np.linalg.pinv(mixing).T
    path.model.latent = np.ascontiguousarray(latent)
    path.model.intercept = stated.intercept.copy()
    refresh_predictions(path.model, path.working_set)
    rules = stated.penalty[: len(stated.conjunctions)]
    path.discount = np.concatenate([stated.penalty[len(rules) :], rules]) / path.working_set.scale
    return True


def _scores_that_differ(
    model: BaseRuleEstimator,
    plain: BaseRuleEstimator,
    assembly: Assembly,
    path: LatticePath,
    data: Any,
) -> list[str]:
    """What the model predicts must be what its certificate speaks of, or a refit of it."""
    scores = model.rules_.decision_function(data).reshape(path.problem.n_rows, -1)
    certified, tolerance = path.model.predictions.T, 1e-9
    if plain.relax > 0.0:
        if model.status_ != OPTIMAL:  # a refit that was cut short cannot be had again
            return []
        refit = centred(assembly, path.relaxed(model._penalised, float(plain.relax)))
        ensemble, _ = rules_of(assembly, refit)
        certified = ensemble.decision_function(data).reshape(scores.shape)
        tolerance = _REFIT_TOLERANCE
    if np.abs(scores - certified).max() <= tolerance * (1.0 + np.abs(certified).max()):
        return []
    return ["rules_ predicts other scores than the certified weights"]


def _bounds(
    path: LatticePath, stated: Solution, cost: float | None, allowed: float, nodes: int
) -> tuple[float, float]:
    """Objective and lower bound, recomputed, on the scale of the model's own form."""
    problem, alpha = path.problem, stated.alpha
    point = path.restricted.solve(path.model, alpha, path.penalty, np.inf)
    mean_loss = problem.total_loss(path.model.predictions.T)
    omega = penalty_value(path.model, path.penalty)
    if cost is None:
        target = mean_loss + alpha * omega - 0.9 * allowed
    else:
        target = mean_loss + alpha * omega - 0.9 * allowed / cost
    slack = path.slack(replace(point, primal=mean_loss + alpha * omega), alpha * omega, target)
    threshold = max(alpha * (1.0 + slack), point.ratio)
    found = find_conjunctions(
        problem.lattice, np.ascontiguousarray(problem.residual(point.dual_point)),
        threshold=threshold, n_best=1, max_nodes=10 * nodes + 10_000,
    )  # fmt: skip
    reach = max(found.bound, point.ratio)
    if cost is not None:
        dual = cost * problem.dual_value(point.dual_point) - 0.5 * (cost * reach) ** 2
        return 0.5 * omega**2 + cost * mean_loss, dual
    shrink = min(1.0, alpha / reach) if reach > 0.0 else 1.0
    return mean_loss + alpha * omega, problem.dual_value(shrink * point.dual_point)


def _claims_that_fail(
    model: BaseRuleEstimator, primal: float, dual: float, allowed: float
) -> list[str]:
    reasons = []
    rounding = _ROUNDING * abs(primal)
    if abs(primal - model.objective_) > rounding:
        reasons.append(f"the objective is {primal:.9g}, not {model.objective_:.9g}")
    if model.lower_bound_ > primal + rounding:
        reasons.append(f"the lower bound {model.lower_bound_:.9g} exceeds the objective")
    if model.certificate_.complete and primal - dual > allowed:
        reasons.append(
            f"the gap is {primal - dual:.3g}, larger than the {model.dual_gap_:.3g} claimed"
        )
    return reasons
