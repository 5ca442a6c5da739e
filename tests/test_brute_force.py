"""The estimators against a conic solver on every conjunction, from raw tables to objectives.

The solvers have the same test on codes of their own (test_lattice_path.py).  Here the conjunctions
are enumerated from what ``Propositionalizer.transform`` says of the table, and targets, weights and
penalties are put together by hand, so that what an estimator adds to a solver is tested too.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from tests.oracles import solve_cvxpy, total_loss
from tests.samples import LOSSES_OF_CLASSES, LOSSES_OF_NUMBERS, target_for

import latticework as lw

N = 40
TOL = 2e-7
PARAMETERS = {
    "huber": {"delta": lw.losses.Huber().delta},
    "epsilon_insensitive": {"epsilon": lw.losses.EpsilonInsensitive().epsilon},
}
LOSSES = [*LOSSES_OF_CLASSES, *LOSSES_OF_NUMBERS]


def small_table():
    """A number with missing cells, a colour and a truth; and a score of two rules."""
    rng = np.random.default_rng(2)
    age = rng.normal(50, 10, N).round()
    age[:4] = np.nan
    frame = pd.DataFrame({
        "age": age, "colour": rng.choice(["blue", "green", "red"], N), "smoker": rng.random(N) < 0.5
    })  # fmt: skip
    first = (frame["age"] > 50) & (frame["colour"] != "red")
    return frame, 1.5 * first - frame["smoker"] + rng.normal(0, 0.5, N)


FRAME, SCORE = small_table()
# Thresholds that weights do not move.
CONDITIONS = lw.Propositionalizer(thresholds={"age": [45.5, 52.5]})
SETTINGS = {"conditions": CONDITIONS, "tol": TOL}


class Everything:
    """Indicators (N, k) and penalties of all conjunctions of the conditions, by hand."""

    def __init__(self, length_penalty=1.0, max_length=None):
        held = CONDITIONS.fit_transform(FRAME)
        # Two sides of a range, two "!=" and a truth: longer ones are none, or shorter ones.
        longest = 5 if max_length is None else max_length
        columns, lengths = {}, {}
        for length in range(1, longest + 1):
            for conjunction in combinations(range(held.shape[1]), length):
                rows = held[:, conjunction].all(axis=1)
                if rows.any() and rows.tobytes() not in columns:  # the shortest stands for all
                    columns[rows.tobytes()] = rows
                    lengths[rows.tobytes()] = length
        self.columns = np.array(list(columns.values())).T
        self.D = (1.0 + length_penalty) ** np.array(list(lengths.values()), float)


def optimum(loss, targets, weights, strength, *, form="alpha", coupling=None, everything=None):
    everything = Everything() if everything is None else everything
    return solve_cvxpy(
        loss, PARAMETERS.get(loss, {}), targets, weights, everything.columns, everything.D,
        coupling=coupling, form=form, **{form: strength},
    ).objective  # fmt: skip


def estimator_for(loss, **settings):
    kind = lw.RuleClassifier if loss in LOSSES_OF_CLASSES else lw.RuleRegressor
    return kind(loss=loss, **{**SETTINGS, **settings})


def encoded(loss, y):
    """Targets (n, 1) as a textbook has them."""
    return (np.where(y == "yes", 1.0, -1.0) if loss in LOSSES_OF_CLASSES else y)[:, None]


def check(model, expected, tol=TOL):
    certificate = model.certificate_
    assert certificate.complete
    assert certificate.relative_gap <= tol
    assert len(model.rules_) > 0
    assert_allclose(model.objective_, expected, rtol=max(1e-6, tol))
    assert certificate.dual <= expected * (1 + 1e-8)
    assert expected <= certificate.primal * (1 + 1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_mean_loss_form_with_weights(loss):
    y = target_for(loss, SCORE.to_numpy())
    weight = np.random.default_rng(0).exponential(size=N)
    weight[::9] = 0.0
    model = estimator_for(loss, alpha=0.02).fit(FRAME, y, sample_weight=weight)
    check(model, optimum(loss, encoded(loss, y), (weight / weight.sum())[:, None], 0.02))
    # The objective once more, from the predictions and the rules that users see.
    scores = model.rules_.decision_function(FRAME)[:, None]
    value = total_loss(
        loss, PARAMETERS.get(loss, {}), encoded(loss, y), (weight / weight.sum())[:, None], scores
    )
    omega = sum(2.0 ** len(rule) * abs(rule.weights[0]) for rule in model.rules_)
    assert_allclose(value + 0.02 * omega, model.objective_, rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_form_of_the_papers(loss):
    y = target_for(loss, SCORE.to_numpy())
    # Where a loss is piecewise linear, Omega jumps as alpha moves, and what C asks for may lie in
    # the jump: such fits come as close as the default tolerance.
    tol = 1e-3 if loss in ("hinge", "epsilon_insensitive") else TOL
    model = estimator_for(loss, C=0.7, length_penalty=0.5, tol=tol).fit(FRAME, y)
    everything = Everything(length_penalty=0.5)
    targets, ones = encoded(loss, y), np.ones((N, 1))
    check(model, optimum(loss, targets, ones, 0.7, form="C", everything=everything), tol)


@pytest.mark.parametrize("loss", LOSSES)
def test_several_targets_coupled_some_unknown(loss):
    second = -SCORE.to_numpy() + np.linspace(-1, 1, N)
    both = np.column_stack([encoded(loss, target_for(loss, s)) for s in (SCORE.to_numpy(), second)])
    known = np.random.default_rng(1).random((N, 2)) < 0.8
    known[0] = False  # a row that tells nothing is no row
    given = (both > 0) if loss in LOSSES_OF_CLASSES else both
    coupling = np.array([[1.0, -0.6], [-0.6, 1.0]])
    model = estimator_for(loss, alpha=0.03, task_coupling=coupling)
    model.fit(FRAME, np.where(known, given, np.nan))
    rows = known.any(axis=1)
    check(model, optimum(loss, both, known / rows.sum(), 0.03, coupling=coupling))


@pytest.mark.parametrize("loss", [*LOSSES_OF_CLASSES, "squared_error", "epsilon_insensitive"])
def test_tasks_with_rows_of_their_own(loss):
    y, tasks = target_for(loss, SCORE.to_numpy()), np.arange(N) % 2
    model = estimator_for(loss, alpha=0.02).fit(FRAME, y, tasks=tasks)
    one_task = (tasks[:, None] == np.arange(2)) / N
    check(model, optimum(loss, np.repeat(encoded(loss, y), 2, axis=1), one_task, 0.02))


@pytest.mark.parametrize("multiclass", ["softmax", "one-vs-rest"])
def test_classes_with_weights(multiclass):
    y = np.digitize(SCORE, [-0.5, 0.5])
    factor = {0: 2.0, 1: 1.0, 2: 0.5}
    model = estimator_for("log_loss", alpha=0.02, multiclass=multiclass, class_weight=factor)
    model.fit(FRAME, y)
    weight = np.array([factor[label] for label in y])
    weights = np.repeat((weight / weight.sum())[:, None], 3, axis=1)
    hot = np.eye(3)[y]
    if multiclass == "softmax":
        check(model, optimum("softmax", hot, weights, 0.02))
    else:
        check(model, optimum("log_loss", 2 * hot - 1, weights, 0.02))


@pytest.mark.parametrize("loss", ["log_loss", "hinge", "squared_error"])
def test_the_plain_lasso_over_short_conjunctions(loss):
    y = target_for(loss, SCORE.to_numpy())
    settings = {"length_penalty": 0.0, "max_length": 2}
    model = estimator_for(loss, alpha=0.05, **settings).fit(FRAME, y)
    everything = Everything(**settings)
    check(model, optimum(loss, encoded(loss, y), np.full((N, 1), 1 / N), 0.05,
                         everything=everything))  # fmt: skip
