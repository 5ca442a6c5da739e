"""The oracles themselves, against scikit-learn, counting by hand and the duality gap."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import (
    Lasso,
    LogisticRegression,
    MultiTaskLasso,
    PoissonRegressor,
    QuantileRegressor,
)
from sklearn.svm import LinearSVC
from tests.oracles import (
    boolean_table,
    dual_norm,
    enumerate_conjunctions,
    random_table,
    solve_cvxpy,
    total_loss,
)

from latticework.losses import LOSSES, get_loss
from latticework.rules.conditions import GREATER, LESS_EQUAL

N_ROWS, N_RULES = 60, 12
PARAMETERS = {"huber": {"delta": 0.7}, "epsilon_insensitive": {"epsilon": 0.2}}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def X(rng):
    return (rng.random((N_ROWS, N_RULES)) < 0.4).astype(float)


def draw_targets(loss_name, rng, n_tasks, n=N_ROWS):
    if loss_name == "softmax":
        return np.eye(n_tasks)[rng.integers(n_tasks, size=n)]
    if get_loss(loss_name).task == "binary":
        return rng.choice([-1.0, 1.0], (n, n_tasks))
    if loss_name == "poisson":
        return rng.poisson(2.0, (n, n_tasks)).astype(float)
    return rng.normal(size=(n, n_tasks))


# --- enumeration --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_conjunctions_are_the_sensible_subsets(seed):
    """Against the definition, subset by subset, on every combination of codes."""
    rng = np.random.default_rng(seed)
    codes, table = random_table(rng, 30, 1, 1, 2, 3 - seed % 2, missing=0.2 * (seed % 3))
    grid = np.stack(np.meshgrid(*[np.arange(k) for k in table.n_codes]), axis=-1).reshape(-1, 2)

    def rows(subset, where=grid):
        truths = [table.satisfied(where, c) for c in subset]
        return np.all(truths, axis=0) if truths else np.ones(len(where), dtype=bool)

    expected = set()
    for size in range(len(table) + 1):
        for subset in combinations(range(len(table)), size):
            together = rows(subset)
            shorter = [rows(s) for s in combinations(subset, size - 1)] if size else []
            if together.any() and not any(np.array_equal(together, r) for r in shorter):
                expected.add(subset)
    found = enumerate_conjunctions(table, codes, 1.0, include_empty=True)
    assert set(found.conditions) == expected
    assert len(found) == len(expected)
    for subset, indicator in found:
        assert_array_equal(indicator, rows(subset, codes))


def test_conjunctions_of_one_numeric_column():
    codes, table = random_table(np.random.default_rng(1), 20, 1, 0, 3, 2, missing=0.0)
    found = enumerate_conjunctions(table, codes, 0.5)
    # 3 + 3 single conditions, and intervals (t_j, t_k] with j < k.
    assert len(found) == 6 + comb(3, 2)
    for subset, indicator in found:
        operators = sorted(table.conditions[c].operator for c in subset)
        assert operators in ([LESS_EQUAL], [GREATER], [LESS_EQUAL, GREATER])
        assert indicator.dtype == bool
    assert_allclose(found.D, [1.5 ** len(subset) for subset, _ in found])


def test_counts_multiply_over_columns():
    codes, table = random_table(np.random.default_rng(2), 200, 1, 2, 2, [2, 3], missing=0.3)
    # Numeric, 2 thresholds: nothing, 4 single, 1 interval, missing.  Two levels: nothing, 2
    # "==", missing.  Three levels: nothing, 3 "==", missing, and the 7 sets of "!=".
    found = enumerate_conjunctions(table, codes, 1.0, include_empty=True)
    assert len(found) == 7 * 4 * 12
    assert found.conditions[0] == ()
    assert found.indicators[:, 0].all()
    assert len(enumerate_conjunctions(table, codes, 1.0)) == 7 * 4 * 12 - 1
    short = enumerate_conjunctions(table, codes, 1.0, max_length=2)
    assert short.conditions == [x for x in found.conditions if 1 <= len(x) <= 2]


@pytest.mark.parametrize("max_length", [None, 0, 1, 3])
def test_boolean_tables_have_all_subsets(max_length):
    p = 6
    codes, table = boolean_table(np.random.default_rng(3), 25, p)
    found = enumerate_conjunctions(table, codes, 1.0, max_length)
    longest = p if max_length is None else max_length
    subsets = [s for k in range(1, longest + 1) for s in combinations(range(p), k)]
    assert found.conditions == subsets
    assert found.indicators.shape == (25, len(subsets))
    for subset, indicator in found:
        assert_array_equal(indicator, codes[:, list(subset)].all(axis=1))


def test_random_table_follows_the_code_convention():
    codes, table = random_table(np.random.default_rng(4), 500, 1, 2, 3, [2, 4], missing=0.1)
    assert codes.dtype == np.uint8
    assert_array_equal(table.n_codes, [5, 4, 6])
    assert_array_equal(codes.max(axis=0), table.n_codes - 1)
    assert not np.any(codes[:, 1] == 2)  # levels unseen in training
    assert not np.any(codes[:, 2] == 4)
    missing = codes == table.n_codes - 1
    for c, condition in enumerate(table.conditions):
        j, truth = table.column[c], table.satisfied(codes, c)
        expected = {
            "<=": lambda v, j=j: (codes[:, j] <= v) & ~missing[:, j],
            ">": lambda v, j=j: (codes[:, j] > v) & ~missing[:, j],
            "==": lambda v, j=j: codes[:, j] == int(v[1:]),
            "!=": lambda v, j=j: (codes[:, j] != int(v[1:])) & ~missing[:, j],
            "is missing": lambda v, j=j: missing[:, j],
        }[condition.operator](condition.value)
        assert_array_equal(truth, expected)
    operators = [condition.operator for condition in table.conditions]
    assert operators.count("is missing") == 3
    assert operators.count("!=") == 4
    unseen = np.array([[0, 2, 4]])
    met = [table.conditions[c].operator for c in range(len(table)) if table.satisfied(unseen, c)[0]]
    assert met == ["<="] * 3 + ["!="] * 4


def test_random_table_without_missing_cells_and_bad_levels():
    _, table = random_table(np.random.default_rng(5), 50, 2, 1, 2, 2, missing=0.0)
    assert all(condition.operator != "is missing" for condition in table.conditions)
    with pytest.raises(ValueError, match="2 or more"):
        random_table(np.random.default_rng(5), 50, 0, 1, 2, 1, missing=0.0)


def test_dual_norm_by_hand():
    indicators = np.array([[True, False], [True, True]])
    residual = np.array([[3.0, 0.0], [0.0, 4.0]])
    assert dual_norm(residual, indicators, np.array([1.0, 2.0])) == 5.0
    assert dual_norm(residual, indicators, np.array([10.0, 2.0])) == 2.0
    together = np.ones((2, 2))  # (3 + 4)^2 for the first, 4^2 for the second
    assert_allclose(dual_norm(residual, indicators, np.array([1.0, 2.0]), together), 7.0)


# --- optima scikit-learn can reach ----------------------------------------------------------------


def check_same(optimum, coef, intercept, atol):
    assert_allclose(optimum.coef.T, np.atleast_2d(coef), atol=atol)
    assert_allclose(optimum.intercept, np.atleast_1d(intercept), atol=atol)


@pytest.mark.parametrize("intercept", [True, False])
def test_lasso(rng, X, intercept):
    y = X[:, 0] - X[:, 3] + rng.normal(0, 0.5, N_ROWS)
    model = Lasso(alpha=0.02, tol=1e-14, max_iter=10**6, fit_intercept=intercept).fit(X, y)
    c, D = np.full((N_ROWS, 1), 1 / N_ROWS), np.ones(N_RULES)
    found = solve_cvxpy("squared_error", {}, y[:, None], c, X, D, 0.02, intercept=intercept)
    check_same(found, model.coef_, model.intercept_, 1e-6)
    assert_allclose(
        found.objective,
        np.sum((y - model.predict(X)) ** 2) / (2 * N_ROWS) + 0.02 * np.abs(model.coef_).sum(),
        rtol=1e-9,
    )


def test_lasso_with_weights_and_penalties(rng, X):
    y, weights = rng.normal(size=N_ROWS), rng.exponential(size=N_ROWS)
    D = rng.uniform(0.5, 2.0, N_RULES)
    model = Lasso(alpha=0.02, tol=1e-14, max_iter=10**6).fit(X / D, y, sample_weight=weights)
    c = (weights / weights.sum())[:, None]
    found = solve_cvxpy("squared_error", {}, y[:, None], c, X, D, 0.02)
    check_same(found, model.coef_ / D, model.intercept_, 1e-6)


def test_positive_lasso(rng, X):
    y = X[:, 0] - X[:, 3] + rng.normal(0, 0.5, N_ROWS)
    model = Lasso(alpha=0.01, tol=1e-14, max_iter=10**6, positive=True).fit(X, y)
    c, D, signs = np.full((N_ROWS, 1), 1 / N_ROWS), np.ones(N_RULES), np.ones(N_RULES)
    found = solve_cvxpy("squared_error", {}, y[:, None], c, X, D, 0.01, signs=signs)
    check_same(found, model.coef_, model.intercept_, 1e-6)
    negative = solve_cvxpy("squared_error", {}, -y[:, None], c, X, D, 0.01, signs=-signs)
    check_same(negative, -model.coef_, -model.intercept_, 1e-6)


def test_multi_task_lasso(rng, X):
    y = X[:, :3] @ rng.normal(size=(3, 2)) + rng.normal(0, 0.5, (N_ROWS, 2))
    model = MultiTaskLasso(alpha=0.05, tol=1e-14, max_iter=10**6).fit(X, y)
    c, D = np.full((N_ROWS, 2), 1 / N_ROWS), np.ones(N_RULES)
    found = solve_cvxpy("squared_error", {}, y, c, X, D, 0.05)
    check_same(found, model.coef_, model.intercept_, 1e-6)


def test_logistic_regression_saga(rng, X):
    y = np.where(X[:, 0] - X[:, 3] + rng.logistic(0, 0.5, N_ROWS) > 0, 1.0, -1.0)
    model = LogisticRegression(l1_ratio=1, solver="saga", C=0.8, tol=1e-12, max_iter=10**5)
    model.fit(X, y)
    c, D = np.full((N_ROWS, 1), 0.8), np.ones(N_RULES)
    found = solve_cvxpy("log_loss", {}, y[:, None], c, X, D, 1.0)
    check_same(found, model.coef_, model.intercept_, 1e-5)


def test_logistic_regression_liblinear(rng, X):
    y = np.where(X[:, 0] - X[:, 3] + rng.logistic(0, 0.5, N_ROWS) > 0, 1.0, -1.0)
    model = LogisticRegression(
        l1_ratio=1, solver="liblinear", C=0.8, tol=1e-12, max_iter=10**5, fit_intercept=False
    )
    model.fit(X, y)
    c, D = np.full((N_ROWS, 1), 0.8), np.ones(N_RULES)
    found = solve_cvxpy("log_loss", {}, y[:, None], c, X, D, 1.0, intercept=False)
    check_same(found, model.coef_, 0.0, 1e-5)


def test_squared_hinge(rng, X):
    y = np.where(X[:, 0] - X[:, 3] + rng.logistic(0, 0.5, N_ROWS) > 0, 1.0, -1.0)
    model = LinearSVC(penalty="l1", dual=False, C=0.3, tol=1e-9, max_iter=10**6)
    model.set_params(fit_intercept=False).fit(X, y)
    c, D = np.full((N_ROWS, 1), 0.3), np.ones(N_RULES)
    found = solve_cvxpy("squared_hinge", {}, y[:, None], c, X, D, 1.0, intercept=False)
    check_same(found, model.coef_, 0.0, 1e-5)


def test_absolute_error(rng, X):
    X = X + rng.normal(0, 0.1, X.shape)  # one solution only
    y = X[:, 0] - X[:, 3] + rng.normal(0, 0.5, N_ROWS)
    model = QuantileRegressor(quantile=0.5, alpha=0.01).fit(X, y)
    c, D = np.full((N_ROWS, 1), 0.5 / N_ROWS), np.ones(N_RULES)
    found = solve_cvxpy("epsilon_insensitive", {"epsilon": 0.0}, y[:, None], c, X, D, 0.01)
    check_same(found, model.coef_, model.intercept_, 1e-5)


def test_poisson_without_penalty(rng, X):
    y = rng.poisson(np.exp(X[:, 0] - X[:, 3])).astype(float)
    model = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=10**4, solver="newton-cholesky")
    model.fit(X, y)
    c, D = np.full((N_ROWS, 1), 1 / N_ROWS), np.ones(N_RULES)
    found = solve_cvxpy("poisson", {}, y[:, None], c, X, D, 0.0)
    check_same(found, model.coef_, model.intercept_, 1e-5)


# --- all losses: the gap closes -----------------------------------------------------------------


def lower_bound(loss, y, c, X, D, alpha, coupling, optimum):
    """Dual value at the gradient, balanced for the intercept and scaled into the dual ball."""
    f = X @ optimum.coef + optimum.intercept
    u = loss.balance(loss.gradient(y, f), y, c)
    scale = min(1.0, alpha / dual_norm(c * u, X, D, coupling))
    conjugate = loss.conjugate(y, scale * u)
    return -(c[:, : conjugate.shape[1]] * conjugate).sum()


def problem(loss_name, rng, n_tasks):
    y = draw_targets(loss_name, rng, n_tasks)
    c = rng.exponential(1 / N_ROWS, (N_ROWS, 1 if loss_name == "softmax" else n_tasks))
    return y, np.broadcast_to(c, y.shape), rng.uniform(1.0, 2.0, N_RULES)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("loss_name", [name for name in LOSSES if LOSSES[name].smooth])
def test_duality_gap_closes(rng, X, loss_name, coupled):
    """Optimality of the oracle proved by the library's conjugates: each checks the other."""
    loss, n_tasks = get_loss(loss_name, **PARAMETERS.get(loss_name, {})), 3
    y, c, D = problem(loss_name, rng, n_tasks)
    coupling = np.eye(n_tasks) + 0.5 if coupled else None
    found = solve_cvxpy(
        loss_name, PARAMETERS.get(loss_name, {}), y, c, X, D, 0.02, coupling=coupling
    )
    assert np.abs(found.coef).max() > 1e-3
    bound = lower_bound(loss, y, c, X, D, 0.02, coupling, found)
    assert bound <= found.objective * (1 + 1e-12)
    assert_allclose(bound, found.objective, rtol=1e-5)


@pytest.mark.parametrize("loss_name", [name for name in LOSSES if not LOSSES[name].smooth])
def test_piecewise_linear_optima_cannot_be_improved(rng, X, loss_name):
    # A subgradient at the solution need not be the dual solution: look around it instead.
    params = PARAMETERS.get(loss_name, {})
    y, c, D = problem(loss_name, rng, 2)
    found = solve_cvxpy(loss_name, params, y, c, X, D, 0.02)
    assert np.abs(found.coef).max() > 1e-3
    for _ in range(500):
        size = 10.0 ** rng.uniform(-5, 0)
        coef = found.coef + size * rng.normal(size=found.coef.shape)
        intercept = found.intercept + size * rng.normal(size=2)
        value = total_loss(loss_name, params, y, c, X @ coef + intercept)
        value += 0.02 * D @ np.linalg.norm(coef, axis=1)
        assert value >= found.objective - 1e-9


@pytest.mark.parametrize("loss_name", LOSSES)
def test_plain_formulas_are_the_losses(rng, loss_name):
    params = PARAMETERS.get(loss_name, {})
    y, c, _ = problem(loss_name, rng, 3)
    scores, loss = rng.normal(size=y.shape), get_loss(loss_name, **params)
    value = loss.value(y, scores)
    expected = (c[:, : value.shape[1]] * value).sum()
    assert_allclose(total_loss(loss_name, params, y, c, scores), expected, rtol=1e-13)


@pytest.mark.parametrize("loss_name", LOSSES)
def test_two_forms_reach_the_same_model(rng, X, loss_name):
    """The C-form is stationary where the alpha-form is, with alpha = Omega / C."""
    params = PARAMETERS.get(loss_name, {})
    y, c, D = problem(loss_name, rng, 2)
    by_C = solve_cvxpy(loss_name, params, y, c, X, D, form="C", C=30.0)
    omega = float(D @ np.linalg.norm(by_C.coef, axis=1))
    by_alpha = solve_cvxpy(loss_name, params, y, c, X, D, alpha=omega / 30.0)
    loss = total_loss(loss_name, params, y, c, X @ by_C.coef + by_C.intercept)
    assert_allclose(by_C.objective, 0.5 * omega**2 + 30.0 * loss, rtol=1e-12)
    assert_allclose(by_alpha.objective, loss + omega**2 / 30.0, rtol=1e-7)


def test_singular_coupling_keeps_coefficients_in_its_range(rng, X):
    """B = 11' has one function for both tasks: a plain lasso on the rows of both."""
    y, c, D = rng.normal(size=(N_ROWS, 2)), np.full((N_ROWS, 2), 0.5 / N_ROWS), np.ones(N_RULES)
    found = solve_cvxpy("squared_error", {}, y, c, X, D, 0.02, coupling=np.ones((2, 2)))
    assert_allclose(found.coef[:, 0], found.coef[:, 1], atol=1e-12)
    centred = (y - found.intercept).T.reshape(-1)
    model = Lasso(alpha=0.02, tol=1e-14, max_iter=10**6, fit_intercept=False)
    model.fit(np.vstack([X, X]), centred)
    assert_allclose(found.coef[:, 0], model.coef_, atol=1e-6)


def test_signs_per_task(rng, X):
    y, c, D = rng.normal(size=(N_ROWS, 2)), np.full((N_ROWS, 2), 1 / N_ROWS), np.ones(N_RULES)
    signs = np.zeros((N_RULES, 2))
    signs[:, 0], signs[:4, 1] = 1, -1
    found = solve_cvxpy("squared_error", {}, y, c, X, D, 0.002, signs=signs)
    free = solve_cvxpy("squared_error", {}, y, c, X, D, 0.002)
    assert np.all(signs * found.coef >= -1e-9)
    assert np.any(signs * free.coef < -1e-3)
    assert np.any(found.coef[4:, 1] < -1e-3)
    assert np.any(found.coef[4:, 1] > 1e-3)
    assert found.objective > free.objective


def test_wrong_strength_is_refused(rng, X):
    y, c, D = rng.normal(size=(N_ROWS, 1)), np.ones((N_ROWS, 1)), np.ones(N_RULES)
    for arguments in ({}, {"C": 1.0}, {"alpha": 1.0, "C": 1.0}, {"alpha": 1.0, "form": "C"}):
        with pytest.raises(ValueError, match="nothing else"):
            solve_cvxpy("squared_error", {}, y, c, X, D, **arguments)
