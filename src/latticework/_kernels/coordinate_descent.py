"""Compiled loops of the restricted problem: columns, and block coordinate descent.

Columns are the indicators of the rules at hand, one row of ``bits`` each, zeros and ones.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Sums may be reordered, so that they use vector registers; the order is still the same at every
# call on one machine.
_REORDER = {"reassoc", "contract", "arcp"}


@njit(cache=True, nogil=True, fastmath=_REORDER)
def correlate(bits, which, residual, out):
    """out[a, t] = sum of residual[:, t] over the rows of column which[a].

    Parameters
    ----------
    bits : (k, n) uint8
    which : (q,) int64
    residual : (T, n) float64, one task after the other
    out : (q, T) float64
    """
    n = bits.shape[1]
    for a in range(which.shape[0]):
        column = bits[which[a]]
        for t in range(residual.shape[0]):
            r = residual[t]
            total = 0.0
            for i in range(n):
                total += r[i] * column[i]
            out[a, t] = total


@njit(cache=True, nogil=True)
def add_columns(bits, which, coefficients, predictions):
    """predictions[i, t] += sum over a of bits[which[a], i] * coefficients[a, t]."""
    n = bits.shape[1]
    for a in range(which.shape[0]):
        column = bits[which[a]]
        for t in range(coefficients.shape[1]):
            w = coefficients[a, t]
            if w != 0.0:
                for i in range(n):
                    predictions[t, i] += w * column[i]


@njit(cache=True, nogil=True)
def _shrink_scalar(z, h, threshold, sign):
    """Minimiser of h/2 v^2 - z v + threshold |v|, with v on the side of ``sign``."""
    if z > threshold and sign >= 0:
        return (z - threshold) / h
    if z < -threshold and sign <= 0:
        return (z + threshold) / h
    return 0.0


@njit(cache=True, nogil=True)
def _shrink_group(z, h, threshold, sign, out):
    """Minimiser of sum_t h_t/2 v_t^2 - z_t v_t + threshold ‖v‖, with every v_t on one side.

    With r = ‖v‖ it is v_t = r z_t / (h_t r + threshold), and r solves
    sum_t (z_t / (h_t r + threshold))^2 = 1, a decreasing convex function of r.
    """
    total = 0.0
    smallest = np.inf
    for t in range(z.shape[0]):
        out[t] = 0.0
        if sign * z[t] < 0.0:
            z[t] = 0.0
        total += z[t] * z[t]
        smallest = min(smallest, h[t])
    length = np.sqrt(total)
    if length <= threshold:
        return
    if threshold == 0.0:
        for t in range(z.shape[0]):
            out[t] = z[t] / h[t]
        return
    # Newton from the left of the root rises monotonically, for the function is convex.
    largest = 0.0
    for t in range(z.shape[0]):
        largest = max(largest, h[t])
    r = (length - threshold) / largest
    for _ in range(50):
        value = -1.0
        slope = 0.0
        for t in range(z.shape[0]):
            below = h[t] * r + threshold
            q = z[t] / below
            value += q * q
            slope -= 2.0 * q * q * h[t] / below
        step = -value / slope
        r += step
        if abs(step) <= 1e-14 * r:
            break
    for t in range(z.shape[0]):
        out[t] = r * z[t] / (h[t] * r + threshold)


@njit(cache=True, nogil=True)
def _block_step(a, gradient, mixing, curvature, coefficients, penalty, sign, step):
    """Change of one block that minimises a quadratic upper bound; returns how far it moves.

    ``step`` (S,) receives the change; the distance is in units of the gradient.
    """
    n_latent = step.shape[0]
    z = np.empty(n_latent)
    for s in range(n_latent):
        slope = 0.0
        for t in range(gradient.shape[1]):
            slope += gradient[a, t] * mixing[t, s]
        z[s] = curvature[a, s] * coefficients[a, s] - slope
    if n_latent == 1:
        step[0] = _shrink_scalar(z[0], curvature[a, 0], penalty[a], sign[a])
    else:
        _shrink_group(z, curvature[a], penalty[a], sign[a], step)
    moved = 0.0
    for s in range(n_latent):
        step[s] -= coefficients[a, s]
        moved = max(moved, abs(step[s]) * curvature[a, s])
    return moved


@njit(cache=True, nogil=True)
def _move_block(a, gram, pairs, mixing, step, coefficients, gradient):
    """Add a change to one block, and what it does to the gradient of all blocks."""
    n_latent = step.shape[0]
    for s in range(n_latent):
        coefficients[a, s] += step[s]
    for p in range(pairs.shape[0]):
        change = 0.0
        for s in range(n_latent):
            change += mixing[pairs[p, 2], s] * step[s]
        if change != 0.0:
            row = gram[pairs[p, 0], a]
            t = pairs[p, 1]
            for b in range(gradient.shape[0]):
                gradient[b, t] += row[b] * change


@njit(cache=True, nogil=True)
def descend(
    gram, pairs, gradient, mixing, curvature, coefficients, penalty, sign, tolerance, max_sweeps
):
    """Block coordinate descent on a penalised quadratic.

    Minimises over V (k, S), in place,

        <G, F - F0> + 1/2 sum_p (F - F0)_t(p)' H_p (F - F0)_t'(p) + sum_a penalty_a ‖V_a‖

    where F = V L' is (k, T), F0 is its value at the start and p goes over pairs (t, t') of tasks.

    Parameters
    ----------
    gram : (M, k, k) float64, matrices H whose rows are read: H_p[b, a] = gram[m(p), a, b]
    pairs : (P, 3) int64, for each pair the number m(p) of its matrix, t and t'
    gradient : (k, T) float64, G at the start; on return the gradient at the solution
    mixing : (T, S) float64, L
    curvature : (k, S) float64, diagonal matrices above each block's own Hessian, all > 0
    coefficients : (k, S) float64, V
    penalty : (k,) float64
    sign : (k,) int8, side to which the coefficients of a block are restricted, or 0
    tolerance : stop when no block moves the objective's gradient by more than this
    max_sweeps : int

    Returns
    -------
    n_sweeps : int
    """
    n_blocks, n_latent = coefficients.shape
    step = np.empty(n_latent)
    everything = True
    for sweep in range(max_sweeps):
        largest = 0.0
        for a in range(n_blocks):
            if not everything:
                idle = True
                for s in range(n_latent):
                    if coefficients[a, s] != 0.0:
                        idle = False
                if idle:
                    continue
            moved = _block_step(a, gradient, mixing, curvature, coefficients, penalty, sign, step)
            if moved > 0.0:
                largest = max(largest, moved)
                _move_block(a, gram, pairs, mixing, step, coefficients, gradient)
        if largest <= tolerance:
            if everything:
                return sweep + 1
            everything = True  # the blocks in use have settled: look at all of them once more
        else:
            everything = False
    return max_sweeps
