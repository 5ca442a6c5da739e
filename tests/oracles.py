"""Slow, simple answers to compare the library with: full enumeration and a conic solver.

Nothing here uses the library but the conditions it is asked about.  Problems are

    form "alpha":  min  sum_it c_it loss(y_it, F_it) + alpha * Omega(f)
    form "C":      min  1/2 Omega(f)^2 + C * sum_it c_it loss(y_it, F_it)

with ``F = indicators f + b``, ``Omega(f) = sum_w D_w Q_w(f)`` and ``Q_w(f)^2 = f_w' B^-1 f_w``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, xlogy

from latticework.rules.conditions import (
    EQUAL,
    GREATER,
    IS_MISSING,
    IS_TRUE,
    LESS_EQUAL,
    NOT_EQUAL,
    Condition,
    ConditionTable,
)

# --- conjunctions ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Enumeration:
    """All k conjunctions of a table, shortest first.  Iterating gives (conditions, rows) pairs.

    Parameters
    ----------
    conditions : list of tuples of int
        Ascending indices of each conjunction's conditions.
    indicators : ndarray of shape (n, k), bool
        The rows that satisfy each conjunction.
    D : ndarray of shape (k,)
        Penalties (1 + length_penalty)^length.
    """

    conditions: list[tuple[int, ...]]
    indicators: NDArray[np.bool_]
    D: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.conditions)

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], NDArray[np.bool_]]]:
        return zip(self.conditions, self.indicators.T, strict=True)


def enumerate_conjunctions(
    table: ConditionTable,
    codes: NDArray[np.integer],
    length_penalty: float,
    max_length: int | None = None,
    *,
    include_empty: bool = False,
) -> Enumeration:
    """Every conjunction that is neither contradictory nor redundant, whatever the data.

    Judged on all codes that could occur: some code satisfies the conjunction, and each of its
    conditions excludes a code that the others leave.  So there is at most one ``<=`` and one
    ``>`` per numeric column, and an ``==`` is alone on its column.  Conditions "is true" sit on
    columns of their own: then these are all subsets.

    Parameters
    ----------
    table : ConditionTable
    codes : ndarray of shape (n, m)
    length_penalty : float
        The a of D = (1 + a)^length.
    max_length : int or None
        Longest conjunction.
    include_empty : bool
        Whether the conjunction of no conditions, true of every row, is among them.
    """
    most = len(table) if max_length is None else max_length
    found: list[tuple[int, ...]] = [()]
    for column in range(len(table.n_codes)):
        options = _column_subsets(table, column, most)
        found = [head + tail for head in found for tail in options if len(head + tail) <= most]
    found = sorted((tuple(sorted(x)) for x in found), key=lambda x: (len(x), x))
    if not include_empty:
        found = found[1:]
    truth = np.array([table.satisfied(codes, c) for c in range(len(table))], dtype=bool)
    truth = truth.reshape(len(table), len(codes))
    rows = [truth[list(x)].all(axis=0) for x in found]
    indicators = np.array(rows, dtype=bool).reshape(len(found), len(codes)).T
    lengths = np.array([len(x) for x in found], dtype=float)
    return Enumeration(found, indicators, (1.0 + length_penalty) ** lengths)


def _column_subsets(table: ConditionTable, column: int, most: int) -> list[tuple[int, ...]]:
    """Subsets of one column's conditions that are neither contradictory nor redundant."""
    own = [c for c in range(len(table)) if table.column[c] == column]
    every_code = np.arange(table.n_codes[column])[:, None]
    allowed = {c: table.satisfied(np.repeat(every_code, column + 1, axis=1), c) for c in own}

    def sensible(subset: tuple[int, ...]) -> bool:
        together = _intersection([allowed[c] for c in subset], len(every_code))
        if not together.any():
            return False
        for c in subset:
            others = [allowed[d] for d in subset if d != c]
            if np.array_equal(_intersection(others, len(every_code)), together):
                return False
        return True

    # Every subset of a sensible subset is sensible, so sensible ones grow from sensible ones.
    found: list[tuple[int, ...]] = [()]
    frontier = found
    while frontier and len(frontier[0]) < most:
        longer = [(*s, c) for s in frontier for c in own if not s or c > s[-1]]
        frontier = [s for s in longer if sensible(s)]
        found = found + frontier
    return found


def _intersection(sets: list[NDArray[np.bool_]], size: int) -> NDArray[np.bool_]:
    return np.logical_and.reduce(sets) if sets else np.ones(size, dtype=bool)


def dual_norm(
    residual: NDArray[np.float64],
    indicators: NDArray[np.generic],
    D: NDArray[np.float64],
    coupling: NDArray[np.float64] | None = None,
) -> float:
    """``max_w sqrt(g_w' B g_w) / D_w`` with ``g = indicators' residual``, residual of (n, T)."""
    g = indicators.T.astype(float) @ residual
    B = np.eye(residual.shape[1]) if coupling is None else coupling
    squares = np.einsum("ks,st,kt->k", g, B, g)
    return float(np.max(np.sqrt(np.maximum(squares, 0.0)) / D, initial=0.0))


# --- the optimum ----------------------------------------------------------------------------------


class Optimum(NamedTuple):
    """Solution of a penalised problem: objective at (coef, intercept), (k, T) and (T,)."""

    objective: float
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]


def solve_cvxpy(
    loss_name: str,
    params: dict[str, float],
    y: NDArray[np.float64],
    c: NDArray[np.float64],
    indicators: NDArray[np.generic],
    D: NDArray[np.float64],
    alpha: float | None = None,
    coupling: NDArray[np.float64] | None = None,
    signs: ArrayLike | None = None,
    form: Literal["alpha", "C"] = "alpha",
    C: float | None = None,
    intercept: bool = True,
) -> Optimum:
    """Optimum of the problem over the given conjunctions, by a conic interior-point solver.

    Parameters
    ----------
    loss_name, params
        Name and parameters of one of the eight losses.
    y, c : ndarray of shape (n, T)
        Targets as the loss wants them, and weights.
    indicators : ndarray of shape (n, k)
        Boolean, or any numbers for linear terms.
    D : ndarray of shape (k,)
        Penalty of each conjunction.
    alpha, C : float
        The one that ``form`` names.
    coupling : ndarray of shape (T, T) or None
        Positive semidefinite B; where it is singular, f_w stays in its range.
    signs : array-like of shape (k,) or (k, T), or None
        +1 where coefficients must be >= 0, -1 where <= 0, 0 where they are free.
    intercept : bool
        Whether there is a free intercept per task.
    """
    strength = {"alpha": alpha, "C": C}[form]
    if strength is None or (alpha is None) == (C is None):
        raise ValueError(f"form={form!r} needs {form} and nothing else, got {alpha=}, {C=}.")
    X, n_tasks = np.asarray(indicators, dtype=float), y.shape[1]
    root = _square_root(np.eye(n_tasks) if coupling is None else coupling)
    latent = cp.Variable((X.shape[1], root.shape[1]))
    offsets = cp.Variable((1, n_tasks))
    coef = latent @ root.T
    scores = X @ coef + np.ones((len(y), 1)) @ offsets
    omega = D @ cp.norm(latent, 2, axis=1)
    fit = cp.sum(cp.multiply(_row_weights(loss_name, c), _CVXPY[loss_name](y, scores, **params)))
    constraints = _sign_constraints(coef, signs, n_tasks)
    if not intercept:
        constraints.append(offsets == 0)
    elif loss_name == "softmax":
        constraints.append(cp.sum(offsets) == 0)  # a common shift changes nothing
    objective = fit + strength * omega if form == "alpha" else omega**2 / 2 + strength * fit
    _solve(cp.Problem(cp.Minimize(objective), constraints))
    f, b = latent.value @ root.T, offsets.value[0]
    at_solution = float(D @ np.linalg.norm(latent.value, axis=1))
    loss = total_loss(loss_name, params, y, c, X @ f + b)
    value = (
        loss + strength * at_solution
        if form == "alpha"
        else (0.5 * at_solution**2 + strength * loss)
    )
    return Optimum(value, f, b)


def total_loss(
    loss_name: str,
    params: dict[str, float],
    y: NDArray[np.float64],
    c: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> float:
    """``sum_it c_it loss(y_it, F_it)``, by the formulas as they stand in a textbook."""
    values = _PLAIN[loss_name](y, scores, **params)
    return float((_row_weights(loss_name, c) * values).sum())


def _square_root(B: NDArray[np.float64]) -> NDArray[np.float64]:
    """L of shape (T, rank) with B = L L'."""
    values, vectors = np.linalg.eigh(B)
    kept = values > 1e-12 * values.max()
    return vectors[:, kept] * np.sqrt(values[kept])


def _row_weights(loss_name: str, c: NDArray[np.float64]) -> NDArray[np.float64]:
    return c[:, :1] if loss_name == "softmax" else c


def _sign_constraints(
    coef: cp.Expression, signs: ArrayLike | None, n_tasks: int
) -> list[cp.Constraint]:
    if signs is None:
        return []
    wanted = np.asarray(signs, dtype=float)
    if wanted.ndim == 1:
        wanted = np.repeat(wanted[:, None], n_tasks, axis=1)
    # Only the entries that are constrained: a row 0 >= 0 would leave the solver no interior.
    return [wanted[w, t] * coef[w, t] >= 0 for w, t in np.argwhere(wanted != 0)]


# Many near-equal columns leave clarabel short of digits with its own settings; more refinement of
# its linear systems, no regularisation of them, or shorter steps give them back.
_REFINED = {
    "iterative_refinement_reltol": 1e-15,
    "iterative_refinement_abstol": 1e-15,
    "iterative_refinement_max_iter": 50,
}
_ATTEMPTS: list[tuple[float, dict[str, Any]]] = [
    (tolerance, settings)
    for tolerance in (1e-12, 1e-11, 1e-10, 1e-9)
    for settings in (
        _REFINED,
        {"static_regularization_enable": False},
        {"max_step_fraction": 0.9},
    )
]


def _solve(problem: cp.Problem) -> None:
    """Solve as tightly as the solver can; a tolerance it cannot reach gives way to the next."""
    for tolerance, settings in _ATTEMPTS:
        tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        with warnings.catch_warnings():  # that it may be inaccurate is what the next try is for
            warnings.simplefilter("ignore", UserWarning)
            # Warm, cvxpy would reuse a solver object with the settings of the last attempt.
            problem.solve(solver=cp.CLARABEL, warm_start=False, **tolerances, **settings)
        if problem.status == cp.OPTIMAL:
            return
    raise RuntimeError(f"No optimum to 1e-9: the solver ended with {problem.status}.")


def _poisson(y: NDArray[np.float64], f: cp.Expression) -> cp.Expression:
    return cp.exp(f) - cp.multiply(y, f) + (xlogy(y, y) - y)


def _softmax(y: NDArray[np.float64], f: cp.Expression) -> cp.Expression:
    return cp.log_sum_exp(f, axis=1, keepdims=True) - cp.sum(cp.multiply(y, f), 1, keepdims=True)


_CVXPY: dict[str, Callable[..., cp.Expression]] = {
    "log_loss": lambda y, f: cp.logistic(cp.multiply(-y, f)),
    "softmax": _softmax,
    "hinge": lambda y, f: cp.pos(1 - cp.multiply(y, f)),
    "squared_hinge": lambda y, f: cp.square(cp.pos(1 - cp.multiply(y, f))),
    "squared_error": lambda y, f: cp.square(f - y) / 2,
    "huber": lambda y, f, delta: cp.huber(f - y, delta) / 2,
    "epsilon_insensitive": lambda y, f, epsilon: cp.pos(cp.abs(f - y) - epsilon),
    "poisson": _poisson,
}


def _plain_huber(
    y: NDArray[np.float64], f: NDArray[np.float64], delta: float
) -> NDArray[np.float64]:
    r = np.abs(f - y)
    return np.where(r <= delta, r**2 / 2, delta * (r - delta / 2))


_PLAIN: dict[str, Callable[..., NDArray[np.float64]]] = {
    "log_loss": lambda y, f: np.logaddexp(0.0, -y * f),
    "softmax": lambda y, f: (logsumexp(f, axis=1) - (y * f).sum(axis=1))[:, None],
    "hinge": lambda y, f: np.maximum(0.0, 1 - y * f),
    "squared_hinge": lambda y, f: np.maximum(0.0, 1 - y * f) ** 2,
    "squared_error": lambda y, f: (f - y) ** 2 / 2,
    "huber": _plain_huber,
    "epsilon_insensitive": lambda y, f, epsilon: np.maximum(0.0, np.abs(f - y) - epsilon),
    "poisson": lambda y, f: np.exp(f) - y * f + xlogy(y, y) - y,
}


# --- random problems ------------------------------------------------------------------------------


class _TableBuilder:
    """Collects conditions with their codes, column by column."""

    def __init__(self) -> None:
        self.conditions: list[Condition] = []
        self.intervals: list[tuple[int, int, int, int]] = []
        self.n_codes: list[int] = []

    def add(self, operator: str, value: float | str | None, low: int, high: int, hole: int = -1):
        column = len(self.n_codes)
        self.conditions.append(Condition(f"x{column}", operator, value))
        self.intervals.append((column, low, high, hole))

    def end_column(self, n_codes: int) -> None:
        self.n_codes.append(n_codes)

    def table(self) -> ConditionTable:
        column, low, high, hole = np.array(self.intervals, np.int32).reshape(-1, 4).T.copy()
        n_codes = np.array(self.n_codes, np.int32)
        return ConditionTable(self.conditions, column, low, high, hole, n_codes)


def random_table(
    rng: np.random.Generator,
    n: int,
    n_numeric: int,
    n_categorical: int,
    n_thresholds: int,
    levels: int | Sequence[int],
    missing: float,
) -> tuple[NDArray[np.uint8], ConditionTable]:
    """Random codes (n, m) and all conditions on them; numeric columns first.

    A numeric column with k thresholds has codes 0..k (the number of thresholds below the value)
    and k + 1 for missing; a categorical one with L levels has codes 0..L-1, L for levels not seen
    in training (never drawn) and L + 1 for missing.  Two levels have only their two ``==``.

    Parameters
    ----------
    levels : int or sequence of int
        Number of levels, >= 2, of every or of each categorical column.
    missing : float
        Probability of a missing cell; columns in which one occurs have "is missing".
    """
    builder, columns = _TableBuilder(), []
    for _ in range(n_numeric):
        values, absent = rng.integers(n_thresholds + 1, size=n), rng.random(n) < missing
        for k in range(n_thresholds):
            builder.add(LESS_EQUAL, float(k), 0, k)
        for k in range(n_thresholds):
            builder.add(GREATER, float(k), k + 1, n_thresholds)
        columns.append(_with_missing(builder, values, absent, n_thresholds + 1))
    sizes = [levels] * n_categorical if isinstance(levels, int) else list(levels)
    if len(sizes) != n_categorical or any(size < 2 for size in sizes):
        raise ValueError(f"{levels=} must be 2 or more, once or for each categorical column.")
    for size in sizes:
        values, absent = rng.integers(size, size=n), rng.random(n) < missing
        for k in range(size):
            builder.add(EQUAL, f"l{k}", k, k)
        for k in range(size if size > 2 else 0):
            builder.add(NOT_EQUAL, f"l{k}", 0, size, hole=k)
        columns.append(_with_missing(builder, values, absent, size + 1))
    codes = np.stack(columns, axis=1) if columns else np.empty((n, 0))
    return codes.astype(np.uint8), builder.table()


def boolean_table(
    rng: np.random.Generator, n: int, p: int, density: float = 0.5
) -> tuple[NDArray[np.uint8], ConditionTable]:
    """Random 0/1 codes (n, p) and one condition "is true" per column."""
    builder = _TableBuilder()
    for _ in range(p):
        builder.add(IS_TRUE, None, 1, 1)
        builder.end_column(2)
    return (rng.random((n, p)) < density).astype(np.uint8), builder.table()


def _with_missing(
    builder: _TableBuilder, values: NDArray[np.integer], absent: NDArray[np.bool_], code: int
) -> NDArray[np.integer]:
    """Close a column whose last code means missing."""
    if absent.any():
        builder.add(IS_MISSING, None, code, code)
    builder.end_column(code + 1)
    return np.where(absent, code, values)
