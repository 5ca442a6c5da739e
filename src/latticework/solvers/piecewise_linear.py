"""The restricted problem with a piecewise linear loss: linear programs on the rules at hand.

A convex piecewise linear loss is a line plus hinges, ``mass * max(0, f - knot)``.  With one task
the problem is a linear program; with several, the norm of a rule's coefficients is approximated
from below by cuts ``<e, v> <= ‖v‖`` with unit vectors e, which one linear program after the other
refines.  A program is kept small in two more ways: it holds the columns that matter, and where
predictions are far from the knots, all hinges of a side are replaced by one, their mean.  All
three are exact bounds: every program yields a model and a feasible dual point.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from latticework.search.limits import NO_LIMITS, Limits
from latticework.solvers.hinges import Hinges
from latticework.solvers.prox_newton import (
    Model,
    Restricted,
    largest_ratio,
    penalty_value,
    refresh_predictions,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latticework.solvers.problem import LatticeProblem
    from latticework.solvers.working_set import WorkingSet

_MAX_STEPS = 200
# Hinges that a program starts with, one by one.
_FEW_HINGES = 1000
# Columns with ratios at the last dual point above this share of alpha start in the program.
_PROMISING = 0.9
# Predictions this close to a knot, relative to the largest, are on it.
_AT_KNOT = 1e-12
# A model takes the place of another one only for more than rounding.
_BETTER = 1e-13
# Coefficients below this share of the largest one are rounding.
_NOTHING = 1e-11


@dataclass
class _Selection:
    """What a program holds in full.

    Parameters
    ----------
    active : ndarray of shape (k,), int
        Columns of the working set.
    is_single : ndarray of shape (m,), bool
        Hinges with a dual variable of their own.
    upper : ndarray of shape (m,), bool
        Of the other hinges, those that are thought to be above their knot.
    """

    active: NDArray[np.int64]
    is_single: NDArray[np.bool_]
    upper: NDArray[np.bool_]


@dataclass(frozen=True)
class _Vertex:
    """Solution of a program.

    Parameters
    ----------
    latent : ndarray of shape (k, S)
    intercept : ndarray of shape (T,)
    dual : ndarray of shape (m,)
        d of every hinge.
    """

    latent: NDArray[np.float64]
    intercept: NDArray[np.float64]
    dual: NDArray[np.float64]


@dataclass(frozen=True)
class _DualPoint:
    """A balanced dual point and what it proves about the restricted problem."""

    point: NDArray[np.float64]
    ratios: NDArray[np.float64]
    value: float

    @property
    def ratio(self) -> float:
        return float(self.ratios.max(initial=0.0))


class PolyhedralDescent:
    """Solves the restricted problem of a piecewise linear loss, warm started.

    Parameters
    ----------
    working_set : WorkingSet
    limits : Limits
        When they are reached the best model so far is returned.
    """

    def __init__(self, working_set: WorkingSet, limits: Limits = NO_LIMITS) -> None:
        self.working_set = working_set
        self.limits = limits
        self.problem: LatticeProblem = working_set.problem
        self.hinges = Hinges.of(self.problem)
        mixing = self.problem.mixing
        self._mixing = np.eye(self.problem.n_tasks) if mixing is None else mixing
        self._cuts: dict[int, NDArray[np.float64]] = {}
        self._last_dual: NDArray[np.float64] | None = None

    # ---- the loop -----------------------------------------------------------------------------

    def solve(
        self,
        model: Model,
        alpha: float,
        penalty: NDArray[np.float64],
        relative_tolerance: float,
        allowed: NDArray[np.int64] | None = None,
    ) -> Restricted:
        """Improve ``model`` in place until its restricted gap is small.

        Parameters
        ----------
        model : Model
        alpha : float
        penalty : ndarray of shape (size,)
            D of every column.
        relative_tolerance : float
            Stop when the gap of the restricted problem is at most this share of its objective.
        allowed : ndarray, optional
            Columns that may be used; all by default.
        """
        first = self.dual_of(model) if self._last_dual is None else self._last_dual
        dual = self._dual(first, alpha, penalty, allowed)
        primal = self._objective(model, alpha, penalty)
        selection = self._select(model, dual, alpha)
        step = 0
        while primal - dual.value > relative_tolerance * abs(primal) and step < _MAX_STEPS:
            step += 1
            vertex = self._program(selection, model, alpha * penalty, relative_tolerance)
            if vertex is None:
                break
            new = self._as_model(vertex, selection)
            value = self._objective(new, alpha, penalty)
            if value < primal - _BETTER * abs(primal):
                primal = value
                model.latent, model.intercept = new.latent, new.intercept
                model.predictions = new.predictions
            candidate = self._dual(self._as_dual_point(vertex.dual), alpha, penalty, allowed)
            if candidate.value > dual.value:
                dual = candidate
            wanted = 0.1 * relative_tolerance * abs(primal)
            if not self._refine(selection, vertex, new, candidate, alpha, wanted):
                break
        self._last_dual = dual.point
        return Restricted(primal, dual.point, dual.ratio)

    def _objective(self, model: Model, alpha: float, penalty: NDArray) -> float:
        loss = self.problem.total_loss(model.predictions.T)
        return loss + alpha * penalty_value(model, penalty)

    def dual_of(self, model: Model) -> NDArray[np.float64]:
        """Balanced dual variables (n, T) that fit the predictions.

        Hinges above their knot have d = mass, those below have 0, and those at their knot are
        free: of each task they get the same share of their mass, the one that comes closest to
        balance.  At the best constant model the result is an optimal dual point.
        """
        hinges = self.hinges
        excess = hinges.excess(model.predictions)
        at_knot = np.abs(excess) <= _AT_KNOT * np.abs(hinges.knot).max(initial=0.0)
        fixed = np.where(excess > 0.0, hinges.mass, 0.0)
        fixed[at_knot] = 0.0
        missing = -hinges.slope.sum(axis=0) - hinges.spread(fixed).sum(axis=1)
        free = hinges.spread(np.where(at_knot, hinges.mass, 0.0)).sum(axis=1)
        share = np.divide(missing, free, out=np.zeros_like(free), where=free > 0.0)
        share = np.clip(share, 0.0, 1.0)
        return self._as_dual_point(np.where(at_knot, share[hinges.task] * hinges.mass, fixed))

    def _as_dual_point(self, dual: NDArray) -> NDArray[np.float64]:
        """Dual variables u (n, T) of the loss from those of the hinges (m,), balanced."""
        problem = self.problem
        total = self.hinges.slope + self.hinges.spread(dual).T
        u = np.divide(total, problem.weights, out=np.zeros_like(total), where=problem.weights > 0)
        return problem.loss.balance(u, problem.targets, problem.weights)

    def _dual(
        self, point: NDArray, alpha: float, penalty: NDArray, allowed: NDArray | None
    ) -> _DualPoint:
        """The ratios of a dual point, and its value after scaling it until it is feasible."""
        residual = np.ascontiguousarray(self.problem.residual(point).T)
        ratios = largest_ratio(self.working_set.correlate(residual), penalty, self.working_set.sign)
        if allowed is not None:
            outside = np.ones(len(ratios), bool)
            outside[allowed] = False
            ratios[outside] = 0.0
        largest = float(ratios.max(initial=0.0))
        shrink = min(1.0, alpha / largest) if largest > 0.0 else 1.0
        return _DualPoint(point, ratios, self.problem.dual_value(shrink * point))

    def _as_model(self, vertex: _Vertex, selection: _Selection) -> Model:
        latent = np.zeros((self.working_set.size, self.problem.n_latent))
        latent[selection.active] = vertex.latent
        model = Model(latent, vertex.intercept, np.empty(0))
        refresh_predictions(model, self.working_set)
        return model

    # ---- what a program holds in full ---------------------------------------------------------

    def _select(self, model: Model, dual: _DualPoint, alpha: float) -> _Selection:
        """Columns in use or nearly, and the hinges with predictions close to their knots."""
        in_use = np.any(model.latent != 0.0, axis=1)
        active = np.flatnonzero(in_use | (dual.ratios > _PROMISING * alpha))
        excess = self.hinges.excess(model.predictions)
        wanted = max(_FEW_HINGES, 3 * len(active) * self.problem.n_latent)
        is_single = np.ones(len(excess), bool)
        if wanted < len(excess):
            # Among equally close ones, some from everywhere: rows may come sorted.
            scattered = np.arange(len(excess)) * 0.6180339887498949 % 1.0
            is_single[np.lexsort((scattered, np.abs(excess)))[wanted:]] = False
        return _Selection(active, is_single, excess > 0.0)

    def _refine(
        self,
        selection: _Selection,
        vertex: _Vertex,
        model: Model,
        dual: _DualPoint,
        alpha: float,
        wanted: float,
    ) -> bool:
        """Add the columns, hinges and cuts behind the gap; False when there are none."""
        changed = self._add_cuts(selection, vertex)  # first: the vertex has no columns to come
        changed |= self._add_columns(selection, dual, alpha)
        changed |= self._add_hinges(selection, vertex, model, wanted)
        return changed

    def _add_columns(self, selection: _Selection, dual: _DualPoint, alpha: float) -> bool:
        ratios = dual.ratios.copy()
        ratios[selection.active] = 0.0
        violated = np.flatnonzero(ratios > alpha * (1.0 + 1e-10))
        if not len(violated):
            return False
        most = 50 + len(selection.active)
        worst = violated[np.argsort(-ratios[violated], kind="stable")[:most]]
        selection.active = np.union1d(selection.active, worst)
        return True

    def _add_hinges(
        self, selection: _Selection, vertex: _Vertex, model: Model, wanted: float
    ) -> bool:
        """Single out the hinges whose dual variables do not fit the predictions.

        The gap is a sum over hinges of mass max(0, x) - d x, with x the prediction minus the knot,
        plus what columns and cuts leave.
        """
        if selection.is_single.all():
            return False
        hinges = self.hinges
        excess = hinges.excess(model.predictions)
        gap = hinges.mass * np.maximum(excess, 0.0) - vertex.dual * excess
        gap[selection.is_single] = 0.0
        order = np.argsort(-gap, kind="stable")
        left = gap.sum() - np.cumsum(gap[order])
        count = int(np.searchsorted(-left, -wanted)) + 1 if gap.sum() > wanted else 0
        count = min(count, _FEW_HINGES + int(selection.is_single.sum()), int((gap > 0.0).sum()))
        selection.is_single[order[:count]] = True
        selection.upper = excess > 0.0
        return count > 0

    def _add_cuts(self, selection: _Selection, vertex: _Vertex) -> bool:
        """Cut where the norm of a column's coefficients exceeds its polyhedral estimate."""
        changed = False
        if self.problem.n_latent == 1:
            return False
        for w, v in zip(selection.active, vertex.latent, strict=True):
            length = float(np.linalg.norm(v))
            if length > 0.0 and length - float((self._cuts[w] @ v).max()) > 1e-14 * length:
                self._cuts[w] = np.vstack([self._cuts[w], v / length])
                changed = True
        return changed

    # ---- the linear programs, in their dual form: few equations, many bounded variables ---------
    #
    # Variables are the d_h, the groups' d, a multiplier >= 0 for each cut, and one for each
    # coefficient whose sign is fixed.  Each column has one equation per latent coordinate,
    #     sum_h phi d_h L + sum over cuts of multiplier * e - sign * multiplier = - phi' slope L,
    # and each intercept has one.  The equations' prices are the coefficients.  Masses are scaled
    # to at most 1 and knots to [-1, 1], where the tolerances of the simplex method mean something.

    def _program(
        self, selection: _Selection, model: Model, price: NDArray, relative_tolerance: float
    ) -> _Vertex | None:
        """Solve the program of a selection; None when it was cut short or failed."""
        hinges = self.hinges
        active = selection.active
        k, n_latent = len(active), self.problem.n_latent
        mass_unit = float(hinges.mass.max(initial=0.0)) or 1.0
        knots = hinges.knot - model.intercept[hinges.task]
        knot_unit = float(np.abs(knots).max(initial=0.0)) or 1.0
        singles = np.flatnonzero(selection.is_single)
        groups = self._groups(selection)
        masses = np.array([hinges.mass[group].sum() for group in groups])
        means = [np.average(knots[group], weights=hinges.mass[group]) for group in groups]
        cuts, owner = self._cut_columns(active)
        signs = self._sign_columns(active)
        matrix = [self._hinge_columns(active, singles), self._group_columns(active, groups)]
        cost = np.concatenate([knots[singles], means, np.zeros(cuts.shape[1] + signs.shape[1])])
        # A single latent coordinate has the cuts 1 and -1, and bounds do what a budget row does.
        cap = price[active][owner] / mass_unit if n_latent == 1 else np.full(len(owner), np.inf)
        capacity = np.append(hinges.mass[singles], masses) / mass_unit
        upper = np.concatenate([capacity, cap, np.full(signs.shape[1], np.inf)])
        budget = None
        if n_latent > 1:
            before, after = len(singles) + len(groups), signs.shape[1]
            budget = _budget_rows(k, before, owner, after), price[active] / mass_unit
        right = -self._sums(active, hinges.slope.T) / mass_unit
        found = self._run(
            cost / knot_unit, sparse.hstack([*matrix, cuts, signs], format="csc"), right, upper,
            budget, relative_tolerance,
        )  # fmt: skip
        if found is None:
            return None
        x, prices = found
        dual = np.empty(len(hinges))
        dual[singles] = np.clip(x[: len(singles)] * mass_unit, 0.0, hinges.mass[singles])
        for g, group in enumerate(groups):
            share = min(1.0, max(0.0, x[len(singles) + g] * mass_unit / masses[g]))
            dual[group] = share * hinges.mass[group]
        prices = prices * knot_unit
        return _Vertex(self._latent(active, prices), model.intercept + prices[n_latent * k :], dual)

    def _run(
        self,
        cost: NDArray,
        matrix: sparse.csc_matrix,
        right: NDArray,
        upper: NDArray,
        budget: tuple[sparse.csc_matrix, NDArray] | None,
        relative_tolerance: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Solution and prices of min cost'x, matrix x = right, 0 <= x <= upper, within budgets."""
        tolerance = float(np.clip(0.1 * relative_tolerance, 1e-10, 1e-7))
        options: dict[str, float] = {
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
        }
        rows, most = (None, None) if budget is None else budget
        for method in ("highs-ds", "highs-ipm"):
            if self.limits.is_over():
                return None
            if self.limits.deadline is not None:
                options["time_limit"] = max(1e-3, self.limits.deadline - time.perf_counter())
            result = linprog(
                cost, A_ub=rows, b_ub=most, A_eq=matrix, b_eq=right,
                bounds=np.column_stack([np.zeros(len(upper)), upper]), method=method,
                options=options,
            )  # fmt: skip
            if result.status == 0:
                return result.x, result.eqlin.marginals
        return None

    def _latent(self, active: NDArray, prices: NDArray) -> NDArray[np.float64]:
        """Coefficients (k, S) from the prices of the equations."""
        n_latent = self.problem.n_latent
        latent = prices[: n_latent * len(active)].reshape(n_latent, len(active)).T.copy()
        sign = self.working_set.sign[active][:, None]
        latent[(sign * latent < 0.0)] = 0.0
        latent[np.abs(latent) <= _NOTHING * np.abs(latent).max(initial=0.0)] = 0.0
        return latent

    def _sums(self, active: NDArray, values: NDArray) -> NDArray[np.float64]:
        """Left sides of all equations for d that sum to ``values`` (T, n)."""
        sums = self.working_set.correlate(np.ascontiguousarray(values), active) @ self._mixing
        return np.concatenate([sums.T.ravel(), values.sum(axis=1)])

    def _hinge_columns(self, active: NDArray, singles: NDArray) -> sparse.csc_matrix:
        """Coefficients of the d_h of some hinges in all equations."""
        rows, tasks = self.hinges.row[singles], self.hinges.task[singles]
        working_set, problem = self.working_set, self.problem
        block = np.empty((len(active), len(singles)))
        is_rule = active >= working_set.n_dense
        block[is_rule] = working_set.bits[active[is_rule] - working_set.n_dense][:, rows]
        if problem.dense is not None:
            block[~is_rule] = problem.dense[active[~is_rule]][:, rows]
        columns = sparse.csc_matrix(block)
        parts = [columns @ sparse.diags(self._mixing[tasks, s]) for s in range(problem.n_latent)]
        m = len(singles)
        ones = sparse.csc_matrix((np.ones(m), (tasks, np.arange(m))), (problem.n_tasks, m))
        matrix = sparse.vstack([*parts, ones], format="csc")
        matrix.eliminate_zeros()
        return matrix

    def _groups(self, selection: _Selection) -> list[NDArray[np.int64]]:
        """Hinges that share a dual variable: of a task, on one side of knots, of one kind."""
        others = np.flatnonzero(~selection.is_single)
        label = 2 * self.hinges.task[others] + selection.upper[others]
        label = 2 * label + self.hinges.ends_fall[others]
        return [others[label == value] for value in np.unique(label)]

    def _group_columns(self, active: NDArray, groups: list[NDArray]) -> sparse.csc_matrix:
        """Coefficients of the groups' d in all equations: means of their hinges'."""
        out = np.zeros((self.problem.n_latent * len(active) + self.problem.n_tasks, len(groups)))
        for g, group in enumerate(groups):
            mass = np.zeros(len(self.hinges))
            mass[group] = self.hinges.mass[group]
            out[:, g] = self._sums(active, self.hinges.spread(mass)) / mass.sum()
        return sparse.csc_matrix(out)

    def _cut_columns(self, active: NDArray) -> tuple[sparse.csc_matrix, NDArray[np.int64]]:
        """Coefficients of the cuts' multipliers, and each one's column as a place in ``active``."""
        k, n_latent = len(active), self.problem.n_latent
        axes = np.vstack([np.eye(n_latent), -np.eye(n_latent)])
        cuts = [self._cuts.setdefault(int(w), axes) for w in active]
        owner = np.repeat(np.arange(k), [len(c) for c in cuts])
        vectors = np.vstack([*cuts, np.empty((0, n_latent))])
        place = owner[:, None] + k * np.arange(n_latent)
        column = np.repeat(np.arange(len(owner))[:, None], n_latent, axis=1)
        shape = (n_latent * k + self.problem.n_tasks, len(owner))
        entries = (vectors.ravel(), (place.ravel(), column.ravel()))
        return sparse.csc_matrix(entries, shape), owner

    def _sign_columns(self, active: NDArray) -> sparse.csc_matrix:
        """Coefficients of the multipliers of sign restrictions."""
        k, n_latent = len(active), self.problem.n_latent
        signs = np.tile(self.working_set.sign[active], n_latent)
        place = np.flatnonzero(signs)
        shape = (n_latent * k + self.problem.n_tasks, len(place))
        entries = (-signs[place].astype(np.float64), (place, np.arange(len(place))))
        return sparse.csc_matrix(entries, shape)


def _budget_rows(k: int, before: int, owner: NDArray, after: int) -> sparse.csc_matrix:
    """Sums of the multipliers of each column's cuts, (k, number of variables)."""
    entries = (np.ones(len(owner)), (owner, before + np.arange(len(owner))))
    return sparse.csc_matrix(entries, (k, before + len(owner) + after))
