"""``verify_certificate``: check what a fitted model claims, from the data alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latticework.estimators.base import DEFAULT_ALPHA
from latticework.estimators.witnesses import (
    LEAST_DISCOUNT,
    ROUNDING,
    as_shown,
    forbidden_signs,
    model_of,
    recomputed_bounds,
    refit_that_fails,
    same_scores,
)
from latticework.solvers.lattice_path import LatticePath
from latticework.solvers.result import OPTIMAL

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from latticework.estimators.assembly import Assembly
    from latticework.estimators.base import BaseRuleEstimator
    from latticework.solvers.result import Solution

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
    from a dual point and a search of the whole lattice: the dual point follows from these weights
    or, where it leaves a larger gap than the model claims (as piecewise linear losses do, whose
    slopes are not unique), is found anew.  Any dual point proves its bound, wherever it came from.
    Weights that were refitted (``relax``) must be of the certified rules, and be the best ones for
    the reduced penalty, up to ``tol``.

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
    reasons = _attributes_that_differ(model, plain, assembly)
    stated = model._penalised
    if any(
        max(c, default=-1) >= assembly.problem.lattice.n_conditions for c in stated.conjunctions
    ):
        return Verification(False, np.nan, np.nan, (*reasons, "X has other conditions than at fit"))
    path = LatticePath(assembly.problem, tol=float(model.tol))
    if not _install(path, stated):
        return Verification(False, np.nan, np.nan, (*reasons, "X has other columns than at fit"))
    reasons += _penalties_that_differ(path, plain.concavity)
    used = as_shown(model.rules_, assembly, path, sample.data)
    if isinstance(used, str):
        reasons.append(used)
    elif plain.relax > 0.0:
        may_be_rough = model.status_ != OPTIMAL
        reasons += refit_that_fails(path, used, stated.alpha, float(plain.relax), may_be_rough)
    elif not same_scores(used.predictions, path.model.predictions):
        reasons.append("rules_ predicts other scores than the certified weights")
    cost = None if plain.C is None else float(plain.C) * assembly.total_weight
    claimed = model.certificate_
    allowed = (1.0 + _SLACK) * claimed.gap + ROUNDING * abs(claimed.primal)
    primal, dual = recomputed_bounds(path, stated.alpha, cost, allowed, claimed.nodes_searched)
    reasons += _claims_that_fail(model, primal, dual, allowed)
    return Verification(not reasons, primal, dual, tuple(reasons))


def _attributes_that_differ(
    model: BaseRuleEstimator, plain: BaseRuleEstimator, assembly: Assembly
) -> list[str]:
    """The public attributes must say one thing, and speak of the problem that was posed."""
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
    wanted = DEFAULT_ALPHA if plain.alpha is None else float(plain.alpha)
    alphas = {model.alpha_, model._penalised.alpha, *([wanted] if plain.C is None else [])}
    if len(alphas) > 1:
        reasons.append(f"the alphas differ: {', '.join(f'{alpha:.9g}' for alpha in alphas)}")
    if certificate.lattice_size != assembly.problem.lattice.size:
        reasons.append(
            f"the lattice has {assembly.problem.lattice.size} conjunctions, and the certificate "
            f"speaks of {certificate.lattice_size}"
        )
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
    path.model = model_of(path, coef, stated.intercept)
    rules = stated.penalty[: len(stated.conjunctions)]
    path.discount = np.concatenate([stated.penalty[len(rules) :], rules]) / path.working_set.scale
    return True


def _penalties_that_differ(path: LatticePath, concavity: float) -> list[str]:
    """Only stages of a concave penalty make rules cheaper, and only down to a limit."""
    reasons = []
    least = LEAST_DISCOUNT if concavity else 1.0
    if np.any(path.discount < least - ROUNDING) or np.any(path.discount > 1.0 + ROUNDING):
        reasons.append("the penalties are not those of the norm")
    if forbidden_signs(path, path.model):
        reasons.append("a weight has the sign that monotonic_cst forbids")
    return reasons


def _claims_that_fail(
    model: BaseRuleEstimator, primal: float, dual: float, allowed: float
) -> list[str]:
    reasons = []
    rounding = ROUNDING * abs(primal)
    if abs(primal - model.objective_) > rounding:
        reasons.append(f"the objective is {primal:.9g}, not {model.objective_:.9g}")
    if model.lower_bound_ > primal + rounding:
        reasons.append(f"the lower bound {model.lower_bound_:.9g} exceeds the objective")
    if primal - dual > allowed:
        found = "is" if model.certificate_.complete else "could only be shown to be at most"
        reasons.append(
            f"the gap {found} {primal - dual:.3g}, larger than the {model.dual_gap_:.3g} claimed"
        )
    return reasons
