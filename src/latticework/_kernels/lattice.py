"""Compiled access to the lattice of conjunctions: rows, conditions, histograms.

``kept`` mass of a condition at a node u with rows I_u and residuals r (one per row and task): P_c,
N_c, the sums of the positive and of the negative parts of r over the rows of u that satisfy c;
``lost`` mass: P'_c, N'_c, the same over the rows that fail c.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

LE, GT, EQ, NE, MISSING, TRUE = 0, 1, 2, 3, 4, 5


class Lattice(NamedTuple):
    """The data and the conditions, as the compiled search reads them."""

    codes: np.ndarray  # (n, m) integer codes; (0, 0) for boolean columns
    by_column: np.ndarray  # (m, n) the same, one column after the other
    indptr: np.ndarray  # (n + 1,) compressed rows of boolean columns; else empty
    indices: np.ndarray  # (nnz,)
    offset: np.ndarray  # (m + 1,) first histogram slot of each column
    column: np.ndarray  # (p,) column of each condition
    kind: np.ndarray  # (p,) LE .. TRUE
    key: np.ndarray  # (p,) the code that the condition compares with
    sign: np.ndarray  # (p,) -1, 0 or 1: side to which the condition restricts weights
    scale: np.ndarray  # (max_length + 1,) D of a conjunction by its length


@njit(cache=True, nogil=True)
def add_to_histogram(codes, rows, columns, offset, residual, factor, histogram):
    """Add ``factor`` times the residuals of some rows to the histograms of some columns.

    Parameters
    ----------
    codes : (n, m) integer codes
    rows : (k,) int32
    columns : (q,) int32
    offset : (m + 1,) int32, first slot of each column
    residual : (n, T) float64
    factor : 1.0 to add, -1.0 to take away
    histogram : (slots, T, 2) float64, sums of positive and of negative parts, changed in place
    """
    n_tasks = residual.shape[1]
    n_columns = columns.shape[0]
    # Unsigned indices spare the compiled code its test for negative ones.
    flat = histogram.reshape(-1)
    width = np.uint64(2 * n_tasks)
    place = np.empty(n_columns, np.uint64)
    start = np.empty(n_columns, np.uint64)
    for q in range(n_columns):
        place[q] = columns[q]
        start[q] = offset[columns[q]] * width
    for k in range(rows.shape[0]):
        i = np.uint64(rows[k])
        for t in range(n_tasks):
            r = residual[i, t]
            if r == 0.0:
                continue
            shift = np.uint64(2 * t)
            if r < 0.0:
                shift = np.uint64(2 * t + 1)
                r = -r
            r *= factor
            for q in range(n_columns):
                flat[start[q] + shift + width * np.uint64(codes[i, place[q]])] += r


@njit(cache=True, nogil=True)
def add_sparse_to_histogram(indptr, indices, rows, residual, factor, histogram):
    """The same for boolean columns in compressed rows: slot j holds the rows where j is true.

    The last slot sums all rows.
    """
    n_tasks = residual.shape[1]
    flat = histogram.reshape(-1)
    width = np.uint64(2 * n_tasks)
    everything = np.uint64(histogram.shape[0] - 1) * width
    for k in range(rows.shape[0]):
        i = rows[k]
        for t in range(n_tasks):
            r = residual[i, t]
            if r == 0.0:
                continue
            shift = np.uint64(2 * t)
            if r < 0.0:
                shift = np.uint64(2 * t + 1)
                r = -r
            r *= factor
            flat[everything + shift] += r
            for q in range(indptr[i], indptr[i + 1]):
                flat[np.uint64(indices[q]) * width + shift] += r


@njit(cache=True, nogil=True)
def _is_true(indptr, indices, row, column):
    """Whether ``column`` is among the sorted true columns of ``row``."""
    low, high = indptr[row], indptr[row + 1]
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low < indptr[row + 1] and indices[low] == column


@njit(cache=True, nogil=True)
def split_rows(lattice, condition, rows, inside, outside):
    """Write the rows that satisfy a condition, and those that fail it; return how many do.

    ``inside`` may be ``rows`` itself.
    """
    j = lattice.column[condition]
    kind, key = lattice.kind[condition], lattice.key[condition]
    n_inside = 0
    n_outside = 0
    if kind == TRUE:
        for k in range(rows.shape[0]):
            i = rows[k]
            if _is_true(lattice.indptr, lattice.indices, i, j):
                inside[n_inside] = i
                n_inside += 1
            else:
                outside[n_outside] = i
                n_outside += 1
        return n_inside
    codes = lattice.by_column[j]
    last = lattice.offset[j + 1] - lattice.offset[j] - 1
    for k in range(rows.shape[0]):
        i = rows[k]
        code = codes[np.uint64(i)]
        if kind == LE:
            holds = code <= key
        elif kind == GT:
            holds = code >= key and code != last
        elif kind == NE:
            holds = code != key and code != last
        else:
            holds = code == key
        inside[n_inside] = i
        outside[n_outside] = i
        n_inside += holds
        n_outside += not holds
    return n_inside


@njit(cache=True, nogil=True)
def copy_histogram(lattice, columns, source, target):
    """Copy the histograms of some columns."""
    if lattice.indptr.shape[0] > 0:
        target[:] = source
        return
    for q in range(columns.shape[0]):
        first, stop = lattice.offset[columns[q]], lattice.offset[columns[q] + 1]
        target[first:stop] = source[first:stop]


@njit(cache=True, nogil=True)
def clear_histogram(lattice, columns, target):
    """Empty the histograms of some columns."""
    if lattice.indptr.shape[0] > 0:
        target[:] = 0.0
        return
    for q in range(columns.shape[0]):
        target[lattice.offset[columns[q]] : lattice.offset[columns[q] + 1]] = 0.0


@njit(cache=True, nogil=True)
def live_columns(lattice, conditions, is_live, out):
    """Columns that some condition looks at, ascending, written to ``out``.

    ``is_live`` (m,) is scratch, all False before and after.
    """
    count = 0
    for q in range(conditions.shape[0]):
        j = lattice.column[conditions[q]]
        if not is_live[j]:
            is_live[j] = True
            out[count] = j
            count += 1
    for q in range(count):
        is_live[out[q]] = False
    out[:count].sort()
    return out[:count]


@njit(cache=True, nogil=True)
def masses(kind, key, first, last, histogram, before, after, task, side):
    """Kept and lost mass of one condition, for one task and one sign.

    ``before[s]`` sums the column's slots ahead of s, ``after[s]`` those from s to the last code
    that is not the missing one.  Both numbers are sums of bins, never differences of large sums.
    """
    slot = first + key
    if kind == LE:
        return (
            before[slot + 1, task, side],
            after[slot + 1, task, side] + histogram[last, task, side],
        )
    if kind == GT:
        return after[slot, task, side], before[slot, task, side] + histogram[last, task, side]
    if kind == EQ:
        return (
            histogram[slot, task, side],
            before[slot, task, side] + after[slot + 1, task, side] + histogram[last, task, side],
        )
    if kind == NE:
        return (
            before[slot, task, side] + after[slot + 1, task, side],
            histogram[slot, task, side] + histogram[last, task, side],
        )
    if kind == MISSING:
        return histogram[last, task, side], before[last, task, side]
    kept = histogram[slot, task, side]
    return kept, max(0.0, histogram[histogram.shape[0] - 1, task, side] - kept)


@njit(cache=True, nogil=True)
def cumulate(columns, offset, histogram, before, after):
    """Running sums of the histograms of some columns, from both ends."""
    for q in range(columns.shape[0]):
        first, last = offset[columns[q]], offset[columns[q] + 1] - 1
        for t in range(histogram.shape[1]):
            for side in range(2):
                running = 0.0
                for s in range(first, last):
                    before[s, t, side] = running
                    running += histogram[s, t, side]
                before[last, t, side] = running
                running = 0.0
                after[last, t, side] = 0.0
                for s in range(last - 1, first - 1, -1):
                    running += histogram[s, t, side]
                    after[s, t, side] = running


@njit(cache=True, nogil=True)
def indicator(lattice, conjunction, n_rows):
    """Rows of a conjunction as an array of zeros and ones (n,)."""
    rows = np.empty(n_rows, np.int32)
    for i in range(n_rows):
        rows[i] = i
    count = n_rows
    outside = np.empty(n_rows, np.int32)
    for k in range(conjunction.shape[0]):
        count = split_rows(lattice, conjunction[k], rows[:count], rows, outside)
    out = np.zeros(n_rows, np.uint8)
    for k in range(count):
        out[rows[k]] = 1
    return out


@njit(cache=True, nogil=True)
def _compatible(kind, other_kind):
    """Whether a condition may join another one on the same column.

    At most one ``<=`` and one ``>``; nothing beside ``==``; no ``==`` beside ``!=``; the rest
    is redundant or contradictory, and a shorter conjunction selects the same rows.
    """
    if kind == LE:
        return other_kind == GT
    if kind == GT:
        return other_kind == LE
    return kind == NE and other_kind == NE


@njit(cache=True, nogil=True)
def admitted(lattice, condition, candidates):
    """Those candidates that may stand beside ``condition``."""
    out = np.empty(candidates.shape[0], np.int32)
    count = 0
    for q in range(candidates.shape[0]):
        other = candidates[q]
        if lattice.column[other] != lattice.column[condition] or _compatible(
            lattice.kind[condition], lattice.kind[other]
        ):
            out[count] = other
            count += 1
    return out[:count]


@njit(cache=True, nogil=True)
def extensions(lattice, conjunction):
    """All conditions that may join a conjunction."""
    out = np.arange(lattice.column.shape[0]).astype(np.int32)
    for k in range(conjunction.shape[0]):
        out = admitted(lattice, conjunction[k], out)
    return out
