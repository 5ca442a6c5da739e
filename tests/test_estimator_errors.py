"""Bad input is refused, with the column or parameter and the remedy in the message."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from tests.samples import mixed_frame, numeric_sample, planted_scores

import latticework as lw

X, SCORE = numeric_sample()
Y = SCORE > 0
N = len(X)
THREE = np.arange(N) % 3
ONES = np.ones(N)
FRAME = mixed_frame()
FRAME_Y = planted_scores(FRAME) > 0
NAN, INF = float("nan"), float("inf")


def fit_classifier(X, y, **parameters):
    return lw.RuleClassifier(**parameters).fit(X, y)


# --- tables ---------------------------------------------------------------------------------------

TABLES = {
    "nothing": (None, "X is None. Give a frame"),
    "a word": ("abc", "X is a str"),
    "a dict": ({"a": [1, 2]}, r"a dict of columns as pandas.DataFrame\(X\)"),
    "a vector": (X[:, 0], "Expected 2D array, got 1D array.*reshape"),
    "a series": (FRAME["age"], "Expected 2D array, got 1D array"),
    "three dimensions": (X[None], "dim 3"),
    "ragged rows": ([[1, 2], [3]], "rows of 1 and of 2 cells"),
    "no rows": (np.empty((0, 3)), "0 sample"),
    "no columns": (pd.DataFrame(index=range(N)), "0 feature"),
    "infinity": (FRAME.assign(age=INF), "infinity.*column 'age'.*finite bound"),
    "complex": (X + 1j, "Complex data not supported: column 'x0'"),
    "complex column": (FRAME.assign(z=1j), "column 'z' holds complex"),
    "times": (FRAME.assign(d=pd.Timestamp("2020-01-01")), "column 'd' holds Datetime.*days since"),
    "durations": (FRAME.assign(d=pd.Timedelta(1, "h")), "column 'd' holds Duration"),
    "dates": (FRAME.assign(d=datetime.date(2020, 1, 1)), "column 'd' holds datetime.date"),
    "times in numpy": (np.full((N, 2), np.datetime64("2020")), "column 'x0' holds datetime64"),
    "numbers and words": (FRAME.assign(d=[1, "a"] * 40), "'d' mixes numbers and strings: convert"),
    "bytes": (FRAME.assign(d=b"a"), "column 'd' holds b'a' of type bytes"),
    "lists in cells": (FRAME.assign(d=[[1]] * 80), r"column 'd' holds \[1\] of type list"),
    "intervals": (pd.DataFrame({"a": pd.cut(X[:, 0], 3)}), "column 'a' has a category Interval"),
    "dated categories": (
        pd.DataFrame({"a": pd.Categorical(pd.to_datetime(["2020", "2021"] * 30))}),
        "column 'a' has a category Timestamp",
    ),
    "equal names": (pd.DataFrame(X, columns=["a", "a", "b"]), r"unique; rename.*\['a'\]"),
    "names of several types": (pd.DataFrame(X, columns=["a", 1, "b"]), "string names"),
    "lazy": (pl.DataFrame(X).lazy(), r"lazy frame.*X.collect\(\)"),
    "sparse": (sparse.csr_array(X), r"X.toarray\(\), or use conditions='as-is'"),
    "masked": (np.ma.masked_array(X, X > 1), r"X is a masked array.*filled\(numpy.nan\)"),
    "inexact": (np.arange(N)[:, None] + 2**60, r"column 'x0' holds integers beyond 2\*\*53"),
    "pyarrow lists": (pa.table({"a": [[1]] * N}), "column 'a' holds List"),
}


@pytest.mark.parametrize(("table", "message"), TABLES.values(), ids=TABLES.keys())
def test_tables_that_are_refused(table, message):
    kinds = (lw.RuleClassifier(), lw.RuleRegressorCV(n_alphas=2, cv=2), lw.Propositionalizer())
    for estimator in kinds:
        with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
            estimator.fit(table, np.arange(80) % 2)


AS_IS = {
    "numbers": (sparse.csr_array(X), "column 'x0' holds 0.13: pass such columns"),
    "missing": (FRAME[["age"]], "no cell may be missing.*column 'age'.*fill them"),
    "words": (FRAME[["colour"]].fillna("red"), "column 'colour' holds '(blue|green|red)'"),
}


@pytest.mark.parametrize(("table", "message"), AS_IS.values(), ids=AS_IS.keys())
def test_tables_that_are_no_conditions(table, message):
    with pytest.raises(ValueError, match=message):
        fit_classifier(table, np.arange(table.shape[0]) % 2, conditions="as-is")


# --- labels, targets, tasks and weights -----------------------------------------------------------

LABELS = {
    "none": (None, "requires y"),
    "too few": (Y[:5], "X has 60 rows and y has 5"),
    "one class": (ONES, "at least 2 classes.*only one class: 1.0"),
    "unknown": (np.where(Y, 1, NAN), "37 of 60 labels are missing. Drop the rows"),
    "none among words": (np.where(Y, "a", None), "37 of 60 labels are missing"),
    "numbers": (SCORE, "Unknown label type: continuous"),
    "dates": (np.where(Y, np.datetime64("2020"), np.datetime64("2021")), "y holds dates or times"),
    "a cube": (np.zeros((N, 2, 2)), "y must be a vector, or a matrix"),
    "words and numbers": (np.array([1, "a"] * 30, dtype=object), "mixes strings"),
    "a matrix of classes": (np.column_stack([2 * Y, Y]), "must hold 0 and 1 only.*use a regressor"),
    "a constant label": (np.column_stack([Y, 0 * Y]), "Label 1 of y has only one class"),
    "sparse": (sparse.csr_array(np.column_stack([Y, ~Y]) * 1), r"y.toarray\(\)"),
    "masked": (np.ma.masked_array(Y * 1, ~Y), "y is a masked array"),
    "a dict": ({"a": 1}, "y must be a vector"),
    "bytes": (np.where(Y, b"a", b"b"), "bytes is not supported"),
}


@pytest.mark.parametrize(("labels", "message"), LABELS.values(), ids=LABELS.keys())
def test_labels_that_are_refused(labels, message):
    for estimator in (lw.RuleClassifier(), lw.RuleClassifierCV(n_alphas=2, cv=2)):
        with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
            estimator.fit(X, labels)


TARGETS = {
    "infinite": (np.where(Y, INF, 1), {}, "y contains infinity"),
    "unknown": (np.where(Y, NAN, 1), {}, "23 of 60 labels are missing"),
    "words": (np.where(Y, "1", "2"), {}, "y of a regressor must be numbers"),
    "complex": (SCORE + 1j, {}, "Complex data not supported in y"),
    "durations": (np.arange(N).astype("m8[s]"), {}, "y holds dates or times"),
    "huge": (1e200 * SCORE, {}, "losses overflow beyond 1e\\+100: divide y"),
    "inexact": (np.arange(N) + 2**60, {}, r"beyond 2\*\*53"),
    "negative counts": (SCORE, {"loss": "poisson"}, "needs targets >= 0, but 37 are negative"),
    "no counts": (0 * SCORE, {"loss": "poisson"}, "needs a target above 0"),
    "an unknown target": (np.column_stack([SCORE, NAN * SCORE]), {}, "Target 1 of y has no known"),
}


@pytest.mark.parametrize(("targets", "parameters", "message"), TARGETS.values(), ids=TARGETS.keys())
def test_targets_that_are_refused(targets, parameters, message):
    with pytest.raises(ValueError, match=message):
        lw.RuleRegressor(**parameters).fit(X, targets)


WEIGHTS = {
    "negative": (-ONES, "Negative values"),
    "unknown": (NAN * ONES, "sample_weight contains NaN"),
    "infinite": (INF * ONES, "sample_weight contains infinity"),
    "too few": (ONES[:3], r"sample_weight.shape == \(3,\), expected \(60,\)"),
    "all zero": (0 * ONES, "at least one non-zero"),
    "words": (["1"] * N, "must hold numbers"),
    "words among objects": (np.array(["1"] * N, dtype=object), "must hold numbers"),
    "a dict": ({"a": 1}, "must hold numbers"),
    "complex": (1j * ONES, "must hold numbers"),
    "a matrix": (ONES[:, None], "1D array or scalar"),
    "masked": (np.ma.masked_array(ONES, Y), "sample_weight is a masked array"),
    "a class without": (Y * 1.0, "All rows of the class False have sample_weight 0"),
}


@pytest.mark.parametrize(("weight", "message"), WEIGHTS.values(), ids=WEIGHTS.keys())
def test_weights_that_are_refused(weight, message):
    with pytest.raises((TypeError, ValueError), match=message):
        lw.RuleClassifier().fit(X, Y, sample_weight=weight)


TASKS = {
    "too few": ([1, 2], Y, r"task of each of the 60 rows, got an array of shape \(2,\)"),
    "unknown": (np.where(Y, NAN, 1), Y, "tasks has missing entries"),
    "a word": ("abc", Y, "must name the task of each"),
    "a matrix": (np.ones((N, 2)), Y, "must name the task of each"),
    "three classes": (np.arange(N) % 2, THREE, "two classes, got 3"),
    "one class in a task": (Y, Y, "task 'False' has only one class"),
    "a matrix of labels": (Y, np.column_stack([Y, ~Y]), "one label per row, got a matrix"),
    "words and numbers": (np.array([1, "1"] * 30, dtype=object), Y, "tasks mixes strings"),
}


@pytest.mark.parametrize(("tasks", "labels", "message"), TASKS.values(), ids=TASKS.keys())
def test_tasks_that_are_refused(tasks, labels, message):
    with pytest.raises(ValueError, match=message):
        lw.RuleClassifier().fit(X, labels, tasks=tasks)


# --- parameters -----------------------------------------------------------------------------------

OF_BOTH = [
    ({"alpha": 0}, "'alpha'"),
    ({"alpha": NAN}, "'alpha'"),
    ({"alpha": True}, "alpha=True must not be a boolean"),
    ({"alpha": 1, "C": 1}, "alpha=1 and C=1 are two forms of one parameter: give one"),
    ({"C": INF}, "'C'"),
    ({"C": 1e300}, "C=1e\\+300 is beyond"),
    ({"rho": 1.5}, "rho=1.5 is not available yet.*Set rho=1"),
    ({"rho": 3}, "'rho'"),
    ({"length_penalty": -1}, "'length_penalty'"),
    ({"length_penalty": INF}, "'length_penalty'"),
    ({"loss": "squared"}, "'loss'"),
    ({"loss": lw.losses.Softmax()}, "for multiclass targets"),
    ({"max_length": 0}, "'max_length'"),
    ({"max_length": True}, "max_length=True must not be"),
    ({"n_thresholds": 2.5}, "'n_thresholds'"),
    ({"conditions": "all"}, "'conditions'"),
    ({"conditions": lw.Propositionalizer}, "'conditions'"),
    ({"conditions": lw.Propositionalizer(n_thresholds=0)}, "n_thresholds must be"),
    ({"categorical_features": "x0"}, "'categorical_features'"),
    ({"categorical_features": ["z"]}, "categorical_features mentions the column 'z'.*'x0', 'x1'"),
    ({"categorical_features": [True]}, "a mask of 1 columns, X has 3"),
    ({"categorical_features": [0], "conditions": lw.Propositionalizer()}, "has no effect"),
    ({"monotonic_cst": {"z": 1}}, "monotonic_cst mentions the column 'z'"),
    ({"monotonic_cst": {0: 2}}, "monotonic_cst of column 'x0' must be -1, 0 or 1, got 2"),
    ({"monotonic_cst": {0: "up"}}, "monotonic_cst of column 'x0'"),
    ({"monotonic_cst": {0: 1, -3: -1}}, "monotonic_cst mentions a column twice"),
    ({"monotonic_cst": [1]}, "monotonic_cst has 1 entries, but X has 3 columns"),
    ({"linear_terms": "yes"}, "'linear_terms'"),
    ({"relax": 2}, "'relax'"),
    ({"concavity": -1}, "'concavity'"),
    ({"task_coupling": np.eye(2)}, r"task_coupling must be a matrix of shape \(1, 1\)"),
    ({"task_coupling": [[NAN]]}, "task_coupling must be a symmetric matrix of finite"),
    ({"task_coupling": [[-1.0]]}, "positive semidefinite"),
    ({"task_coupling": [[0.0]]}, "must not be zero"),
    ({"task_coupling": [["a"]]}, "square matrix of numbers"),
    ({"tol": 1}, "'tol'"),
    ({"max_nodes": 0}, "'max_nodes'"),
    ({"time_limit": 0}, "'time_limit'"),
    ({"n_jobs": 0}, "n_jobs=0 has no meaning"),
    ({"n_jobs": 1.5}, "'n_jobs'"),
    ({"warm_start": 1}, "'warm_start'"),
    ({"verbose": -1}, "'verbose'"),
    ({"random_state": "a"}, "'random_state'"),
]


@pytest.mark.parametrize(("parameters", "message"), OF_BOTH, ids=str)
def test_parameters_that_are_refused(parameters, message):
    for kind, target in ((lw.RuleClassifier, Y), (lw.RuleRegressor, SCORE)):
        with pytest.raises((ValueError, NotImplementedError), match=message):
            kind(**parameters).fit(X, target)


OF_CLASSIFIERS = [
    ({"class_weight": "heavy"}, "'class_weight'"),
    ({"class_weight": {5: 1}}, r"class_weight has the labels \[5\]"),
    ({"class_weight": {1: -1}}, "positive finite numbers, got -1 for the class 1"),
    ({"class_weight": {1: "a"}}, "positive finite numbers, got 'a'"),
    ({"multiclass": "ovr"}, "'multiclass'"),
    ({"loss": "hinge"}, "no softmax form.*set multiclass='one-vs-rest'"),
    ({"monotonic_cst": {0: 1}}, "more than two classes: fit one class against the rest"),
]


@pytest.mark.parametrize(("parameters", "message"), OF_CLASSIFIERS, ids=str)
def test_parameters_of_classifiers_that_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        fit_classifier(X, THREE, **parameters)


def test_parameters_that_do_not_fit_the_columns():
    with pytest.raises(ValueError, match="column 'colour', whose categories have no order"):
        fit_classifier(FRAME, FRAME_Y, monotonic_cst={"colour": 1})
    with pytest.raises(ValueError, match="linear_terms=True needs numeric columns, but X has none"):
        fit_classifier(FRAME[["colour", "smoker"]], FRAME_Y, linear_terms=True)
    with pytest.raises(ValueError, match="linear_terms=True needs numeric columns: conditions="):
        fit_classifier(X > 0, Y, linear_terms=True, conditions="as-is")
    both = np.column_stack([SCORE, -SCORE])
    coupled = lw.RuleRegressor(monotonic_cst={0: 1}, task_coupling=[[1, 0.5], [0.5, 1]])
    with pytest.raises(ValueError, match="monotonic_cst and task_coupling exclude each other"):
        coupled.fit(X, both)
    constant = lw.RuleRegressor(linear_terms=True).fit(np.ones((N, 2)), SCORE)
    assert constant.rules_.linear_terms == ()


# --- using a model --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named():
    return lw.RuleClassifier(alpha=0.02).fit(FRAME, FRAME_Y)


@pytest.fixture(scope="module")
def unnamed():
    return lw.RuleClassifier(alpha=0.02).fit(X, Y)


LATER = {
    "missing": (FRAME.drop(columns="age"), "missing:\n- age"),
    "more": (FRAME.assign(z=1), "unseen at fit time:\n- z"),
    "reordered": (FRAME[FRAME.columns[::-1]], "same order"),
    "repeated": (pd.concat([FRAME, FRAME[["age"]]], axis=1), r"\['age'\]"),
    "words": (FRAME.assign(age="old"), "column 'age' was numeric.*the string 'old': convert"),
    "numbers as words": (FRAME.assign(age=FRAME["age"].astype(str)), "column 'age' was numeric"),
    "numbers for words": (FRAME.assign(colour=3), "'colour' held strings.*such as 3: convert"),
    "numbers for an order": (FRAME.assign(size=3), "column 'size' held strings"),
    "other truths": (FRAME.assign(smoker=2), "column 'smoker' was boolean.*now holds 2"),
    "words for truths": (FRAME.assign(smoker="yes"), "column 'smoker' was boolean.*holds 'yes'"),
    "infinity": (FRAME.assign(age=INF), "infinity.*'age'"),
    "times": (FRAME.assign(age=pd.Timestamp("2020-01-01")), "column 'age' holds Datetime"),
    "no rows": (FRAME.iloc[:0], "0 sample"),
    "lazy": (pl.from_pandas(FRAME).lazy(), "lazy frame"),
}


@pytest.mark.parametrize(("table", "message"), LATER.values(), ids=LATER.keys())
def test_tables_that_a_model_refuses(named, table, message):
    for method in ("predict", "predict_proba", "decision_function", "transform", "explain"):
        with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
            getattr(named, method)(table)


def test_arrays_that_a_model_refuses(unnamed):
    for table, message in (
        (X[:, :2], "X has 2 features, but RuleClassifier is expecting 3"),
        (X[0], "Expected 2D array"),
        (X + 0j, "Complex"),
        (sparse.csr_array(X), "Sparse data"),
        (np.ma.masked_array(X, X > 0), "masked array"),
        (None, "X is None"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            unnamed.predict(table)


def test_conditions_that_a_model_refuses():
    model = lw.RuleClassifier(alpha=0.02, conditions="as-is").fit(X > 0, Y)
    for table in (2 * (X > 0), sparse.csr_array(2.0 * (X > 0))):
        with pytest.raises(ValueError, match="column 'x0' holds 2"):
            model.predict(table)
    with pytest.raises(ValueError, match=r"no cell may be missing.*column 'x0'"):
        model.predict(np.where(X > 0, NAN, 0.0))


def test_what_may_look_different_at_prediction(named):
    """Types that hold the same cells are the same; levels that were not seen are levels."""
    expected = named.decision_function(FRAME)
    sizes = FRAME["size"]
    for same in (
        FRAME.assign(smoker=FRAME["smoker"].astype(int)),
        FRAME.assign(size=sizes.astype(str)),
        FRAME.assign(size=sizes.cat.reorder_categories(["L", "M", "S"], ordered=True)),
        FRAME.assign(colour=FRAME["colour"].astype("category")),
        FRAME.assign(count=FRAME["count"].astype("Int8")),
        pl.from_pandas(FRAME),
    ):
        np.testing.assert_array_equal(named.decision_function(same), expected)
    for other in (
        FRAME.assign(colour="mauve"), FRAME.assign(size="XXL"), FRAME.assign(age=None, colour=None)
    ):  # fmt: skip
        assert np.isfinite(named.decision_function(other)).all()
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(FRAME.to_numpy(object))


def test_unfitted_models_say_so():
    for method in ("predict", "predict_proba", "decision_function", "transform", "explain"):
        with pytest.raises(NotFittedError, match="Call 'fit'"):
            getattr(lw.RuleClassifier(), method)(X)
    with pytest.raises(NotFittedError):
        lw.RuleClassifier().get_feature_names_out()


# --- paths ----------------------------------------------------------------------------------------

PATHS = [
    ({"alpha": 0.1}, "takes alphas, not alpha or C"),
    ({"alphas": [0, 1]}, "alphas must be a list of positive finite numbers"),
    ({"alphas": "a"}, "alphas must be a list"),
    ({"alphas": [[0.1]]}, "alphas must be a list"),
    ({"alphas": 0.1}, "alphas must be a list"),
    ({"alphas": []}, "alphas must be a list"),
    ({"n_alphas": 0}, "n_alphas must be an integer"),
    ({"n_alphas": True}, "n_alphas must be an integer"),
    ({"loss": "x"}, "'loss'"),
]


@pytest.mark.parametrize(("parameters", "message"), PATHS, ids=str)
def test_paths_that_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        lw.rule_path(X, SCORE, **parameters)
