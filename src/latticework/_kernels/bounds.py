"""Compiled upper bounds over all conjunctions below a node."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def norm(gain, sign):
    """Length of a gain vector; with a sign, only the parts that point there count."""
    total = 0.0
    for t in range(gain.shape[0]):
        value = gain[t]
        if sign * value >= 0.0:
            total += value * value
    return np.sqrt(total)


@njit(cache=True, nogil=True)
def bound_below(kept, most_lost, sign, length, most_added, scale):
    """Upper bound of ‖g_w‖ / D_w over the conjunctions w that add 1 .. most_added conditions.

    k more conditions lose at most k times the largest lost mass, and never more than there is:

        max_k  ‖( max( min(P, g + k N'), min(N, -g + k P') ) )_t‖ / D(length + k)

    Parameters
    ----------
    kept : (T, 2), masses P and N of the node
    most_lost : (T, 2), largest lost masses P' and N' of a single further condition
    sign : -1, 0, 1, the side to which the weight is restricted
    length : number of conditions of the node
    scale : (max_length + 1,), D as a function of the number of conditions
    """
    best = 0.0
    k = 1
    if most_added > 1 and scale[length + most_added] == scale[length + 1]:
        k = most_added  # without a length penalty the last k dominates
    whole = 0.0
    for t in range(kept.shape[0]):
        whole += max(kept[t, 0], kept[t, 1]) ** 2
    whole = np.sqrt(whole)
    while k <= most_added and whole > best * scale[length + k]:
        total = 0.0
        spent = True
        for t in range(kept.shape[0]):
            positive, negative = kept[t, 0], kept[t, 1]
            gain = positive - negative
            up = gain + k * most_lost[t, 1]
            if up < positive:
                spent = False
            else:
                up = positive
            down = k * most_lost[t, 0] - gain
            if down < negative:
                spent = False
            else:
                down = negative
            if sign > 0:
                value = up
            elif sign < 0:
                value = down
            else:
                value = max(up, down)
            if value > 0.0:
                total += value * value
        value = np.sqrt(total) / scale[length + k]
        best = max(best, value)
        if spent:
            break
        k += 1
    return best
