"""What the parameters of the estimators do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.samples import (
    LOSSES_OF_CLASSES,
    LOSSES_OF_NUMBERS,
    mixed_frame,
    numeric_sample,
    planted_scores,
    target_for,
)

import latticework as lw

SETTINGS = {"alpha": 0.03, "tol": 1e-7}


def omega_of(model, length_penalty=1.0):
    lengths = np.array([len(rule) for rule in model.rules_])
    coef = model.coef_.reshape(len(lengths), -1)
    return float(((1 + length_penalty) ** lengths * np.linalg.norm(coef, axis=1)).sum())


# --- losses and the two forms ---------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*LOSSES_OF_CLASSES, *LOSSES_OF_NUMBERS])
def test_every_loss_learns(loss):
    frame = mixed_frame(120)
    y = target_for(loss, planted_scores(frame))
    kind = lw.RuleClassifier if loss in LOSSES_OF_CLASSES else lw.RuleRegressor
    model = kind(alpha=0.02, loss=loss).fit(frame, y)
    assert model.status_ == "optimal"
    assert model.certificate_.complete
    assert model.certificate_.relative_gap <= 1e-3
    constant = kind(alpha=1e6, loss=loss).fit(frame, y)
    assert len(constant.rules_) == 0
    assert model.score(frame, y) > constant.score(frame, y) + 0.1


def test_losses_with_parameters():
    X, score = numeric_sample()
    near = lw.RuleRegressor(**SETTINGS, loss=lw.losses.Huber(delta=1e6)).fit(X, score)
    square = lw.RuleRegressor(**SETTINGS).fit(X, score)
    assert_allclose(near.objective_, square.objective_, rtol=1e-6)
    three = np.digitize(score, [-0.5, 0.8])
    by_object = lw.RuleClassifier(**SETTINGS, loss=lw.losses.LogLoss()).fit(X, three)
    by_name = lw.RuleClassifier(**SETTINGS).fit(X, three)
    assert_array_equal(by_object.coef_, by_name.coef_)


def test_poisson_predicts_means():
    X, score = numeric_sample()
    y = target_for("poisson", score)
    model = lw.RuleRegressor(**SETTINGS, loss="poisson").fit(X, y)
    assert_allclose(model.predict(X), np.exp(model.rules_.decision_function(X)))
    assert_allclose(model.predict(X).mean(), y.mean(), rtol=1e-5)


@pytest.mark.parametrize("loss", LOSSES_OF_CLASSES)
def test_alpha_and_C_are_two_forms_of_one_model(loss):
    X, score = numeric_sample()
    y = score > 0
    first = lw.RuleClassifier(**SETTINGS, loss=loss).fit(X, y)
    omega = omega_of(first)
    cost = omega / (0.03 * len(X))
    second = lw.RuleClassifier(C=cost, loss=loss, tol=1e-7).fit(X, y)
    losses = (first.objective_ - 0.03 * omega) * len(X)
    assert_allclose(second.objective_, 0.5 * omega**2 + cost * losses, rtol=1e-6)
    if loss != "hinge":  # whose best weights are a whole face
        assert_allclose(second.alpha_, 0.03, rtol=1e-2)


def test_without_alpha_and_C_alpha_is_a_hundredth():
    X, score = numeric_sample()
    model = lw.RuleClassifier().fit(X, score > 0)
    assert model.alpha_ == 0.01
    assert model.objective_ == lw.RuleClassifier(alpha=0.01).fit(X, score > 0).objective_


# --- rules ----------------------------------------------------------------------------------------


def test_max_length_and_length_penalty():
    X, score = numeric_sample(100)
    longest = {}
    for most in (1, 2, None):
        model = lw.RuleRegressor(alpha=0.005, length_penalty=0.2, max_length=most).fit(X, score)
        longest[most] = max(len(rule) for rule in model.rules_)
    assert longest[1] == 1
    assert longest[2] == 2
    assert longest[None] > 2
    dear = lw.RuleRegressor(alpha=0.005, length_penalty=20.0).fit(X, score)
    assert all(len(rule) == 1 for rule in dear.rules_)


def test_n_thresholds():
    X, score = numeric_sample(200)
    for k in (1, 3):
        model = lw.RuleRegressor(alpha=0.001, n_thresholds=k).fit(X, score)
        used = {(c.feature, c.value) for rule in model.rules_ for c in rule.conditions}
        assert len(used) <= k * X.shape[1]


@pytest.mark.parametrize("linear_terms", [False, True])
@pytest.mark.parametrize("given", [{"x0": 1, 1: -1}, [1, -1, 0], {0: 1, -2: -1}])
def test_monotone_constraints(linear_terms, given):
    X, score = numeric_sample(100)
    y = score - 0.7 * X[:, 0] + 0.7 * X[:, 1]  # against the constraints
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    settings = {"alpha": 0.005, "linear_terms": linear_terms}
    model = lw.RuleRegressor(**settings, monotonic_cst=given).fit(frame, y)
    free = lw.RuleRegressor(**settings).fit(frame, y)
    steps = np.linspace(-3, 3, 61)
    for column, direction in (("x0", 1), ("x1", -1)):
        for k in range(0, 100, 10):
            line = pd.DataFrame([frame.iloc[k]] * len(steps)).assign(**{column: steps})
            rises = direction * np.diff(model.predict(line))
            assert rises.min() >= -1e-12
    assert model.objective_ > free.objective_


def test_monotone_constraints_on_classes_booleans_and_orders():
    frame = mixed_frame(150)
    y = planted_scores(frame) - 1.0 * frame["smoker"] > -0.5
    constraints = {"smoker": 1, "size": -1}
    model = lw.RuleClassifier(alpha=0.003, monotonic_cst=constraints).fit(frame, y)
    yes, no = (model.decision_function(frame.assign(smoker=value)) for value in (True, False))
    assert np.all(yes >= no - 1e-12)
    orders = [
        model.decision_function(frame.assign(size=frame["size"].cat.set_categories(
            ["S", "M", "L"]).map(lambda _, s=s: s).astype(frame["size"].dtype)))
        for s in ("S", "M", "L")
    ]  # fmt: skip
    assert np.all(np.diff(orders, axis=0) <= 1e-12)


def test_linear_terms_find_a_line():
    X, score = numeric_sample(100)
    y = 2.0 * X[:, 0] + 0.05 * score
    plain = lw.RuleRegressor(alpha=0.01).fit(X, y)
    model = lw.RuleRegressor(alpha=0.01, linear_terms=True).fit(X, y)
    assert "x0" in [term.feature for term in model.rules_.linear_terms]
    assert len(model.rules_) < len(plain.rules_)
    assert model.objective_ < plain.objective_
    parts = model.explain(X)
    assert_array_equal(parts.sum(axis=1), model.rules_.decision_function(X))
    missing = X.copy()
    missing[0, 0] = np.nan
    assert np.isfinite(model.predict(missing)).all()


def test_relax_refits_the_same_rules():
    X, score = numeric_sample(100)
    plain = lw.RuleRegressor(**SETTINGS).fit(X, score)
    full = lw.RuleRegressor(**SETTINGS, relax=1.0).fit(X, score)
    assert set(full.rules_.rule_names) <= set(plain.rules_.rule_names)
    assert full.certificate_ == plain.certificate_
    assert np.abs(full.coef_).sum() > np.abs(plain.coef_).sum()
    held = plain.transform(X).astype(float)
    design = np.column_stack([held, np.ones(len(X))])
    fitted = design @ np.linalg.lstsq(design, score, rcond=None)[0]
    errors = [((score - p) ** 2).mean() for p in (fitted, full.predict(X), plain.predict(X))]
    assert errors[0] <= errors[1] < errors[2]
    assert errors[1] - errors[0] < 0.1 * (errors[2] - errors[0])


def test_concavity_shrinks_less():
    X, score = numeric_sample(150)
    plain = lw.RuleRegressor(alpha=0.05).fit(X, score)
    concave = lw.RuleRegressor(alpha=0.05, concavity=1.0).fit(X, score)
    assert "stage" in concave.certificate_.method
    assert concave.certificate_.relative_gap <= 1e-3
    assert concave.score(X, score) > plain.score(X, score)
    zero = lw.RuleRegressor(alpha=0.05, concavity=0.0).fit(X, score)
    assert_array_equal(zero.coef_, plain.coef_)


# --- what changes nothing -------------------------------------------------------------------------


def test_threads_change_nothing():
    frame = mixed_frame(150)
    y = planted_scores(frame)
    one, two = (lw.RuleRegressor(alpha=0.005, n_jobs=n_jobs).fit(frame, y) for n_jobs in (1, 2))
    assert_array_equal(one.coef_, two.coef_)
    assert one.rules_.rule_names == two.rules_.rule_names
    assert one.certificate_ == two.certificate_


def test_fits_leave_the_parameters_and_the_data_alone():
    frame = mixed_frame()
    y = planted_scores(frame)
    before, y_before = frame.copy(deep=True), y.copy()
    alphas, relax = np.array([0.1, 0.01]), [0.0, 1.0]
    model = lw.RuleRegressorCV(alphas, relax=relax, cv=2)
    model.fit(frame, y)
    pd.testing.assert_frame_equal(frame, before)
    assert_array_equal(y, y_before)
    assert model.alphas is alphas
    assert model.relax is relax
    assert not hasattr(clone(model), "rules_")


def test_warm_starts_reach_the_same_optimum():
    X, score = numeric_sample(100)
    cold = lw.RuleRegressor(alpha=0.01, tol=1e-7).fit(X, score)
    warm = lw.RuleRegressor(alpha=0.02, tol=1e-7, warm_start=True).fit(X, score)
    warm.set_params(alpha=0.01).fit(X, score)
    assert_allclose(warm.objective_, cold.objective_, rtol=1e-6)
    assert warm.rules_.rule_names == cold.rules_.rule_names
    other = mixed_frame()  # other columns: nothing to begin with
    warm.fit(other, planted_scores(other))
    fresh = lw.RuleRegressor(alpha=0.01, tol=1e-7).fit(other, planted_scores(other))
    assert_allclose(warm.objective_, fresh.objective_, rtol=1e-6)


def test_verbose_prints_a_line_for_every_alpha(capsys):
    X, score = numeric_sample()
    lw.RuleRegressor(alpha=0.01).fit(X, score)
    assert capsys.readouterr().out == ""
    lw.RuleRegressor(alpha=0.01, verbose=1).fit(X, score)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert all(line.startswith("[RuleRegressor] alpha ") for line in lines)
    assert "alpha 0.01:" in lines[-1]
