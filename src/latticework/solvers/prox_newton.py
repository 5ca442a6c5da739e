"""The restricted problem with a smooth loss: proximal Newton on the rules at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latticework.search.limits import NO_LIMITS, Limits
from latticework.solvers import quadratic
from latticework.solvers.working_set import GramCache

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latticework.solvers.problem import LatticeProblem
    from latticework.solvers.working_set import WorkingSet

_MAX_STEPS = 100
_MAX_HALVINGS = 30
_SUFFICIENT = 1e-4
# A step leaves this share of the violation of the optimality conditions.  The gap does not say how
# far to go: where alpha is small it may be large because of a single rule.
_FORCING = 0.1
_ROUNDING = 1e-15
# Objectives that differ by less than this share are equal up to rounding.  The gap is linear in
# what the objective is quadratic in: steps are still worth taking whose gain cannot be measured,
# until so many of them have not made the gap smaller.
_NOISE = 1e-14
_MAX_BLIND = 3
_FLOOR = 1e-6
_SLOW = 0.5
# The Hessian of a loss that couples its tasks is formed up to so many entries; beyond, steps use
# a diagonal matrix above it.
_MOST_ENTRIES = 40_000_000


@dataclass
class Model:
    """Coefficients over a working set.

    Parameters
    ----------
    latent : ndarray of shape (size, S)
        Latent coefficients v, zero for the columns not in use.
    intercept : ndarray of shape (T,)
    predictions : ndarray of shape (T, n)
    """

    latent: NDArray[np.float64]
    intercept: NDArray[np.float64]
    predictions: NDArray[np.float64]

    def pad(self, size: int) -> None:
        """Give columns that have joined the working set a coefficient of zero."""
        missing = size - len(self.latent)
        if missing > 0:
            self.latent = np.vstack([self.latent, np.zeros((missing, self.latent.shape[1]))])

    @property
    def support(self) -> NDArray[np.int64]:
        """Columns in use."""
        return np.flatnonzero(np.any(self.latent != 0.0, axis=1))


@dataclass(frozen=True)
class Restricted:
    """A solution of the restricted problem.

    Parameters
    ----------
    primal : float
    dual_point : ndarray of shape (n, T)
        Dual variables, balanced so that every task's weighted sum is zero.
    ratio : float
        Largest ‖g_w‖ / penalty_w over the working set; the dual point divided by
        max(1, ratio / alpha) is feasible for the restricted problem.
    """

    primal: float
    dual_point: NDArray[np.float64]
    ratio: float


def penalty_value(model: Model, penalty: NDArray[np.float64]) -> float:
    """sum_w D_w ‖v_w‖ for penalties D (size,)."""
    return float(penalty @ np.linalg.norm(model.latent, axis=1))


def refresh_predictions(model: Model, working_set: WorkingSet) -> None:
    """Recompute the predictions from the coefficients, so that rounding does not build up."""
    problem = working_set.problem
    which = model.support
    latent = model.latent[which]
    coef = latent if problem.mixing is None else latent @ problem.mixing.T
    model.predictions = np.repeat(model.intercept[:, None], problem.n_rows, axis=1)
    working_set.predict(coef, which, model.predictions)


def largest_ratio(
    gains: NDArray[np.float64], penalty: NDArray[np.float64], sign: NDArray[np.int8]
) -> NDArray[np.float64]:
    """‖g_w‖ / D_w of some columns; with a sign only the gains on that side count."""
    sided = np.where(sign[:, None] * gains < 0.0, 0.0, gains)
    return np.linalg.norm(sided, axis=1) / penalty


def _violation(
    gradient: NDArray[np.float64],
    latent: NDArray[np.float64],
    price: NDArray[np.float64],
    sign: NDArray[np.int8],
) -> float:
    """How far columns are from optimal: the largest distance of -gradient to price * subgradient.

    Parameters
    ----------
    gradient, latent : ndarray of shape (k, S)
    price : ndarray of shape (k,)
    sign : ndarray of shape (k,)
    """
    pull = -gradient
    pull[(latent == 0.0) & (sign[:, None] * pull < 0.0)] = 0.0
    length = np.linalg.norm(latent, axis=1)
    unit = np.divide(latent, length[:, None], out=np.zeros_like(latent), where=length[:, None] > 0)
    used = np.linalg.norm(pull - price[:, None] * unit, axis=1)
    unused = np.linalg.norm(pull, axis=1) - price
    return float(np.where(length > 0.0, used, unused).max(initial=0.0))


class ProximalNewton:
    """Solves the restricted problem of a smooth loss, warm started.

    Every step minimises a quadratic model of the loss plus the penalty by block coordinate
    descent on a Gram matrix (k x k, so that a sweep costs k^2 and not k n), with the intercepts
    eliminated, and goes along that direction until the objective has decreased enough.
    """

    def __init__(self, working_set: WorkingSet, limits: Limits = NO_LIMITS) -> None:
        self.working_set = working_set
        self.limits = limits
        self.problem: LatticeProblem = working_set.problem
        self.grams = GramCache(working_set)
        self.joint_grams = GramCache(working_set)
        mixing = self.problem.mixing
        self._is_plain = mixing is None
        self._is_joint = False  # whether steps couple the tasks
        self._mixing = np.eye(self.problem.n_tasks) if mixing is None else mixing

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
        problem = self.problem
        last_gap = least_gap = np.inf
        blind = 0
        self._is_joint = False
        for _ in range(_MAX_STEPS):
            f = model.predictions.T
            u = problem.loss.gradient(problem.targets, f)
            primal = problem.total_loss(f) + alpha * penalty_value(model, penalty)
            dual_point = problem.loss.balance(u, problem.targets, problem.weights)
            gains = self._gains(dual_point, allowed)
            ratios = largest_ratio(gains, penalty, self.working_set.sign)
            ratio = float(ratios.max(initial=0.0))
            shrink = min(1.0, alpha / ratio) if ratio > 0.0 else 1.0
            gap = primal - problem.dual_value(shrink * dual_point)
            if gap <= relative_tolerance * abs(primal) or self.limits.is_over():
                break
            active = np.flatnonzero((ratios > alpha) | np.any(model.latent != 0.0, axis=1))
            # Progress that slow may be the fault of a Gram matrix that no longer fits.
            fresh, last_gap = gap > _SLOW * last_gap, gap
            blind = 0 if gap < least_gap else blind + 1
            least_gap = min(gap, least_gap)
            gain = self._step(model, u, alpha, penalty, active, primal, gap, fresh)
            if gain <= 0.0 or (gain <= _NOISE * abs(primal) and blind >= _MAX_BLIND):
                break
        return Restricted(primal, dual_point, ratio)

    def dual_of(self, model: Model) -> NDArray[np.float64]:
        """Balanced dual variables (n, T) that fit the predictions."""
        problem = self.problem
        u = problem.loss.gradient(problem.targets, model.predictions.T)
        return problem.loss.balance(u, problem.targets, problem.weights)

    def _gains(self, dual_point: NDArray, allowed: NDArray | None) -> NDArray[np.float64]:
        """g_w = sum of -c u over the rows of w, in latent coordinates (size, S)."""
        residual = np.ascontiguousarray((-self.problem.weights * dual_point).T)
        gains = self.working_set.correlate(residual) @ self._mixing
        if allowed is not None:
            outside = np.ones(len(gains), bool)
            outside[allowed] = False
            gains[outside] = 0.0
        return gains

    def _step(
        self,
        model: Model,
        u: NDArray,
        alpha: float,
        penalty: NDArray,
        active: NDArray,
        primal: float,
        gap: float,
        fresh: bool,
    ) -> float:
        """One proximal Newton step; returns the decrease of the objective that it promised.

        Zero when the objective could not be decreased.
        """
        problem = self.problem
        slopes = np.ascontiguousarray((problem.weights * u).T)
        slope = np.vstack([slopes.sum(axis=1), self.working_set.correlate(slopes, active)])
        local = self._quadratic(model, active, slope, fresh)
        old = model.latent[active]
        price, sign = alpha * penalty[active], self.working_set.sign[active]
        violation = _violation(local.gradient @ self._mixing, old, price, sign)
        tolerance = min(0.05 * gap / max(1.0, float(np.abs(old).sum())), _FORCING * violation)
        tolerance = max(tolerance, _ROUNDING * float(np.abs(slopes).sum()))
        new = local.descend(old, self._mixing, price, sign, tolerance)
        latent_change = new - old
        change = latent_change if self._is_plain else latent_change @ self._mixing.T
        intercept_change = local.intercept_change(change)
        move = np.repeat(intercept_change[:, None], problem.n_rows, axis=1)
        self.working_set.predict(change, active, move)
        return self._search_line(
            model, active, latent_change, intercept_change, move, slopes, alpha, penalty, primal
        )

    def _quadratic(
        self, model: Model, active: NDArray, slope: NDArray, fresh: bool
    ) -> quadratic.Quadratic:
        """The loss around the model, to second order.

        Where the loss couples the tasks, a diagonal matrix above its Hessian takes the first
        steps cheaply, and the Hessian itself the last ones.
        """
        problem = self.problem
        entries = problem.n_tasks**2 * max(problem.n_rows, len(active) ** 2)
        self._is_joint = problem.loss.joint and (fresh or self._is_joint)
        if self._is_joint and entries <= _MOST_ENTRIES:
            hessian = self._hessian(model)
            return quadratic.joint(self.joint_grams.get(active, hessian, fresh=True), slope)
        curvature = self._curvature(model)
        return quadratic.separable(self.grams.get(active, curvature, fresh=fresh), slope)

    def _hessian(self, model: Model) -> NDArray[np.float64]:
        """c times the Hessian of a joint loss, (T (T + 1) / 2, n), a little above it."""
        problem = self.problem
        hessian = problem.loss.hessian(problem.targets, model.predictions.T)
        hessian *= problem.weights[:, 0]
        first, second = np.triu_indices(problem.n_tasks)
        own = hessian[first == second]
        hessian[first == second] = own + _FLOOR * own.mean(axis=1, keepdims=True)
        return hessian

    def _curvature(self, model: Model) -> NDArray[np.float64]:
        """c times the curvature of the loss, (T, n); (1, n) where the tasks share it."""
        problem = self.problem
        curvature = problem.loss.curvature(problem.targets, model.predictions.T)
        weighted = np.ascontiguousarray((problem.weights * curvature).T)
        if all(np.array_equal(weighted[0], row) for row in weighted[:0:-1]):
            weighted = weighted[:1]
        # Where a loss is flat (an outlier, a row beyond the margin) a little curvature keeps the
        # model strictly convex; the line search takes care of the rest.
        return np.maximum(weighted, _FLOOR * weighted.mean(axis=1, keepdims=True))

    def _search_line(
        self,
        model: Model,
        active: NDArray,
        latent_change: NDArray,
        intercept_change: NDArray,
        move: NDArray,
        slopes: NDArray,
        alpha: float,
        penalty: NDArray,
        primal: float,
    ) -> float:
        """Halve the step until the objective has decreased enough; update the model.

        Returns the decrease that the step promised, or zero when none was found.
        """
        problem = self.problem
        old = model.latent[active]
        price = alpha * penalty[active]
        before = float(price @ np.linalg.norm(old, axis=1))
        full = float(price @ np.linalg.norm(old + latent_change, axis=1))
        promised = float(np.sum(slopes * move)) + full - before
        rest = alpha * penalty_value(model, penalty) - before
        noise = _NOISE * abs(primal)
        step = 1.0
        for _ in range(_MAX_HALVINGS):
            latent = old + step * latent_change
            predictions = model.predictions + step * move
            value = problem.total_loss(predictions.T) + rest
            value += float(price @ np.linalg.norm(latent, axis=1))
            if value <= primal + _SUFFICIENT * step * promised + noise:
                model.latent[active] = latent
                model.intercept = model.intercept + step * intercept_change
                model.predictions = predictions
                return -step * promised
            step *= 0.5
        return 0.0
