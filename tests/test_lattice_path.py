"""Certified solutions over all conjunctions, against enumeration and a conic solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.oracles import enumerate_conjunctions, random_table, solve_cvxpy, total_loss

from latticework.blocks.lattices.conjunctions import ConjunctionLattice
from latticework.losses import LOSSES, get_loss
from latticework.solvers import result as outcome
from latticework.solvers.lattice_path import LatticePath, Limits
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
    return LatticeProblem(get_loss(loss_name, **PARAMETERS.get(loss_name, {})), targets, weights, lattice)


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
