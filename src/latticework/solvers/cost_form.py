"""The papers' form of the problem: 1/2 Omega^2 + C * sum of losses.

Its solution for C is that of ``mean loss + alpha * Omega`` for the alpha with
alpha * C * W = Omega(alpha), W the total weight of the rows: both say that the gradient of the
penalty balances that of the loss.  Omega falls as alpha grows, so there is one such alpha.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from latticework.solvers import result as outcome

if TYPE_CHECKING:
    from latticework.solvers.lattice_path import LatticePath
    from latticework.solvers.result import Certificate, Solution

_MAX_TRIALS = 60
_FIRST_STEP = 0.5
_REOPEN = 0.9


def solve_for_cost(path: LatticePath, cost: float) -> Solution:
    """The certified solution of ``1/2 Omega^2 + cost * mean loss``.

    Parameters
    ----------
    path : LatticePath
        Of the problem with weights that sum to one over the rows.
    cost : float
        C times the total weight of the rows.

    Returns
    -------
    Solution
        Its alpha is the equivalent one; its certificate is on the scale of this form.
    """
    high, low = path.enough_alpha(), 0.0
    alpha = high
    tol = path.tol
    loose = max(0.05, tol)
    narrow = 0.1 * max(tol, 1e-12) ** 0.5
    for _ in range(_MAX_TRIALS):
        solution = path.solve(alpha, tol=loose)
        certificate = cost_certificate(path, solution, cost)
        if solution.status != outcome.OPTIMAL or certificate.relative_gap <= tol:
            break
        excess = solution.alpha * cost - solution.omega
        if excess > 0.0:
            high = min(high, alpha)
        else:
            low = max(low, alpha)
        if low > 0.0 and high - low < narrow * low:
            # A loose solution can have set the end on the other side wrongly.
            low, high = (low * _REOPEN, high) if excess > 0.0 else (low, high / _REOPEN)
        alpha = _next_alpha(solution, cost, low, high)
        if low > 0.0:
            loose = max(0.3 * tol, 0.3 * loose) if loose > tol else max(0.1 * loose, 1e-12)
    return replace(solution, certificate=certificate)


def _next_alpha(solution: Solution, cost: float, low: float, high: float) -> float:
    """The fixed point's next guess, kept inside the bracket."""
    guess = float(np.sqrt(solution.alpha * max(solution.omega, 1e-300) / cost))
    if low == 0.0:
        return max(min(guess, high * 0.95), high * _FIRST_STEP) if high > 0 else 0.0
    if low < guess < high:
        return guess
    return float(np.sqrt(low * high))


def cost_certificate(path: LatticePath, solution: Solution, cost: float) -> Certificate:
    """The certificate of a solution on the scale of ``1/2 Omega^2 + cost * mean loss``.

    The dual is - cost * sum c loss*(u) - 1/2 (cost * Omega*(g))^2, and the solution's dual point
    has Omega*(g) <= alpha.
    """
    certificate = solution.certificate
    mean_loss = certificate.primal - solution.alpha * solution.omega
    dual_mean = path.problem.dual_value(solution.dual_point)
    no_dual = path.problem.dual_value(np.zeros_like(solution.dual_point))
    reach = solution.alpha if np.any(solution.dual_point) else 0.0
    return replace(
        certificate,
        primal=0.5 * solution.omega**2 + cost * mean_loss,
        dual=max(cost * dual_mean - 0.5 * (cost * reach) ** 2, cost * no_dual),
        method=certificate.method + "; form 1/2 Omega^2 + C * sum of losses",
    )
