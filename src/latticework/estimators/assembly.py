"""From a table and encoded targets to a solver's problem, and back to rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latticework.estimators.equal_rows import equal_rows
from latticework.rules import conditions as ops
from latticework.rules.cells import NUMERIC
from latticework.rules.ensemble import RuleEnsemble
from latticework.rules.statistics import REGRESSION, RuleStatistics, rule_statistics
from latticework.rules.terms import LinearTerm
from latticework.solvers.problem import LatticeProblem
from latticework.solvers.result import INTERRUPTED, OPTIMAL, TIME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from latticework.blocks.lattices.conjunctions import ConjunctionLattice
    from latticework.estimators.targets import Targets
    from latticework.losses.base import Loss
    from latticework.rules.columns import Table
    from latticework.rules.conditions import Condition
    from latticework.rules.propositionalize import Propositionalizer
    from latticework.solvers.lattice_path import LatticePath
    from latticework.solvers.result import Solution

# A linear term is standardised, a rule that holds for a fraction s of the rows has a deviation of
# sqrt(s (1 - s)): this is what a linear term is scaled to, so that both pay alike.
_TYPICAL_DEVIATION = 0.4
_CLIPPED_SHARE = 0.025
# Rules differ in importance when they do by one part in this many.
_DISTINCT = 1e7


@dataclass(frozen=True)
class Sample:
    """Validated rows.

    Parameters
    ----------
    data : Table, or csr_array of shape (n, p)
        Columns; or the conditions themselves, with the ``as_is`` that describes them.
    as_is : Propositionalizer or None
    targets : Targets
    weight : ndarray of shape (n,)
    """

    data: Any
    as_is: Propositionalizer | None
    targets: Targets
    weight: NDArray[np.float64]

    def take(self, rows: NDArray[np.intp]) -> Sample:
        """Some of the rows."""
        data = self.data[rows] if self.as_is is not None else take_rows(self.data, rows)
        return Sample(data, self.as_is, self.targets.take(rows), self.weight[rows])

    def counted(self) -> Sample:
        """The rows that have weight and a known label; only they count."""
        counts = (self.weight > 0.0) & self.targets.known.any(axis=1)
        return self if counts.all() else self.take(np.flatnonzero(counts))


def take_rows(table: Table, rows: NDArray[np.intp]) -> Table:
    """Some rows of a table."""
    columns = tuple(replace(column, values=column.values[rows]) for column in table.columns)
    return replace(table, columns=columns, n_rows=len(rows))


@dataclass(frozen=True)
class Rows:
    """What a solver sees of the rows: equal ones are one row of their total weight.

    Parameters
    ----------
    codes : ndarray of shape (k, m), or csr_array of shape (k, p)
    targets : Targets
        Of k rows.
    weight : ndarray of shape (k,)
    factors : ndarray of shape (k, T)
        Class weights.
    dense : ndarray of shape (q, k) or None
        Columns that enter linearly.
    count : ndarray of shape (k,)
        How many rows each of them stands for.
    place : ndarray of shape (n,)
        Which of them each row became.
    """

    codes: Any
    targets: Targets
    weight: NDArray[np.float64]
    factors: NDArray[np.float64]
    dense: NDArray[np.float64] | None
    count: NDArray[np.int64]
    place: NDArray[np.intp]

    @classmethod
    def merged(
        cls,
        codes: Any,
        targets: Targets,
        weight: NDArray[np.float64],
        factors: NDArray[np.float64],
        dense: NDArray[np.float64] | None,
    ) -> Rows:
        """Merge the rows that are equal but for their weight; ``factors`` follow from targets."""
        others = [targets.values, targets.known, *([] if dense is None else [dense.T])]
        first, place = equal_rows(codes, others)
        return cls(
            codes=codes[first],
            targets=targets.take(first),
            weight=np.bincount(place, weight).astype(np.float64),
            factors=factors[first],
            dense=None if dense is None else np.ascontiguousarray(dense[:, first]),
            count=np.bincount(place),
            place=place,
        )


@dataclass(frozen=True)
class Assembly:
    """Everything a fit needs between validation and solver.

    Parameters
    ----------
    propositions : Propositionalizer
    feature_names : tuple of str
    loss : Loss
    problem : LatticeProblem
    rows : Rows
        Those of the problem.
    linear_terms : tuple of LinearTerm
        With weights still zero.
    total_weight : float
        Sum of the row weights, by which the losses were divided.
    """

    propositions: Propositionalizer
    feature_names: tuple[str, ...]
    loss: Loss
    problem: LatticeProblem
    rows: Rows
    linear_terms: tuple[LinearTerm, ...]
    total_weight: float

    @property
    def targets(self) -> Targets:
        """Of the problem's rows."""
        return self.rows.targets


def mixing_of(task_coupling: Any, n_tasks: int) -> NDArray[np.float64] | None:
    """L with B = L L' of a task coupling B; None for the identity.

    Raises
    ------
    ValueError
        When B has the wrong shape, is not symmetric or not positive semidefinite.
    """
    if task_coupling is None:
        return None
    try:
        coupling = np.asarray(task_coupling, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("task_coupling must be a square matrix of numbers.") from error
    if coupling.shape != (n_tasks, n_tasks):
        raise ValueError(
            f"task_coupling must be a matrix of shape ({n_tasks}, {n_tasks}), one row per task, "
            f"got shape {coupling.shape}."
        )
    if not np.isfinite(coupling).all() or not np.allclose(coupling, coupling.T):
        raise ValueError("task_coupling must be a symmetric matrix of finite numbers.")
    values, vectors = np.linalg.eigh(0.5 * (coupling + coupling.T))
    if values[0] < -1e-10 * max(1.0, values[-1]):
        raise ValueError(
            "task_coupling must be positive semidefinite: its smallest eigenvalue is "
            f"{values[0]:.6g}."
        )
    if np.allclose(coupling, np.eye(n_tasks)):
        return None
    positive = values > 1e-12 * max(values[-1], 1e-300)
    if not positive.any():
        raise ValueError("task_coupling must not be zero.")
    return vectors[:, positive] * np.sqrt(values[positive])


def condition_signs(
    propositions: Propositionalizer, monotonic: Mapping[str, int]
) -> NDArray[np.int8] | None:
    """Side to which each condition restricts weights, from monotone constraints by feature."""
    if not any(monotonic.values()):
        return None
    signs = [
        monotonic.get(condition.feature, 0) * _direction(condition)
        for condition in propositions.table_.conditions
    ]
    return np.array(signs, np.int8)


def _direction(condition: Condition) -> int:
    """1 when a condition comes to hold as its feature grows, -1 when it ceases to, else 0."""
    if condition.operator in (ops.GREATER, ops.IS_TRUE):
        return 1
    if condition.operator == ops.LESS_EQUAL:
        return -1
    if condition.operator == ops.EQUAL:  # of a boolean: no other levels have an order
        return 1 if condition.value else -1
    return 0


def make_linear_terms(table: Table, sample_weight: NDArray, n_outputs: int) -> list[LinearTerm]:
    """A term, weights zero, for every numeric column that varies."""
    terms = []
    for column in table.columns:
        if column.kind != NUMERIC:
            continue
        seen = ~np.isnan(column.values) & (sample_weight > 0)
        values, weights = column.values[seen], sample_weight[seen]
        if len(values) == 0:
            continue
        # By value, so that repeated rows, weights and any order of the rows give the same bits.
        values, place = np.unique(values, return_inverse=True)
        weights = np.bincount(place, weights=weights)
        mass = np.cumsum(weights) / weights.sum()
        low = float(values[np.searchsorted(mass, _CLIPPED_SHARE)])
        top = min(int(np.searchsorted(mass, 1.0 - _CLIPPED_SHARE)), len(values) - 1)
        high = float(values[top])
        clipped = np.clip(values, low, high)
        mean = float(np.average(clipped, weights=weights))
        scale = float(np.sqrt(np.average((clipped - mean) ** 2, weights=weights)))
        if scale > 1e-12 * max(1.0, abs(mean)):
            terms.append(LinearTerm(column.name, mean, scale, low, high, (0.0,) * n_outputs))
    return terms


def linear_columns(terms: tuple[LinearTerm, ...], table: Table) -> NDArray[np.float64]:
    """The standardised columns (q, n) of linear terms."""
    return np.array([term.standardised(table[term.feature].values) for term in terms])


def row_factors(targets: Targets, factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """What class weights (n, T) make of the weight of each row (n,): the mean over known cells."""
    known = targets.known
    return np.where(known, factors, 0.0).sum(axis=1) / known.sum(axis=1)


def cell_weights(
    targets: Targets, row_weight: NDArray[np.float64], factors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """c (n, T), scaled so that the rows' weights sum to one, and the sum they had.

    Parameters
    ----------
    targets : Targets
        Of rows with a known label each.
    row_weight : ndarray of shape (n,)
    factors : ndarray of shape (n, T)
        Class weights.  They belong to the row, as if the row weight held them.
    """
    total = float(np.sum(row_weight * row_factors(targets, factors)))
    return np.where(targets.known, row_weight[:, None] * factors, 0.0) / total, total


def make_problem(
    targets: Targets,
    loss: Loss,
    weights: NDArray[np.float64],
    lattice: ConjunctionLattice,
    mixing: NDArray[np.float64] | None,
    dense: NDArray[np.float64] | None,
    dense_signs: NDArray[np.int8] | None,
) -> LatticeProblem:
    """The solver's problem; linear terms pay like a single condition of typical deviation."""
    price = (1.0 + lattice.length_penalty) / _TYPICAL_DEVIATION
    return LatticeProblem(
        loss=loss,
        targets=targets.values,
        weights=weights,
        lattice=lattice,
        mixing=mixing,
        dense=dense if dense is not None and len(dense) else None,
        dense_scale=None if dense is None or not len(dense) else np.full(len(dense), price),
        dense_signs=dense_signs,
    )


def centred(assembly: Assembly, solution: Solution) -> Solution:
    """The same probabilities from softmax scores whose intercepts sum to zero."""
    if not assembly.targets.joint:
        return solution
    return replace(solution, intercept=solution.intercept - solution.intercept.mean())


def refitted(path: LatticePath, solution: Solution, relax: float) -> Solution:
    """A solution after relaxing; its status tells when time ran out for that."""
    if relax == 0.0:
        return solution
    refit = path.relaxed(solution, relax)
    if refit.status == OPTIMAL and path.limits.is_over():
        interrupted = path.limits.is_interrupted()
        refit = replace(refit, status=INTERRUPTED if interrupted else TIME_LIMIT)
    return refit


def rules_of(assembly: Assembly, solution: Solution) -> tuple[RuleEnsemble, NDArray[np.intp]]:
    """The ensemble of a solution, its rules by falling importance, and their order.

    Conditions that change nothing on the training rows are left out.
    """
    lattice = assembly.problem.lattice
    conjunctions = [_essential(assembly, conjunction) for conjunction in solution.conjunctions]
    indicators = [lattice.indicator(conjunction) for conjunction in conjunctions]
    held = np.array(indicators, dtype=np.bool_).reshape(len(conjunctions), lattice.n_rows)
    found = rule_statistics(
        held.T, assembly.targets.plain, solution.coef, assembly.targets.output,
        assembly.rows.weight, assembly.rows.count,
    )  # fmt: skip
    sizes = np.linalg.norm(solution.coef, axis=1)
    importance = sizes * np.sqrt(found.support * (1.0 - found.support))
    order = _ranking(importance, conjunctions)
    conditions = lattice.table.conditions
    used = [t for t in range(len(assembly.linear_terms)) if np.any(solution.linear_coef[t])]
    terms = [
        LinearTerm(**{**assembly.linear_terms[t].to_dict(), "weights": solution.linear_coef[t]})
        for t in used
    ]
    ensemble = RuleEnsemble.from_parts(
        [[conditions[c] for c in conjunctions[r]] for r in order],
        solution.coef[order],
        solution.intercept,
        statistics=_reordered(found, order),
        feature_names=assembly.feature_names,
        feature_kinds=assembly.propositions.kinds_,
        output=assembly.targets.output,
        link=link_of(assembly.loss, assembly.targets.output),
        classes=assembly.targets.classes,
        outputs=assembly.targets.outputs,
        linear_terms=terms,
    )
    return ensemble, order


def _ranking(
    importance: NDArray[np.float64], conjunctions: list[tuple[int, ...]]
) -> NDArray[np.intp]:
    """Order of falling importance; equal ones, up to rounding, by length and conditions."""
    coarse = np.rint(importance / max(importance.max(initial=0.0), 1e-300) * _DISTINCT)
    keys = [(-coarse[r], len(c), c) for r, c in enumerate(conjunctions)]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def _essential(assembly: Assembly, conjunction: tuple[int, ...]) -> tuple[int, ...]:
    """Drop conditions without which the conjunction selects the same training rows.

    With a length penalty the best conjunctions have none; without one they cost nothing.
    """
    lattice = assembly.problem.lattice
    if lattice.length_penalty > 0:
        return conjunction
    rows = lattice.indicator(conjunction)
    for condition in conjunction:
        shorter = tuple(c for c in conjunction if c != condition)
        if len(shorter) and np.array_equal(lattice.indicator(shorter), rows):
            conjunction = shorter
    return conjunction


def _reordered(found: RuleStatistics, order: NDArray[np.intp]) -> RuleStatistics:
    return RuleStatistics(
        found.support[order],
        found.count[order],
        None if found.precision is None else found.precision[order],
        None if found.mean is None else found.mean[order],
        found.lift[order],
    )


def link_of(loss: Loss, output: str) -> str | None:
    """How the scores become probabilities or means."""
    if output == REGRESSION:
        return "log" if loss.name == "poisson" else "identity"
    return {"log_loss": "logit", "softmax": "softmax"}.get(loss.name)
