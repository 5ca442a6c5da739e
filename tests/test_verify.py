"""``verify_certificate`` accepts true models, and refuses every claim that does not hold."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.samples import (
    LOSSES_OF_CLASSES,
    LOSSES_OF_NUMBERS,
    mixed_frame,
    numeric_sample,
    planted_scores,
    target_for,
)

import latticework as lw
from latticework.solvers.lattice_path import LatticePath

quiet = pytest.mark.filterwarnings("ignore::latticework.exceptions.CertificateWarning")
LOSSES = [*LOSSES_OF_CLASSES, *LOSSES_OF_NUMBERS]
ALPHA = 0.02


def estimator_for(loss, **settings):
    kind = lw.RuleClassifier if loss in LOSSES_OF_CLASSES else lw.RuleRegressor
    return kind(loss=loss, **settings)


def assert_verified(model, *data, **more):
    """Accepted; with an objective and a bound of the check's own that fit the model's."""
    found = lw.verify_certificate(model, *data, **more)
    assert found, found.reasons
    assert found.reasons == ()
    assert found.dual <= found.primal == pytest.approx(model.objective_, rel=1e-7)
    assert found.gap <= 1.25 * model.dual_gap_ + 1e-6 * abs(found.primal)


# --- true models ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": ALPHA},
        {"alpha": ALPHA, "tol": 1e-6},
        {"C": 1.0},
        {"alpha": ALPHA, "relax": 0.5},
        {"alpha": ALPHA, "relax": 1.0, "length_penalty": 0.0},
        {"alpha": ALPHA, "concavity": 2.0, "relax": 1.0},
        {"alpha": ALPHA, "linear_terms": True, "relax": 1.0},
        {"alpha": ALPHA, "monotonic_cst": {"age": 1, "size": -1}, "relax": 0.5},
        {"alpha": 10.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("loss", LOSSES)
def test_true_models_are_accepted(loss, settings):
    frame = mixed_frame(100)
    y = target_for(loss, planted_scores(frame))
    weight = np.random.default_rng(0).integers(0, 4, len(frame)) / 3
    model = estimator_for(loss, **settings).fit(frame, y, sample_weight=weight)
    assert_verified(model, frame, y, sample_weight=weight)


@pytest.mark.parametrize("relax", [0.0, 1.0])
@pytest.mark.parametrize(
    "settings", [{}, {"multiclass": "one-vs-rest"}, {"loss": "hinge"}], ids=str
)
def test_classes_and_their_weights(settings, relax):
    X, score = numeric_sample(90)
    y = np.array(["a", "b", "c"])[np.digitize(score, [-0.5, 0.8])]
    if "loss" in settings:
        y = np.where(y == "c", "b", y)
    model = lw.RuleClassifier(ALPHA, class_weight="balanced", relax=relax, **settings).fit(X, y)
    assert_verified(model, X, y)


@pytest.mark.parametrize("loss", [*LOSSES_OF_CLASSES, "squared_error", "epsilon_insensitive"])
def test_tasks_labels_and_couplings(loss):
    X, score = numeric_sample(90)
    y, tasks = target_for(loss, score), np.arange(90) % 3
    model = estimator_for(loss, alpha=ALPHA, relax=0.5).fit(X, y, tasks=tasks)
    assert_verified(model, X, y, tasks=tasks)
    Y = np.column_stack([score, score - X[:, 0]])
    Y = (Y > 0).astype(float) if loss in LOSSES_OF_CLASSES else Y
    Y[::5, 1] = np.nan
    for coupling in ([[1.0, 0.5], [0.5, 1.0]], np.ones((2, 2))):
        model = estimator_for(loss, alpha=ALPHA, task_coupling=coupling, relax=1.0).fit(X, Y)
        assert_verified(model, X, Y)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_conditions_as_they_are(make):
    rng = np.random.default_rng(0)
    truths = rng.random((80, 6)) < 0.5
    y = (truths[:, 0] & truths[:, 3]) | (rng.random(80) < 0.1)
    model = lw.RuleClassifier(ALPHA, length_penalty=0, conditions="as-is", relax=1.0)
    assert_verified(model.fit(make(truths), y), make(truths), y)


def test_models_of_cross_validation_and_of_paths():
    X, score = numeric_sample()
    for settings in ({}, {"relax": 1.0, "concavity": [0.0, 1.0]}, {"C": 1.0}):
        model = lw.RuleRegressorCV(n_alphas=4, cv=2, **settings).fit(X, score)
        assert_verified(model, X, score)
    for model in lw.rule_path(X, score > 0, n_alphas=4, relax=0.5):
        assert_verified(model, X, score > 0)


@quiet
@pytest.mark.parametrize("settings", [{"alpha": 3e-3}, {"C": 10.0}, {"alpha": 3e-3, "relax": 1.0}])
@pytest.mark.parametrize("loss", ["squared_error", "epsilon_insensitive"])
def test_models_that_were_cut_short(loss, settings):
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.random.default_rng(1).normal(size=60)
    optimum = lw.RuleRegressor(loss=loss, **settings).fit(X, y).objective_
    for max_nodes in (1, 100):
        model = lw.RuleRegressor(loss=loss, max_nodes=max_nodes, **settings).fit(X, y)
        assert not model.certificate_.complete
        assert_verified(model, X, y)
        too_good = 0.5 * (optimum + model.objective_)
        assert "could only be shown" in refusal(claiming(model, dual=too_good), X, y)


def test_a_refit_that_time_cut_short_says_so(monkeypatch):
    X, score = numeric_sample()
    assert lw.RuleRegressor(ALPHA, relax=1.0, time_limit=1e6).fit(X, score).status_ == "optimal"
    relaxed = LatticePath.relaxed

    def late(path, *args):
        path.limits = replace(path.limits, deadline=0.0)
        path.restricted.deadline = 0.0
        return relaxed(path, *args)

    monkeypatch.setattr(LatticePath, "relaxed", late)
    model = lw.RuleRegressor(ALPHA, relax=1.0, time_limit=1e6).fit(X, score)
    assert model.status_ == "time_limit"
    assert model.certificate_.complete  # which speaks of the rules before the refit
    assert_verified(model, X, score)


# --- claims that do not hold ----------------------------------------------------------------------


def refusal(model, *data, **more):
    """The reasons for which a model is refused."""
    found = lw.verify_certificate(model, *data, **more)
    assert not found
    assert found.reasons
    return "; ".join(found.reasons)


def tampered(model, **changes):
    other = copy.deepcopy(model)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


def claiming(model, **numbers):
    """The model with other numbers in its certificate, and wherever they are repeated."""
    certificate = replace(model.certificate_, **numbers)
    return tampered(
        model, certificate_=certificate, objective_=certificate.primal,
        lower_bound_=certificate.dual, dual_gap_=certificate.gap,
    )  # fmt: skip


def with_rules(model, rules, **changes):
    """The model with another ensemble in all places that users look at."""
    single = rules.n_outputs == 1
    coef = rules.weights[:, 0].copy() if single else rules.weights.copy()
    intercept = rules.intercept[0] if single else np.array(rules.intercept)
    return tampered(model, rules_=rules, coef_=coef, intercept_=intercept, **changes)


def with_weights(rules, factor):
    return replace(rules, rules=[replace(r, weights=factor * np.array(r.weights)) for r in rules])


@pytest.fixture(scope="module")
def data():
    frame = mixed_frame(100)
    return frame, planted_scores(frame)


@pytest.fixture(scope="module", params=[0.0, 1.0], ids=["plain", "relaxed"])
def model(request, data):
    return lw.RuleRegressor(ALPHA, relax=request.param).fit(*data)


def test_other_weights(model, data):
    assert "coef_ differs" in refusal(tampered(model, coef_=1.01 * model.coef_), *data)
    assert "coef_ differs" in refusal(tampered(model, coef_=model.coef_[1:]), *data)
    assert "intercept_ differs" in refusal(
        tampered(model, intercept_=model.intercept_ + 0.01), *data
    )
    for factor in (0.5, 0.9, 1.1, -1.0):
        refusal(with_rules(model, with_weights(model.rules_, factor)), *data)
    shifted = replace(model.rules_, intercept=np.array(model.rules_.intercept) + 0.1)
    refusal(with_rules(model, shifted), *data)


def test_other_rules(model, data):
    refusal(with_rules(model, model.rules_[1:]), *data)
    first, second, *rest = model.rules_.rules
    swapped = [
        replace(first, conditions=second.conditions), replace(second, conditions=first.conditions),
    ]  # fmt: skip
    refusal(with_rules(model, replace(model.rules_, rules=[*swapped, *rest])), *data)
    at, old = next(
        (k, rule.conditions[0]) for k, rule in enumerate(model.rules_)
        if str(rule).startswith("age") and len(rule) == 1
    )  # fmt: skip
    rules = [*model.rules_]
    rules[at] = replace(rules[at], conditions=[replace(old, value=old.value + 5.0)])
    moved = with_rules(model, replace(model.rules_, rules=rules))
    assert "rules_ has a rule that is not certified: age" in refusal(moved, *data)


def test_other_numbers_in_the_certificate(model, data):
    primal = model.objective_
    assert "differs from certificate_" in refusal(tampered(model, objective_=0.5 * primal), *data)
    assert "differs from certificate_" in refusal(tampered(model, dual_gap_=0.0), *data)
    assert "the objective is" in refusal(claiming(model, primal=0.99 * primal), *data)
    assert "the objective is" in refusal(claiming(model, primal=1.01 * primal), *data)
    assert "exceeds the objective" in refusal(claiming(model, dual=1.1 * primal), *data)
    assert "conjunctions" in refusal(claiming(model, lattice_size=2**400), *data)
    assert "alphas differ" in refusal(tampered(model, alpha_=0.5 * model.alpha_), *data)
    assert "alphas differ" in refusal(tampered(model, alpha=0.5 * model.alpha_), *data)


def test_a_worse_model_with_honest_numbers_but_a_claim_of_optimality(data):
    """The weights of a larger alpha, in all places; its objective is right, its bound is not."""
    good, poor = (lw.RuleRegressor(alpha).fit(*data) for alpha in (ALPHA, 3 * ALPHA))
    stated = replace(poor._penalised, alpha=ALPHA)
    forged = with_rules(good, poor.rules_, _penalised=stated)
    assert "the objective is" in refusal(forged, *data)
    primal = poor.objective_ - 2 * ALPHA * poor._penalised.omega
    for dual in (primal, 0.999 * primal, 0.5 * (primal + good.objective_)):
        honest = claiming(forged, primal=primal, dual=dual)
        assert "the gap is" in refusal(honest, *data)
    assert_verified(claiming(honest, dual=good.lower_bound_), *data)  # what can be said of it


def test_penalties_that_are_not_paid(data):
    for concavity in (0.0, 1.0):
        model = lw.RuleRegressor(ALPHA, concavity=concavity).fit(*data)
        cheap = replace(model._penalised, penalty=1e-3 * model._penalised.penalty)
        assert "penalties" in refusal(tampered(model, _penalised=cheap), *data)


@pytest.mark.parametrize("relax", [0.0, 1.0])
def test_signs_that_are_forbidden(data, relax):
    frame, _ = data
    free = lw.RuleRegressor(ALPHA, relax=relax).fit(frame, -frame["age"].fillna(50))
    against = tampered(free, monotonic_cst={"age": 1})
    assert "forbids" in refusal(against, frame, -frame["age"].fillna(50))


def test_refits_of_other_rules_or_of_no_use(data):
    model = lw.RuleRegressor(ALPHA, relax=1.0).fit(*data)
    other = lw.RuleRegressor(0.5 * ALPHA, relax=1.0).fit(*data)
    assert "not certified" in refusal(with_rules(model, other.rules_), *data)
    doubled = with_rules(model, with_weights(model.rules_, 10.0))
    assert "refitting raised the objective" in refusal(doubled, *data)
    plain = lw.RuleRegressor(ALPHA).fit(*data)
    unrefitted = with_rules(model, plain.rules_)
    assert "above the least objective" in refusal(unrefitted, *data)


def test_linear_terms_that_were_moved():
    X, score = numeric_sample()
    for relax in (0.0, 1.0):
        model = lw.RuleRegressor(ALPHA, linear_terms=True, relax=relax).fit(X, score + X[:, 0])
        term, *rest = model.rules_.linear_terms
        for change in ({"mean": term.mean + 0.1}, {"weights": (0.0,)}, {"high": term.high + 1}):
            rules = replace(model.rules_, linear_terms=[replace(term, **change), *rest])
            refusal(with_rules(model, rules), X, score + X[:, 0])


def test_other_data(model, data):
    frame, y = data
    refusal(model, frame, -y)
    refusal(model, frame, y + np.arange(len(y)))
    refusal(model, frame.iloc[::2], y[::2])
    refusal(model, frame, y, sample_weight=np.arange(len(y)))
    refusal(model, frame.assign(age=frame["age"].to_numpy()[::-1]), y)
    refusal(model, frame.assign(colour="red", smoker=True), y)
    refusal(model, frame[["count"]].rename(columns={"count": "n"}), y)
    order = np.random.default_rng(0).permutation(len(y))
    assert_verified(model, frame.iloc[order], y[order])


def test_it_needs_a_fitted_model_and_shows_numbers(data):
    with pytest.raises(Exception, match="not fitted"):
        lw.verify_certificate(lw.RuleRegressor(), *data)
    found = lw.verify_certificate(lw.RuleRegressor(ALPHA).fit(*data), *data)
    assert found.valid
    assert found.gap == found.primal - found.dual
