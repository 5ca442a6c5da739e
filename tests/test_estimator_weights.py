"""Weights of rows and classes mean what repeated rows would."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
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
from latticework.estimators.equal_rows import equal_rows

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
SETTINGS = {"alpha": 0.03, "tol": 1e-7}


def estimator_for(loss, **changes):
    kind = lw.RuleClassifier if loss in LOSSES_OF_CLASSES else lw.RuleRegressor
    return kind(**{**SETTINGS, "loss": loss, **changes})


def assert_same_model(one, other, X):
    """The same rules with the same weights, the same objective and predictions."""
    names = sorted(one.rules_.rule_names)
    assert names == sorted(other.rules_.rule_names)
    coefs = [
        [dict(zip(model.rules_.rule_names, model.coef_, strict=True))[name] for name in names]
        for model in (one, other)
    ]
    assert_allclose(*coefs, **CLOSE)
    assert_allclose(one.intercept_, other.intercept_, **CLOSE)
    assert_allclose(one.objective_, other.objective_, **CLOSE)
    assert_allclose(one.lower_bound_, other.lower_bound_, rtol=1e-6, atol=1e-6)
    scores = [model.rules_.decision_function(X) for model in (one, other)]
    assert_allclose(*scores, **CLOSE)


def draw_repeats(n, seed=5):
    return np.random.default_rng(seed).integers(0, 4, n)


def repeated(frame, times):
    return frame.loc[np.repeat(np.arange(len(frame)), times)].reset_index(drop=True)


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*LOSSES_OF_CLASSES, *LOSSES_OF_NUMBERS])
def test_weights_are_repeated_rows(loss):
    frame = mixed_frame()
    y, times = target_for(loss, planted_scores(frame)), draw_repeats(len(frame))
    weighted = estimator_for(loss).fit(frame, y, sample_weight=times)
    copies = estimator_for(loss).fit(repeated(frame, times), np.repeat(y, times))
    assert len(weighted.rules_) > 0
    assert_same_model(weighted, copies, frame)
    for one, other in zip(weighted.rules_, copies.rules_, strict=True):
        assert str(one) == str(other)
        assert_allclose([one.support, one.lift], [other.support, other.lift], **CLOSE)


def bits_of(model):
    """Everything a fit says, to the last bit; counts of rows aside."""
    rules = model.rules_
    return (
        str(rules), rules.weights.tobytes(), rules.intercept, model.certificate_,
        [(rule.support, rule.precision, rule.mean, rule.lift) for rule in rules],
        [term.to_dict() for term in rules.linear_terms],
    )  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        *({"loss": loss} for loss in [*LOSSES_OF_CLASSES, *LOSSES_OF_NUMBERS]),
        {"loss": "squared_error", "linear_terms": True},
        {"loss": "squared_error", "relax": 1.0, "length_penalty": 0},
        {"loss": "log_loss", "concavity": 1.0, "alpha": None, "C": 0.5},
    ],
    ids=str,
)
def test_repeated_rows_weights_and_any_order_give_the_same_bits(settings):
    frame = mixed_frame()
    y, times = target_for(settings["loss"], planted_scores(frame)), draw_repeats(len(frame))
    copies, labels = repeated(frame, times), np.repeat(y, times)
    order = np.random.default_rng(0).permutation(len(copies))
    settings = {**settings, "tol": 1e-3}
    weighted = estimator_for(**settings).fit(frame, y, sample_weight=times)
    shuffled = estimator_for(**settings).fit(copies.loc[order], labels[order])
    assert bits_of(weighted) == bits_of(shuffled)
    assert [rule.count for rule in shuffled.rules_] == shuffled.transform(copies).sum(
        axis=0
    ).tolist()


def test_as_is_and_several_classes_give_the_same_bits_too():
    rng = np.random.default_rng(1)
    X, y, times = rng.random((40, 5)) < 0.4, rng.integers(0, 3, 40), draw_repeats(40)
    order = rng.permutation(times.sum())
    many = np.repeat(X, times, axis=0)[order], np.repeat(y, times)[order]
    for kind in (np.asarray, sparse.csr_array):
        model = lw.RuleClassifier(alpha=0.01, conditions="as-is")
        weighted = bits_of(model.fit(kind(X), y, sample_weight=times))
        assert weighted == bits_of(model.fit(kind(many[0]), many[1]))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_equal_rows_are_found(kind):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (300, 6)).astype(np.uint8)
    values = rng.choice([0.0, -0.0, 1.0, 2.0, 4.0], (300, 2))  # whose low bits are all zero
    first, place = equal_rows(kind(codes.astype(bool)), [values, values[:, 0] > 0])
    whole = np.column_stack([codes, values])
    assert len(first) == len(np.unique(whole + 0.0, axis=0))
    assert_array_equal(whole[first][place], whole)
    again = rng.permutation(300)
    first_again, _ = equal_rows(
        kind(codes[again].astype(bool)), [values[again], values[again, 0] > 0]
    )
    assert_array_equal(whole[again][first_again] + 0.0, whole[first] + 0.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"linear_terms": True},
        {"relax": 1.0},
        {"concavity": 1.0},
        {"length_penalty": 0.5, "max_length": 2},
        {"n_thresholds": 3},
        {"monotonic_cst": {"age": 1}},
        {"conditions": lw.Propositionalizer(thresholds={"age": [40, 48], "count": [2]})},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_weights_are_repeated_rows_with_options(changes):
    frame = mixed_frame()
    y, times = planted_scores(frame), draw_repeats(len(frame))
    model = lw.RuleRegressor(**{**SETTINGS, **changes})
    weighted = model.fit(frame, y, sample_weight=times)
    copies = lw.RuleRegressor(**{**SETTINGS, **changes}).fit(
        repeated(frame, times), np.repeat(y, times)
    )
    assert_same_model(weighted, copies, frame)


@pytest.mark.parametrize("multiclass", ["softmax", "one-vs-rest"])
def test_weights_are_repeated_rows_with_several_classes(multiclass):
    frame = mixed_frame(120)
    y = np.digitize(planted_scores(frame), [-0.5, 0.7])
    times = draw_repeats(len(frame))
    model = lw.RuleClassifier(**SETTINGS, multiclass=multiclass)
    weighted = model.fit(frame, y, sample_weight=times)
    copies = lw.RuleClassifier(**SETTINGS, multiclass=multiclass).fit(
        repeated(frame, times), np.repeat(y, times)
    )
    assert_same_model(weighted, copies, frame)


def test_weights_are_repeated_rows_with_several_targets():
    frame = mixed_frame()
    Y = np.column_stack([planted_scores(frame, seed) for seed in range(2)])
    Y[::7, 1] = np.nan
    times = draw_repeats(len(frame))
    weighted = lw.RuleRegressor(**SETTINGS).fit(frame, Y, sample_weight=times)
    copies = lw.RuleRegressor(**SETTINGS).fit(repeated(frame, times), np.repeat(Y, times, axis=0))
    assert_same_model(weighted, copies, frame)


def test_rows_of_weight_zero_are_no_rows():
    frame = mixed_frame()
    y = planted_scores(frame)
    kept = np.arange(len(frame)) % 4 > 0
    odd = frame.copy()
    odd.loc[~kept, ["age", "count"]] = 1e6  # would move thresholds if it counted
    strange = np.where(kept, y, 1e9)
    weighted = lw.RuleRegressor(**SETTINGS).fit(odd, strange, sample_weight=kept.astype(float))
    removed = lw.RuleRegressor(**SETTINGS).fit(frame[kept], y[kept])
    assert_same_model(weighted, removed, frame)


def test_the_scale_of_weights_is_nothing_with_alpha_and_C_times_it_with_C():
    X, score = numeric_sample()
    y, weight = score > 0, draw_repeats(len(X)) + 1.0
    one = lw.RuleClassifier(**SETTINGS).fit(X, y, sample_weight=weight)
    ten = lw.RuleClassifier(**SETTINGS).fit(X, y, sample_weight=10 * weight)
    assert_same_model(one, ten, X)
    cost = lw.RuleClassifier(C=0.1, tol=1e-7).fit(X, y, sample_weight=10 * weight)
    same = lw.RuleClassifier(C=1.0, tol=1e-7).fit(X, y, sample_weight=weight)
    assert_same_model(cost, same, X)


def test_weights_may_be_any_vector():
    frame = mixed_frame()
    y, times = planted_scores(frame), draw_repeats(len(frame))
    models = [
        lw.RuleRegressor(**SETTINGS).fit(frame, y, sample_weight=weight)
        for weight in (times, times.tolist(), frame["count"] * 0 + times, times.astype("f4"))
    ]
    for model in models[1:]:
        assert_same_model(models[0], model, frame)


# --- classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES_OF_CLASSES)
@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 3.0, "no": 0.5}, {"yes": 2.0}])
def test_class_weights_are_weights_of_rows(loss, class_weight):
    frame = mixed_frame()
    score = planted_scores(frame)
    y = np.where(score > np.quantile(score, 0.7), "yes", "no")
    given = draw_repeats(len(frame)) + 1.0
    if class_weight == "balanced":
        mass = {label: given[y == label].sum() for label in ("no", "yes")}
        factor = {label: given.sum() / (2 * mass[label]) for label in mass}
    else:
        factor = {"no": 1.0, **class_weight}
    rows = given * np.array([factor[label] for label in y])
    model = estimator_for(loss, class_weight=class_weight).fit(frame, y, sample_weight=given)
    same = estimator_for(loss).fit(frame, y, sample_weight=rows)
    assert_same_model(model, same, frame)


@pytest.mark.parametrize("multiclass", ["softmax", "one-vs-rest"])
def test_class_weights_with_several_classes(multiclass):
    X, score = numeric_sample(90)
    y = np.digitize(score, [-0.6, 0.9])
    factor = {0: 2.0, 1: 1.0, 2: 0.25}
    settings = {**SETTINGS, "multiclass": multiclass}
    model = lw.RuleClassifier(**settings, class_weight=factor).fit(X, y)
    same = lw.RuleClassifier(**settings).fit(X, y, sample_weight=[factor[label] for label in y])
    assert_same_model(model, same, X)


def test_class_weights_of_several_labels_count_in_each():
    X, score = numeric_sample()
    Y = np.column_stack([score > 0.2, X[:, 1] + 0.3 * score > 0]).astype(int)
    one = lw.RuleClassifier(**SETTINGS, class_weight="balanced").fit(X, Y)
    balanced = one.predict_proba(X).mean(axis=0)
    plain = lw.RuleClassifier(**SETTINGS).fit(X, Y).predict_proba(X).mean(axis=0)
    assert np.all(np.abs(balanced - 0.5) <= np.abs(plain - 0.5) + 1e-9)
