"""Certified solutions over all conjunctions, against enumeration and a conic solver."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.oracles import enumerate_conjunctions, random_table, solve_cvxpy, total_loss

from latticework.blocks.lattices.conjunctions import ConjunctionLattice
from latticework.losses import LOSSES, get_loss
from latticework.search.limits import Limits
from latticework.solvers import lattice_path
from latticework.solvers import result as outcome
from latticework.solvers.lattice_path import LatticePath
from latticework.solvers.problem import LatticeProblem

TOL = 2e-7
PARAMETERS = {"huber": {"delta": 0.7}, "epsilon_insensitive": {"epsilon": 0.2}}
N_ROWS = 36


# --- random problems, and everything about them by enumeration ------------------------------------


def draw_targets(loss_name, rng, scores):
    """Targets (n, T) that depend on scores (n, T)."""
    noisy = scores + rng.normal(0.0, 0.7, scores.shape)
    if loss_name == "softmax":
        return np.eye(scores.shape[1])[noisy.argmax(axis=1)]
    if get_loss(loss_name).task == "binary":
        return np.where(noisy > np.median(noisy, axis=0), 1.0, -1.0)
    if loss_name == "poisson":
        return rng.poisson(np.exp(0.5 * noisy)).astype(float)
    return noisy


def make_problem(loss_name, n_tasks, *, length_penalty=1.0, max_length=None, seed=0, n=N_ROWS):
    """A problem on a table with all kinds of conditions, missing cells included."""
    rng = np.random.default_rng(seed)
    codes, table = random_table(rng, n, 1, 1, 2, 3, missing=0.1)
    lattice = ConjunctionLattice(codes, table, length_penalty, max_length)
    planted = rng.integers(len(table), size=(2, 2))
    rules = np.stack([lattice.indicator(np.unique(pair)) for pair in planted], axis=1)
    targets = draw_targets(loss_name, rng, 2.0 * rules @ rng.normal(size=(2, n_tasks)))
    weights = np.full((n, n_tasks), 1.0 / n)
    return LatticeProblem(
        get_loss(loss_name, **PARAMETERS.get(loss_name, {})), targets, weights, lattice
    )


def with_weights(problem, seed=1):
    """Unequal rows, a row of weight zero and, where tasks are separate, unknown cells."""
    rng = np.random.default_rng(seed)
    weights = problem.weights * rng.exponential(size=(problem.n_rows, 1))
    weights[3] = 0.0
    if not problem.loss.joint:
        unknown = rng.random(weights.shape) < 0.2
        weights = np.where(unknown, 0.0, weights * rng.uniform(0.5, 1.5, weights.shape))
    return replace(problem, weights=weights)


def with_dense(problem, seed=2):
    """Three numeric columns that enter linearly, one free and one on each side of zero."""
    rng = np.random.default_rng(seed)
    return replace(
        problem,
        dense=rng.normal(size=(3, problem.n_rows)),
        dense_scale=np.array([1.0, 1.5, 0.7]),
        dense_signs=np.array([0, 1, -1], np.int8),
    )


def with_signs(problem):
    """Conditions whose rules may only add, or only take away."""
    signs = np.zeros(problem.lattice.n_conditions, np.int8)
    signs[[0, 5]], signs[3] = 1, -1
    return replace(problem, lattice=replace(problem.lattice, signs=signs))


def with_coupling(problem, rank):
    """A mixing matrix (T, rank), positive correlations among the first two tasks."""
    mixing = np.array([[1.0, 0.4, 0.0], [0.8, -0.3, 0.2], [-0.5, 0.0, 1.1]])[:, :rank]
    return replace(problem, mixing=mixing)


class Everything:
    """All columns of a problem: linear terms, and every conjunction that may have a weight."""

    def __init__(self, problem):
        lattice = problem.lattice
        found = enumerate_conjunctions(
            lattice.table, lattice.codes, lattice.length_penalty, lattice.max_length
        )
        of_conditions = np.zeros(lattice.n_conditions) if lattice.signs is None else lattice.signs
        sides = [{*of_conditions[list(c)]} - {0} for c in found.conditions]
        allowed = [w for w, side in enumerate(sides) if len(side) < 2]
        self.columns = found.indicators[:, allowed].astype(float)
        self.D = found.D[allowed]
        self.signs = np.array([max(sides[w], default=0) for w in allowed])
        self.place = {found.conditions[w]: k for k, w in enumerate(allowed)}
        self.n_dense = problem.n_dense
        if problem.dense is not None:
            self.columns = np.hstack([problem.dense.T, self.columns])
            self.D = np.append(problem.dense_scale, self.D)
            self.signs = np.append(problem.dense_signs, self.signs)
        self.problem = problem
        mixing = problem.mixing
        self.coupling = None if mixing is None else mixing @ mixing.T

    def optimum(self, strength, *, form="alpha", D=None, columns=slice(None)):
        """The optimum over some of the columns, by the conic solver."""
        problem, D = self.problem, self.D if D is None else D
        return solve_cvxpy(
            problem.loss.name, PARAMETERS.get(problem.loss.name, {}), problem.targets,
            problem.weights, self.columns[:, columns], D[columns], coupling=self.coupling,
            signs=self.signs[columns], form=form, **{form: strength},
        ).objective  # fmt: skip

    def ratios(self, dual_point, D=None):
        """‖g_w‖ / D_w of every column, the side that a sign forbids left out."""
        gains = self.columns.T @ -(self.problem.weights * dual_point)
        if self.problem.mixing is not None:
            gains = gains @ self.problem.mixing
        gains[self.signs[:, None] * gains < 0.0] = 0.0
        return np.linalg.norm(gains, axis=1) / (self.D if D is None else D)

    def penalties(self, solution):
        """D of every column, with those of the solution's rules as it paid them."""
        D = self.D.copy()
        used = [self.n_dense + self.place[c] for c in solution.conjunctions]
        D[used] = solution.penalty[: len(used)]
        D[: self.n_dense] = solution.penalty[len(used) :]
        return D

    def objective(self, solution):
        """Objective of a solution, from its rules and their penalties alone."""
        problem, k = self.problem, len(solution.conjunctions)
        used = [self.n_dense + self.place[c] for c in solution.conjunctions]
        coef = np.vstack([solution.coef, solution.linear_coef])
        columns = np.hstack([self.columns[:, used], self.columns[:, : self.n_dense]])
        assert coef.shape == (k + self.n_dense, problem.n_tasks)
        mixing = np.eye(problem.n_tasks) if problem.mixing is None else problem.mixing
        latent = coef @ np.linalg.pinv(mixing).T
        assert_allclose(latent @ mixing.T, coef, atol=1e-12 * np.abs(coef).max(initial=0.0))
        omega = solution.penalty @ np.linalg.norm(latent, axis=1)
        loss = total_loss(
            problem.loss.name, PARAMETERS.get(problem.loss.name, {}), problem.targets,
            problem.weights, columns @ coef + solution.intercept,
        )  # fmt: skip
        return loss + solution.alpha * omega


def check_certificate(everything, solution, D=None):
    """Primal and dual are what they claim to be, whether the gap is closed or not."""
    problem, certificate = everything.problem, solution.certificate
    D = everything.penalties(solution) if D is None else D
    assert_allclose(everything.objective(solution), certificate.primal, rtol=1e-9)
    point = solution.dual_point
    assert_allclose((problem.weights * point).sum(axis=0), 0.0, atol=1e-12)
    assert everything.ratios(point, D).max(initial=0.0) <= solution.alpha * (1.0 + 1e-8)
    assert certificate.dual <= certificate.primal
    assert certificate.dual <= problem.dual_value(point) + 1e-12 * abs(certificate.primal)


def check_optimal(everything, solution, optimum, tol=TOL):
    """The certificate holds, is tight, and the objective is the conic solver's."""
    check_certificate(everything, solution)
    certificate = solution.certificate
    assert solution.status == outcome.OPTIMAL
    assert certificate.complete
    assert certificate.relative_gap <= tol
    assert certificate.dual <= optimum * (1.0 + 1e-8)
    assert optimum <= certificate.primal * (1.0 + 1e-8)
    assert_allclose(certificate.primal, optimum, rtol=1e-6)


VARIANTS = {
    "plain": lambda name, T: make_problem(name, T),
    "lasso": lambda name, T: make_problem(name, T, length_penalty=0.0, seed=3),
    "weights": lambda name, T: with_weights(make_problem(name, T, seed=1)),
    "coupled": lambda name, T: with_coupling(with_weights(make_problem(name, T, seed=2)), 3),
    "low rank": lambda name, T: with_coupling(make_problem(name, T, length_penalty=0.0), 2),
    "signs": lambda name, T: with_signs(with_weights(make_problem(name, T, seed=4))),
    "linear": lambda name, T: with_dense(
        with_weights(make_problem(name, T, length_penalty=0.0, max_length=2, seed=5))
    ),
}
CASES = [
    (name, T, variant)
    for name, loss in LOSSES.items()
    for T in (1, 3)
    for variant in VARIANTS
    if T == 3 or not (loss.joint or variant in ("coupled", "low rank"))
]


@pytest.mark.parametrize(("loss_name", "n_tasks", "variant"), CASES)
def test_optimum_over_all_conjunctions(loss_name, n_tasks, variant):
    problem = VARIANTS[variant](loss_name, n_tasks)
    everything = Everything(problem)
    path = LatticePath(problem, tol=TOL)
    largest = path.alpha_max()
    solutions = list(path.path([0.5 * largest, 0.1 * largest]))
    check_optimal(everything, solutions[0], solutions[0].certificate.primal)
    check_optimal(everything, solutions[1], everything.optimum(solutions[1].alpha))


# --- limits that coincide -------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["weights", "signs", "linear"])
@pytest.mark.parametrize("loss_name", LOSSES)
def test_largest_alpha(loss_name, variant):
    """At alpha_max and above no rule is used and the constant is best; just below one is."""
    problem = VARIANTS[variant](loss_name, 3)
    path = LatticePath(problem, tol=TOL)
    largest = path.alpha_max()
    constant = problem.loss.best_constant(problem.targets, problem.weights)
    for alpha in (3.0 * largest, largest):
        solution = path.solve(alpha)
        assert not solution.conjunctions
        assert not solution.linear_coef.any()
        assert_allclose(solution.intercept, constant, atol=1e-9)
        assert solution.certificate.relative_gap <= TOL
    below = path.solve(0.999 * largest)
    assert below.conjunctions or below.linear_coef.any()
    assert below.certificate.primal < solution.certificate.primal


@pytest.mark.parametrize("loss_name", [name for name in LOSSES if name != "softmax"])
def test_equal_tasks_are_one_task(loss_name):
    """T equal tasks have the loss of one T times and its norm sqrt(T) times."""
    one = with_weights(make_problem(loss_name, 1))
    two = replace(
        one, targets=np.repeat(one.targets, 2, axis=1), weights=np.repeat(one.weights, 2, axis=1)
    )
    alpha = 0.1 * LatticePath(one).alpha_max()
    single = LatticePath(one, tol=TOL).solve(alpha)
    double = LatticePath(two, tol=TOL).solve(np.sqrt(2.0) * alpha)
    assert_allclose(double.certificate.primal, 2.0 * single.certificate.primal, rtol=2 * TOL)


@pytest.mark.parametrize("loss_name", LOSSES)
def test_weights_repeat_rows_and_scale_the_objective(loss_name):
    problem = make_problem(loss_name, 3, seed=6)
    counts = np.random.default_rng(0).integers(4, size=problem.n_rows)
    rows = np.repeat(np.arange(problem.n_rows), counts)
    weighted = replace(problem, weights=problem.weights * counts[:, None])
    repeated = replace(
        problem,
        targets=problem.targets[rows],
        weights=problem.weights[rows],
        lattice=replace(problem.lattice, codes=problem.lattice.codes[rows]),
    )
    scaled = replace(weighted, weights=weighted.weights * 1000.0)
    largest = LatticePath(weighted).alpha_max()
    assert_allclose(LatticePath(repeated).alpha_max(), largest, rtol=2e-6)
    assert_allclose(LatticePath(scaled).alpha_max(), 1000.0 * largest, rtol=2e-6)
    found = LatticePath(weighted, tol=TOL).solve(0.1 * largest).certificate
    again = LatticePath(repeated, tol=TOL).solve(0.1 * largest).certificate
    larger = LatticePath(scaled, tol=TOL).solve(100.0 * largest).certificate
    assert_allclose(again.primal, found.primal, rtol=2 * TOL)
    assert_allclose(larger.primal, 1000.0 * found.primal, rtol=2 * TOL)


@pytest.mark.parametrize("loss_name", ["log_loss", "softmax", "hinge"])
def test_warm_starts_and_threads_change_nothing(loss_name):
    problem = with_weights(make_problem(loss_name, 3, seed=7))
    path = LatticePath(problem, tol=TOL, n_jobs=2)
    alphas = path.alpha_max() * np.geomspace(1.0, 0.02, 6)
    warm = [solution.certificate.primal for solution in path.path(alphas)]
    cold = [LatticePath(problem, tol=TOL).solve(alpha).certificate.primal for alpha in alphas]
    assert_allclose(warm, cold, rtol=2 * TOL)
    *_, approached = LatticePath(problem, tol=TOL).approach(alphas[-1])
    assert approached.alpha == alphas[-1]
    assert_allclose(approached.certificate.primal, cold[-1], rtol=2 * TOL)


# --- concave stages and refitting -----------------------------------------------------------------


@pytest.mark.parametrize("loss_name", ["log_loss", "softmax", "squared_error", "hinge"])
@pytest.mark.parametrize("variant", ["weights", "signs", "linear"])
def test_concave_stages_are_certified(loss_name, variant):
    """The certificate is that of the weighted problem of the last stage."""
    problem = VARIANTS[variant](loss_name, 3)
    everything = Everything(problem)
    path = LatticePath(problem, tol=TOL, concavity=1.0)
    for alpha in path.alpha_max() * np.array([0.5, 0.2, 0.05]):
        solution = path.solve(alpha)
        assert "stage" in solution.certificate.method
        D = everything.D.copy()
        D[: everything.n_dense] = path.penalty[: everything.n_dense]
        for conjunction, price in zip(
            path.working_set.conjunctions, path.penalty[everything.n_dense :], strict=True
        ):
            D[everything.n_dense + everything.place[conjunction]] = price
        used = [everything.n_dense + everything.place[c] for c in solution.conjunctions]
        assert_array_equal(D[used], solution.penalty[: len(used)])
        check_certificate(everything, solution, D)
        assert solution.certificate.relative_gap <= TOL
        optimum = everything.optimum(alpha, D=D)
        assert_allclose(solution.certificate.primal, optimum, rtol=1e-6)
    assert (D < everything.D).any()


@pytest.mark.parametrize("fraction", [0.5, 1.0])
@pytest.mark.parametrize("variant", ["weights", "coupled", "signs", "linear"])
@pytest.mark.parametrize("loss_name", LOSSES)
def test_relaxed_refits_the_selected_rules(loss_name, variant, fraction):
    problem = VARIANTS[variant](loss_name, 3)
    everything = Everything(problem)
    path = LatticePath(problem, tol=TOL)
    solution = path.solve(0.3 * path.alpha_max())
    relaxed = path.relaxed(solution, fraction)
    assert set(relaxed.conjunctions) <= set(solution.conjunctions)
    assert relaxed.certificate == solution.certificate
    used = [everything.n_dense + everything.place[c] for c in solution.conjunctions]
    used += list(np.flatnonzero(solution.linear_coef.any(axis=1)))
    alpha = max(1.0 - fraction, lattice_path._LEAST_PENALTY) * solution.alpha
    found = everything.objective(replace(relaxed, alpha=alpha))
    assert_allclose(found, everything.optimum(alpha, columns=used), rtol=1e-6)
    again = path.solve(solution.alpha)  # the path goes on from where it was
    assert_allclose(again.certificate.primal, solution.certificate.primal, rtol=TOL)


# --- cut short ------------------------------------------------------------------------------------


def interrupting(method, calls):
    """The method, but in its call of that number the interrupt of a keyboard."""
    number = count()

    def interrupted(*args, **kwargs):
        if next(number) == calls:
            raise KeyboardInterrupt
        return method(*args, **kwargs)

    return interrupted


def check_cut_short(everything, solution, status, optimum):
    check_certificate(everything, solution)
    assert solution.status == status
    assert not solution.certificate.complete
    assert solution.certificate.dual <= optimum * (1.0 + 1e-8)
    assert optimum <= solution.certificate.primal * (1.0 + 1e-8)


@pytest.mark.parametrize("calls", [0, 1, 2])
@pytest.mark.parametrize("place", ["search", "restricted", "inside"])
@pytest.mark.parametrize("loss_name", ["log_loss", "hinge"])
def test_an_interrupt_leaves_a_model_with_its_bound(monkeypatch, loss_name, place, calls):
    problem = VARIANTS["weights"](loss_name, 3)
    everything = Everything(problem)
    alpha = 0.05 * LatticePath(problem).alpha_max()
    optimum = everything.optimum(alpha)
    path = LatticePath(problem, tol=TOL)
    if place == "search":
        search = lattice_path.find_conjunctions
        monkeypatch.setattr(lattice_path, "find_conjunctions", interrupting(search, calls))
    elif place == "restricted":
        monkeypatch.setattr(path.restricted, "solve", interrupting(path.restricted.solve, calls))
    else:
        correlate = path.working_set.correlate
        monkeypatch.setattr(path.working_set, "correlate", interrupting(correlate, 3 * calls + 3))
    *_, solution = path.approach(alpha)
    monkeypatch.undo()
    check_cut_short(everything, solution, outcome.INTERRUPTED, optimum)
    assert solution.alpha == alpha
    check_optimal(everything, path.solve(alpha), optimum)  # and nothing is broken


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("loss_name", ["squared_error", "epsilon_insensitive"])
def test_node_limit(loss_name, share):
    problem = VARIANTS["weights"](loss_name, 3)
    everything = Everything(problem)
    alpha = 0.02 * LatticePath(problem).alpha_max()
    optimum = everything.optimum(alpha)
    unlimited = LatticePath(problem, tol=TOL)
    *_, solution = unlimited.approach(alpha)
    assert solution.status == outcome.OPTIMAL
    limits = Limits(max_nodes=1 + int(share * unlimited.n_nodes))
    *_, solution = LatticePath(problem, tol=TOL, limits=limits).approach(alpha)
    check_cut_short(everything, solution, outcome.NODE_LIMIT, optimum)
    assert solution.alpha == alpha


@pytest.mark.parametrize("ticks", [1, 4, 16])
@pytest.mark.parametrize("loss_name", ["squared_error", "hinge"])
def test_deadline(monkeypatch, loss_name, ticks):
    """Whatever the moment at which time runs out; the clock ticks each time it is looked at."""
    problem = VARIANTS["weights"](loss_name, 3)
    everything = Everything(problem)
    alpha = 0.02 * LatticePath(problem).alpha_max()
    optimum = everything.optimum(alpha)
    clock = count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    path = LatticePath(problem, tol=TOL, limits=Limits(deadline=float(ticks)))
    *_, solution = path.approach(alpha)
    monkeypatch.undo()
    check_cut_short(everything, solution, outcome.TIME_LIMIT, optimum)


def test_a_limit_ends_a_path():
    problem = make_problem("log_loss", 1)
    largest = LatticePath(problem).alpha_max()
    path = LatticePath(problem, tol=TOL, limits=Limits(max_nodes=60))
    solutions = list(path.path(largest * np.geomspace(0.9, 0.01, 30)))
    assert len(solutions) < 30
    statuses = [solution.status for solution in solutions]
    assert statuses == [outcome.OPTIMAL] * (len(solutions) - 1) + [outcome.NODE_LIMIT]
    last = solutions[-1].certificate
    assert 0.0 < last.dual < last.primal  # the searches before say something of this alpha too
