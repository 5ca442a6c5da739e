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
def descend(gram, gradient, mixing, is_plain, coefficients, penalty, sign, tolerance, max_sweeps):
    """Block coordinate descent on a penalised quadratic.

    Minimises over V (k, S), in place,

        sum_t [ <G_t, F_t - F0_t> + 1/2 (F_t - F0_t)' H_t (F_t - F0_t) ] + sum_a penalty_a ‖V_a‖

    where F = V L' and F0 is its value at the start.

    Parameters
    ----------
    gram : (T, k, k) float64, H; or (1, k, k) where all tasks share one
    gradient : (k, T) float64, G at the start; on return the gradient at the solution
    mixing : (T, S) float64, L
    is_plain : whether L is the identity
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
    n_tasks = gradient.shape[1]
    shared = gram.shape[0] == 1
    z = np.empty(n_latent)
    h = np.empty(n_latent)
    new = np.empty(n_latent)
    change = np.empty(n_tasks)
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
            top = 0.0
            for t in range(n_tasks):
                top = max(top, gram[0 if shared else t, a, a])
            if top <= 0.0:
                continue
            for s in range(n_latent):
                if is_plain:
                    h[s] = max(gram[0 if shared else s, a, a], 1e-12 * top)
                    slope = gradient[a, s]
                else:
                    h[s] = 0.0  # row sums of L' H L bound its eigenvalues
                    for q in range(n_latent):
                        entry = 0.0
                        for t in range(n_tasks):
                            own = gram[0 if shared else t, a, a]
                            entry += mixing[t, s] * own * mixing[t, q]
                        h[s] += abs(entry)
                    h[s] = max(h[s], 1e-12 * top)
                    slope = 0.0
                    for t in range(n_tasks):
                        slope += gradient[a, t] * mixing[t, s]
                z[s] = h[s] * coefficients[a, s] - slope
            if n_latent == 1:
                new[0] = _shrink_scalar(z[0], h[0], penalty[a], sign[a])
            else:
                _shrink_group(z, h, penalty[a], sign[a], new)
            moved = 0.0
            for s in range(n_latent):
                new[s] -= coefficients[a, s]
                moved = max(moved, abs(new[s]) * h[s])
            if moved == 0.0:
                continue
            largest = max(largest, moved)
            for t in range(n_tasks):
                if is_plain:
                    change[t] = new[t]
                else:
                    change[t] = 0.0
                    for s in range(n_latent):
                        change[t] += mixing[t, s] * new[s]
            for s in range(n_latent):
                coefficients[a, s] += new[s]
            for t in range(n_tasks):
                if change[t] != 0.0:
                    row = gram[0 if shared else t, a]
                    for b in range(n_blocks):
                        gradient[b, t] += row[b] * change[t]
        if largest <= tolerance:
            if everything:
                return sweep + 1
            everything = True  # the blocks in use have settled: look at all of them once more
        else:
            everything = False
    return max_sweeps
