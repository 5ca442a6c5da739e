"""Several labels, targets and tasks: one selection of rules, weights of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from tests.samples import LOSSES_OF_CLASSES, mixed_frame, numeric_sample, planted_scores

import latticework as lw

SETTINGS = {"alpha": 0.03, "tol": 1e-7}
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def two_labels(n=80, seed=0):
    X, score = numeric_sample(n, seed=seed)
    return X, np.column_stack([score > 0.2, X[:, 1] + 0.5 * score > 0]).astype(int)


# --- several labels -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES_OF_CLASSES)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_multilabel_scores_and_labels(loss, n_labels):
    X, Y = two_labels()
    Y = np.column_stack([Y, 1 - Y[:, 0]])[:, :n_labels]
    model = lw.RuleClassifier(**SETTINGS, loss=loss).fit(X, Y)
    scores, labels = model.decision_function(X), model.predict(X)
    assert scores.shape == labels.shape == Y.shape
    assert labels.dtype.kind == "i"
    assert_array_equal(labels, (scores > 0).astype(int))
    assert [pair.tolist() for pair in model.classes_] == [[0, 1]] * n_labels
    if loss == "log_loss":
        chances = model.predict_proba(X)
        assert chances.shape == Y.shape
        assert_array_equal(chances.round().astype(int), labels)
        assert_allclose(chances, 1 / (1 + np.exp(-scores)))
    assert model.score(X, Y) > 0.5  # the share of rows with all labels right


def test_scorers_understand_several_labels():
    X, Y = two_labels()
    model = lw.RuleClassifier(**SETTINGS).fit(X, Y)
    for name in ("roc_auc", "average_precision", "f1_macro", "accuracy"):
        assert 0.5 < get_scorer(name)(model, X, Y) <= 1.0, name
    search = GridSearchCV(lw.RuleClassifier(), {"alpha": [0.02, 10.0]}, scoring="roc_auc", cv=3)
    assert search.fit(X, Y).best_params_ == {"alpha": 0.02}


def test_a_label_twice_is_the_label_once():
    """‖(f, f)‖ = sqrt(2) |f|, and the mean is over rows: alpha grows by sqrt(2)."""
    X, Y = two_labels()
    y = Y[:, 0]
    single = lw.RuleClassifier(alpha=0.03, tol=1e-8).fit(X, y)
    double = lw.RuleClassifier(alpha=0.03 * np.sqrt(2), tol=1e-8).fit(X, np.column_stack([y, y]))
    assert_allclose(double.objective_, 2 * single.objective_, rtol=1e-7)
    assert_allclose(double.coef_, np.column_stack([single.coef_] * 2), atol=1e-5)


def test_names_of_labels_are_kept():
    X, Y = two_labels()
    model = lw.RuleClassifier(**SETTINGS).fit(X, pd.DataFrame(Y, columns=["ill", "old"]))
    assert model.rules_.outputs == ("ill", "old")
    assert "weight[ill]" in model.rules_.to_frame().columns


def test_unknown_labels_are_left_out_of_their_label_only():
    X, Y = two_labels(100)
    known = Y.astype(float)
    known[60:, 1] = np.nan
    model = lw.RuleClassifier(**SETTINGS).fit(X, known)
    # The mean is over the rows, an unknown cell adds nothing: two routes to the objective.
    scores = model.decision_function(X)
    signs = np.where(known == 1, 1.0, -1.0)
    losses = np.where(np.isnan(known), 0.0, np.logaddexp(0, -signs * scores)).sum(axis=1)
    lengths = np.array([len(rule) for rule in model.rules_])
    omega = (2.0**lengths * np.linalg.norm(model.coef_, axis=1)).sum()
    assert_allclose(model.objective_, losses.mean() + 0.03 * omega, rtol=1e-9)


def test_rows_without_any_known_label_are_no_rows():
    X, Y = two_labels(80)
    known = Y.astype(float)
    known[50:] = np.nan
    model = lw.RuleClassifier(**SETTINGS).fit(X, known)
    less = lw.RuleClassifier(**SETTINGS).fit(X[:50], known[:50])
    assert_array_equal(model.coef_, less.coef_)


# --- several targets ------------------------------------------------------------------------------


def test_several_targets():
    X, score = numeric_sample()
    Y = np.column_stack([score, -2 * score, X[:, 0]])
    model = lw.RuleRegressor(**SETTINGS).fit(X, pd.DataFrame(Y, columns=["a", "b", "c"]))
    assert model.predict(X).shape == Y.shape
    assert model.coef_.shape == (len(model.rules_), 3)
    assert model.intercept_.shape == (3,)
    assert model.rules_.outputs == ("a", "b", "c")
    assert model.score(X, Y) > 0.3


def test_one_column_is_one_target():
    X, score = numeric_sample()
    expected = lw.RuleRegressor(**SETTINGS).fit(X, score)
    with pytest.warns(UserWarning, match="column-vector"):
        model = lw.RuleRegressor(**SETTINGS).fit(X, score[:, None])
    assert model.predict(X).shape == (len(X),)
    assert_array_equal(model.coef_, expected.coef_)


def test_a_coupling_pulls_the_weights_of_tasks_together():
    X, score = numeric_sample()
    Y = np.column_stack([score, score + X[:, 2]])
    plain = lw.RuleRegressor(**SETTINGS).fit(X, Y)
    same = lw.RuleRegressor(**SETTINGS, task_coupling=np.eye(2)).fit(X, Y)
    assert_array_equal(plain.coef_, same.coef_)
    coupled = lw.RuleRegressor(**SETTINGS, task_coupling=[[1.0, 0.9], [0.9, 1.0]]).fit(X, Y)
    spread = [np.ptp(model.coef_, axis=1).sum() for model in (plain, coupled)]
    assert spread[1] < spread[0]


def test_a_coupling_of_rank_one_gives_every_task_the_same_weights():
    X, score = numeric_sample()
    Y = np.column_stack([score, score + 1.0])
    model = lw.RuleRegressor(**SETTINGS, task_coupling=np.ones((2, 2))).fit(X, Y)
    single = lw.RuleRegressor(alpha=0.015, tol=1e-8).fit(X, score)
    assert_allclose(model.coef_[:, 0], model.coef_[:, 1], atol=1e-12)
    assert_allclose(model.objective_, 2 * single.objective_, rtol=1e-6)


# --- tasks with rows of their own -----------------------------------------------------------------


def test_tasks_are_a_matrix_with_one_known_label_a_row():
    frame = mixed_frame(120)
    y = np.where(planted_scores(frame) > 0, "yes", "no")
    tasks = np.array(["north", "south"])[np.arange(120) % 2]
    model = lw.RuleClassifier(**SETTINGS).fit(frame, y, tasks=tasks)
    matrix = np.full((120, 2), np.nan)
    matrix[np.arange(120), np.arange(120) % 2] = y == "yes"
    same = lw.RuleClassifier(**SETTINGS).fit(frame, matrix)
    assert_array_equal(model.coef_, same.coef_)
    assert model.rules_.outputs == ("north", "south")
    assert [pair.tolist() for pair in model.classes_] == [["no", "yes"]] * 2
    labels = model.predict(frame)
    assert labels.shape == (120, 2)
    assert set(np.unique(labels)) <= {"no", "yes"}
    assert_array_equal(labels == "yes", model.decision_function(frame) > 0)


def test_tasks_of_a_regressor():
    frame = mixed_frame(120)
    y, tasks = planted_scores(frame), np.arange(120) % 3
    model = lw.RuleRegressor(**SETTINGS).fit(frame, y, tasks=tasks)
    matrix = np.where(tasks[:, None] == np.arange(3), y[:, None], np.nan)
    same = lw.RuleRegressor(**SETTINGS).fit(frame, matrix)
    assert_array_equal(model.coef_, same.coef_)
    assert model.predict(frame).shape == (120, 3)


def test_independent_tasks_on_one_row_set_are_fitted_with_their_own_intercepts():
    X, score = numeric_sample(100)
    tasks = np.repeat([0, 1], 50)
    y = score + 10.0 * tasks
    model = lw.RuleRegressor(alpha=1e6).fit(X, y, tasks=tasks)
    assert len(model.rules_) == 0
    assert_allclose(model.intercept_, [y[:50].mean(), y[50:].mean()], rtol=1e-9)


def test_one_task_is_no_task():
    X, score = numeric_sample()
    model = lw.RuleClassifier(**SETTINGS).fit(X, score > 0, tasks=["only"] * len(X))
    plain = lw.RuleClassifier(**SETTINGS).fit(X, score > 0)
    assert_array_equal(model.coef_, plain.coef_)
    assert model.predict(X).ndim == 1
