"""Tables and targets of all kinds: the same model from any container, any labels, several tasks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tests.samples import mixed_frame, numeric_sample, planted_scores

import latticework as lw

SETTINGS = {"alpha": 0.03, "tol": 1e-6}


def rows_of(frame):
    """A frame as rows of Python objects."""
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.to_numpy(object)]


CONTAINERS = {
    "pandas": lambda frame: frame,
    "pandas with any index": lambda frame: frame.set_axis(np.arange(len(frame)) * 7 % 101),
    "pandas of objects": lambda frame: frame.astype(object),
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "numpy of objects": lambda frame: np.array(rows_of(frame), dtype=object),
    "lists": rows_of,
}


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_any_container_gives_the_same_model(container):
    frame = mixed_frame().drop(columns="size")  # only pandas and pyarrow know its order
    y = planted_scores(frame) > 0
    expected = lw.RuleClassifier(**SETTINGS).fit(frame, y)
    X = CONTAINERS[container](frame)
    model = lw.RuleClassifier(**SETTINGS).fit(X, y)
    assert model.objective_ == expected.objective_
    assert_array_equal(model.coef_, expected.coef_)
    assert_array_equal(model.predict_proba(X), expected.predict_proba(frame))
    named = not isinstance(X, (list, np.ndarray))
    assert hasattr(model, "feature_names_in_") == named
    if named:
        assert model.rules_.rule_names == expected.rules_.rule_names
        # One library's model reads another's frames.
        assert_array_equal(model.predict(frame), expected.predict(frame))


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_targets_come_in_any_container_too(make):
    frame = mixed_frame()
    table = make(frame.assign(target=planted_scores(frame)))
    expected = lw.RuleRegressor(**SETTINGS).fit(frame, planted_scores(frame))
    model = lw.RuleRegressor(**SETTINGS).fit(frame, table["target"])
    assert_array_equal(model.coef_, expected.coef_)


def test_ordered_categories_are_thresholds_in_pandas_and_pyarrow():
    frame = mixed_frame(120)[["size"]]
    y = (frame["size"] > "S").to_numpy()
    for X in (frame, pa.Table.from_pandas(frame)):
        model = lw.RuleClassifier(alpha=0.01, length_penalty=0).fit(X, y)
        assert {str(rule) for rule in model.rules_} <= {"size > S", "size <= S"}


def test_missing_cells_are_a_condition_of_their_own():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    x[rng.random(100) < 0.4] = np.nan
    model = lw.RuleClassifier(alpha=0.01).fit(x[:, None], np.isnan(x))
    assert "x0 is missing" in model.rules_.rule_names
    assert_array_equal(model.predict([[np.nan], [0.0]]), [True, False])
    rows = model.transform([[np.nan]])[0]
    held = [name for name, holds in zip(model.rules_.rule_names, rows, strict=True) if holds]
    assert held == ["x0 is missing"]


def test_cells_missing_only_at_prediction_satisfy_no_condition():
    X, score = numeric_sample()
    model = lw.RuleRegressor(**SETTINGS).fit(X, score)
    nothing = np.full((1, X.shape[1]), np.nan)
    assert not model.transform(nothing).any()
    assert_allclose(model.predict(nothing), model.intercept_)


def test_unseen_categories_satisfy_unequal_only():
    frame = mixed_frame()
    model = lw.RuleClassifier(alpha=0.005, length_penalty=0.2)
    model.fit(frame[["colour", "age"]], planted_scores(frame) > 0)
    unseen = pd.DataFrame({"colour": ["zzz"], "age": [np.nan]})
    expected = [
        all(c.operator == "!=" or str(c) == "age is missing" for c in rule.conditions)
        for rule in model.rules_
    ]
    assert any(expected)
    assert_array_equal(model.transform(unseen)[0], expected)


def test_categorical_features_and_given_thresholds():
    X, score = numeric_sample()
    X[:, 2] = np.random.default_rng(0).integers(0, 3, len(X))
    model = lw.RuleRegressor(**SETTINGS, categorical_features=[2]).fit(X, X[:, 2] == 1)
    assert any("x2 ==" in name for name in model.rules_.rule_names)
    own = lw.Propositionalizer(thresholds={0: [0.0], 1: [0.5], 2: [1.0]})
    model = lw.RuleRegressor(**SETTINGS, conditions=own).fit(X, score)
    used = {c.value for rule in model.rules_ for c in rule.conditions}
    assert used <= {0.0, 0.5, 1.0}
    assert not hasattr(own, "conditions_")  # the user's own object is left as it was


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix, pd.DataFrame])
def test_as_is(make):
    rng = np.random.default_rng(0)
    truths = rng.random((80, 6)) < 0.5
    y = truths[:, 0] & truths[:, 3]
    expected = lw.RuleClassifier(alpha=0.01, length_penalty=0, conditions="as-is").fit(truths, y)
    assert "x0 AND x3" in expected.rules_.rule_names
    for dtype in (bool, int, float):
        X = make(truths.astype(dtype))
        model = lw.RuleClassifier(alpha=0.01, length_penalty=0, conditions="as-is").fit(X, y)
        assert_array_equal(model.coef_, expected.coef_)
        assert_array_equal(model.predict(X), y)
        assert_array_equal(model.transform(X), expected.transform(truths))


def test_columns_that_tell_nothing():
    n = 40
    X = pd.DataFrame({"one": np.ones(n), "gone": np.full(n, np.nan), "word": ["x"] * n})
    for y in (np.arange(n) % 2, np.arange(n) % 3):
        model = lw.RuleClassifier(**SETTINGS).fit(X, y)
        assert len(model.rules_) == 0
        assert model.certificate_.complete
        assert_allclose(model.predict_proba(X)[0], np.bincount(y) / n, atol=1e-9)


@pytest.mark.parametrize("kind", ["floats", "truths", "words", "words of a dictionary"])
def test_labels_in_arrow_arrays(kind):
    X, score = numeric_sample()
    if kind == "floats":
        model, plain, target = lw.RuleRegressor(**SETTINGS), lw.RuleRegressor(**SETTINGS), score
    else:
        model, plain = lw.RuleClassifier(**SETTINGS), lw.RuleClassifier(**SETTINGS)
        target = score > 0 if kind == "truths" else np.where(score > 0, "yes", "no")
    whole = pa.array(target)
    whole = whole.dictionary_encode() if kind == "words of a dictionary" else whole
    plain.fit(X, target)
    for labels in (whole, pa.chunked_array([whole[:20], whole[20:]])):
        assert_array_equal(model.fit(X, labels).coef_, plain.coef_)
        assert_array_equal(model.predict(X), plain.predict(X))
        tasks = pa.array(["a", "b"] * 30)
        assert model.fit(X, labels, tasks=tasks).rules_.outputs == ("a", "b")
    with pytest.raises(ValueError, match="1 of 60 labels are missing"):
        model.fit(X, pa.array([None, *target[1:].tolist()]))


@pytest.mark.parametrize(
    "kind",
    [
        np.asfortranarray,
        lambda X: X.astype(">f8"),
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: pd.DataFrame(X, columns=list("abc")).astype("Float64"),
        lambda X: pd.DataFrame(X, columns=list("abc")).astype("double[pyarrow]"),
        lambda X: pd.DataFrame(X, columns=list("abc"), index=[0] * len(X)),
        lambda X: tuple(map(tuple, X)),
    ],
)
def test_layouts_and_number_types_change_nothing(kind):
    X, score = numeric_sample()
    fixed = X.copy()
    fixed.flags.writeable = False
    expected = lw.RuleRegressor(**SETTINGS).fit(fixed, score)
    assert_array_equal(lw.RuleRegressor(**SETTINGS).fit(kind(X), score).coef_, expected.coef_)
    assert_array_equal(
        lw.RuleRegressor(**SETTINGS).fit(X, score.astype(">f8")).coef_, expected.coef_
    )


# --- labels ---------------------------------------------------------------------------------------


LABELS = {
    "booleans": [False, True],
    "whole numbers": [-7, 12],
    "zero and one": [0, 1],
    "numbers": [1.0, 2.0],
    "strings": ["healthy", "ill"],
    "objects": np.array(["a", "b"], dtype=object),
    "truths as objects": np.array([False, True], dtype=object),
    "whole numbers as objects": np.array([3, 8], dtype=object),
    "large": [2**40, 2**53 + 1],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_any_two_labels(labels):
    X, score = numeric_sample()
    labels = np.asarray(labels)
    y = labels[(score > 0).astype(int)]
    model = lw.RuleClassifier(**SETTINGS).fit(X, y)
    assert_array_equal(model.classes_, labels)
    predicted = model.predict(X)
    assert set(predicted.tolist()) <= set(labels.tolist())
    scores = model.decision_function(X)
    assert scores.shape == (len(X),)
    assert_array_equal(predicted, labels[(scores > 0).astype(int)])
    expected = lw.RuleClassifier(**SETTINGS).fit(X, score > 0)
    assert_array_equal(model.coef_, expected.coef_)
    assert np.mean(predicted == y) > 0.7


def test_labels_of_pandas_series():
    frame = mixed_frame()
    y = pd.Series(planted_scores(frame) > 0, index=np.arange(len(frame))[::-1])
    expected = lw.RuleClassifier(**SETTINGS).fit(frame, y.to_numpy())
    for labels in (y, y.astype("boolean"), y.astype("category"), y.astype(int).astype("Int64")):
        model = lw.RuleClassifier(**SETTINGS).fit(frame, labels)
        assert_array_equal(model.coef_, expected.coef_)  # by position, never by index


@pytest.mark.parametrize("multiclass", ["softmax", "one-vs-rest"])
@pytest.mark.parametrize("labels", [["a", "b", "c"], [3, 10, -2]])
def test_several_classes(multiclass, labels):
    X, score = numeric_sample(120)
    y = np.sort(labels)[np.digitize(score, [-0.5, 0.8])]
    model = lw.RuleClassifier(alpha=0.01, multiclass=multiclass).fit(X, y)
    assert_array_equal(model.classes_, np.sort(labels))
    scores, chances = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == chances.shape == (120, 3)
    assert model.coef_.shape == (len(model.rules_), 3)
    assert model.intercept_.shape == (3,)
    assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
    assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert_array_equal(model.predict(X), model.classes_[chances.argmax(axis=1)])
    assert_allclose(np.exp(model.predict_log_proba(X)), chances)
    assert model.score(X, y) > 0.7


def test_softmax_scores_sum_to_zero_in_the_intercept():
    X, score = numeric_sample(90)
    model = lw.RuleClassifier(**SETTINGS).fit(X, np.digitize(score, [-0.5, 0.8]))
    assert_allclose(model.intercept_.sum(), 0.0, atol=1e-12)


def test_two_classes_of_softmax_are_the_binary_problem():
    X, score = numeric_sample()
    y = (score > 0).astype(int)
    chances = lw.RuleClassifier(**SETTINGS).fit(X, y).predict_proba(X)
    assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-15)
    one = lw.RuleClassifier(**SETTINGS, multiclass="one-vs-rest").fit(X, y)
    assert_array_equal(one.predict_proba(X), chances)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_hinges_have_no_probabilities_but_one_vs_rest(loss):
    X, score = numeric_sample(90)
    model = lw.RuleClassifier(**SETTINGS, loss=loss, multiclass="one-vs-rest")
    assert not hasattr(model, "predict_proba")
    model.fit(X, np.digitize(score, [-0.5, 0.8]))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)
    assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
