"""Compiled branch and bound over conjunctions: one unit of work.

A unit is a subtree of the search, given by a path of conditions and by the conditions that may
still be added.  It is explored depth first until it is exhausted or a budget of elementary
operations is spent; what is left is handed back as smaller units.  A unit depends on nothing but
its arguments, so the result of a search does not depend on how units are spread over threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from latticework._kernels.bounds import bound_below, norm
from latticework._kernels.candidates import keep_candidate, new_best, sort_by
from latticework._kernels.lattice import (
    add_sparse_to_histogram,
    add_to_histogram,
    admitted,
    clear_histogram,
    copy_histogram,
    cumulate,
    live_columns,
    masses,
    split_rows,
)

# Less than this share of a node's mass is nothing: histograms are partly differences, exact to
# about 1e-15.  The bounds of a search are loosened by more than that.
_NOTHING = 1e-12


@njit(cache=True, nogil=True)
def _grown(buffer, used, wanted):
    """A copy of ``buffer`` with room for ``wanted`` entries, its first ``used`` ones kept."""
    larger = np.empty(max(wanted, 2 * buffer.shape[0]), buffer.dtype)
    larger[:used] = buffer[:used]
    return larger


class _Node(NamedTuple):
    """Statistics of the node at hand, for the conditions that may join it."""

    before: np.ndarray  # (slots, T, 2) running sums
    after: np.ndarray
    kept: np.ndarray  # (q, T, 2)
    lost: np.ndarray  # (q, T, 2)
    gain: np.ndarray  # (T,)
    valid: np.ndarray  # (q,) conditions that change something
    rank: np.ndarray  # (q,) positions in ``valid`` of the conditions that lead on
    weight: np.ndarray  # (q,) kept mass
    most: np.ndarray  # (T, 2) largest lost masses
    second: np.ndarray  # (T, 2)
    other: np.ndarray  # (T, 2)
    is_live: np.ndarray  # (m,)
    live: np.ndarray  # (m,)


@njit(cache=True, nogil=True)
def _new_node(n_slots, n_columns, n_tasks, n_allowed):
    """Room for the statistics of one node."""
    return _Node(
        np.zeros((n_slots + 1, n_tasks, 2)),
        np.zeros((n_slots + 1, n_tasks, 2)),
        np.empty((n_allowed + 1, n_tasks, 2)),
        np.empty((n_allowed + 1, n_tasks, 2)),
        np.empty(n_tasks),
        np.empty(n_allowed + 1, np.int32),
        np.empty(n_allowed + 1, np.int32),
        np.empty(n_allowed + 1),
        np.zeros((n_tasks, 2)),
        np.zeros((n_tasks, 2)),
        np.zeros((n_tasks, 2)),
        np.zeros(n_columns, np.bool_),
        np.empty(n_columns, np.int32),
    )


class _Levels(NamedTuple):
    """The current path, one entry per depth."""

    path: np.ndarray  # the condition that leads from depth d to d + 1
    sign: np.ndarray
    row_start: np.ndarray  # rows of the node, a slice of a stack
    row_stop: np.ndarray
    child_next: np.ndarray  # children not yet explored, a slice of a stack
    child_stop: np.ndarray


@njit(cache=True, nogil=True)
def _new_levels(count):
    """Levels for paths shorter than ``count``."""
    return _Levels(
        np.zeros(count, np.int32),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
    )


@njit(cache=True, nogil=True)
def _gather(lattice, residual, rows, factor, columns, histogram):
    """Add rows to the histograms of some columns; returns the elementary operations it took."""
    if lattice.indptr.shape[0] > 0:
        add_sparse_to_histogram(lattice.indptr, lattice.indices, rows, residual, factor, histogram)
        return rows.shape[0] * (1 + lattice.indices.shape[0] // residual.shape[0])
    else:
        add_to_histogram(lattice.codes, rows, columns, lattice.offset, residual, factor, histogram)
    return rows.shape[0] * columns.shape[0]


@njit(cache=True, nogil=True)
def _deeper(histograms, depth):
    """Room for the histograms of a path of this depth."""
    if depth < histograms.shape[0]:
        return histograms
    larger = np.zeros(
        (2 * depth + 2, histograms.shape[1], histograms.shape[2], 2), histograms.dtype
    )
    larger[: histograms.shape[0]] = histograms
    return larger


@njit(cache=True, nogil=True)
def _evaluate(
    lattice, histogram, allowed, path, depth, node_sign, threshold, record, node, best, found
):
    """Kept and lost masses of all allowed conditions; candidates among the extensions.

    Returns the number of conditions that change something here, the number of candidates and
    the threshold, which rises once the list of candidates is full.
    """
    capacity = best.ratios.shape[0]
    max_length = lattice.scale.shape[0] - 1
    n_valid = 0
    for q in range(allowed.shape[0]):
        c = allowed[q]
        if node_sign * lattice.sign[c] < 0:
            continue
        j = lattice.column[c]
        first, last = lattice.offset[j], lattice.offset[j + 1] - 1
        kept_mass = 0.0
        lost_mass = 0.0
        for t in range(node.gain.shape[0]):
            for side in range(2):
                kept, lost = masses(
                    lattice.kind[c], lattice.key[c], first, last,
                    histogram, node.before, node.after, t, side,
                )  # fmt: skip
                kept = max(0.0, kept)
                lost = max(0.0, lost)
                node.kept[n_valid, t, side] = kept
                node.lost[n_valid, t, side] = lost
                kept_mass += kept
                lost_mass += lost
            node.gain[t] = node.kept[n_valid, t, 0] - node.kept[n_valid, t, 1]
        nothing = _NOTHING * (kept_mass + lost_mass)
        if kept_mass <= nothing or lost_mass <= nothing:
            continue  # contradictory or implied here, and so everywhere below
        ratio = norm(node.gain, node_sign + lattice.sign[c]) / lattice.scale[depth + 1]
        if ratio > record and (found < capacity or ratio > best.ratios[best.heap[0]]):
            found = keep_candidate(
                ratio, path, depth, c, found, best.ratios, best.lengths, best.paths, best.heap
            )
            if found == capacity:
                threshold = max(threshold, best.ratios[best.heap[0]])
        # Even if further conditions removed all rows of one sign and none of the other?
        for t in range(node.gain.shape[0]):
            node.gain[t] = max(node.kept[n_valid, t, 0], node.kept[n_valid, t, 1])
        if depth + 1 < max_length and norm(node.gain, 0) <= threshold * lattice.scale[depth + 2]:
            continue
        node.valid[n_valid] = c
        node.rank[n_valid] = n_valid
        node.weight[n_valid] = kept_mass
        n_valid += 1
    return n_valid, found, threshold


@njit(cache=True, nogil=True)
def _two_largest_losses(node, count):
    """The largest and second largest lost mass among the first conditions of ``rank``."""
    node.most[:] = 0.0
    node.second[:] = 0.0
    for q in range(count):
        for t in range(node.most.shape[0]):
            for side in range(2):
                value = node.lost[node.rank[q], t, side]
                if value > node.most[t, side]:
                    node.second[t, side] = node.most[t, side]
                    node.most[t, side] = value
                elif value > node.second[t, side]:
                    node.second[t, side] = value


@njit(cache=True, nogil=True)
def _drop_hopeless(lattice, depth, node_sign, threshold, node, count):
    """Drop conditions with which no conjunction below exceeds the threshold, whatever joins.

    Fewer conditions lose less, so the test is made twice.  Returns how many are left.
    """
    max_length = lattice.scale.shape[0] - 1
    for _ in range(2):
        _two_largest_losses(node, count)
        most_added = min(max_length - depth - 1, count - 1)
        left = 0
        for q in range(count):
            v = node.rank[q]
            for t in range(node.most.shape[0]):
                for side in range(2):
                    largest = node.most[t, side]
                    is_own = node.lost[v, t, side] == largest
                    node.other[t, side] = node.second[t, side] if is_own else largest
            sign = node_sign + lattice.sign[node.valid[v]]
            bound = bound_below(
                node.kept[v], node.other, sign, depth + 1, most_added, lattice.scale
            )
            if bound > threshold:
                node.rank[left] = v
                left += 1
        if left == count:
            break
        count = left
    return count


@njit(cache=True, nogil=True)
def _order_children(lattice, depth, node_sign, node, count, children, bounds):
    """Write the children by ascending kept mass, with bounds for their subtrees.

    A child may use only the conditions after it: small children cannot gain much because they
    are small, large ones because what is left to add loses little.
    """
    max_length = lattice.scale.shape[0] - 1
    for q in range(count):
        node.weight[q] = node.weight[node.rank[q]]  # rank ascends, so this one is still unread
    sort_by(node.weight, node.rank, count)
    node.most[:] = 0.0
    for q in range(count - 1, -1, -1):
        v = node.rank[q]
        sign = node_sign + lattice.sign[node.valid[v]]
        most_added = min(max_length - depth - 1, count - 1 - q)
        children[q] = node.valid[v]
        bounds[q] = bound_below(node.kept[v], node.most, sign, depth + 1, most_added, lattice.scale)
        for t in range(node.most.shape[0]):
            for side in range(2):
                node.most[t, side] = max(node.most[t, side], node.lost[v, t, side])


@njit(cache=True, nogil=True)
def _joint_sign(a, b):
    """Sign of a conjunction whose parts have signs that do not contradict each other."""
    return a if a != 0 else b


@njit(cache=True, nogil=True)
def _hand_back(lattice, threshold, depth0, depth, levels, children, bounds):
    """The children that were not explored, as units of their own.

    Unit u has the conditions ``paths[u, :lengths[u]]`` and may add
    ``children[starts[u]:stops[u]]``.
    """
    count = 0
    for d in range(depth0, depth + 1):
        for q in range(levels.child_next[d], levels.child_stop[d]):
            count += bounds[q] > threshold
    bound = np.empty(count, np.float64)
    paths = np.empty((count, lattice.scale.shape[0] - 1), np.int32)
    lengths = np.empty(count, np.int32)
    sign = np.empty(count, np.int32)
    starts = np.empty(count, np.int64)
    stops = np.empty(count, np.int64)
    u = 0
    for d in range(depth0, depth + 1):
        for q in range(levels.child_next[d], levels.child_stop[d]):
            if bounds[q] > threshold:
                bound[u] = bounds[q]
                paths[u, :d] = levels.path[:d]
                paths[u, d] = children[q]
                lengths[u] = d + 1
                sign[u] = _joint_sign(levels.sign[d], lattice.sign[children[q]])
                starts[u] = q + 1
                stops[u] = levels.child_stop[d]
                u += 1
    return bound, paths, lengths, sign, starts, stops, children


@njit(cache=True, nogil=True)
def _visit(
    lattice, levels, depth, allowed, columns, histogram, threshold, record, node, best, found,
    children, bounds,
):  # fmt: skip
    """Candidates among the extensions of a node, and its children, put on their stack.

    Returns the stack and its bounds, the number of candidates and the threshold.  The children
    of a node that is as deep as conjunctions may be are not wanted.
    """
    if lattice.indptr.shape[0] == 0:
        cumulate(columns, lattice.offset, histogram, node.before, node.after)
    sign = levels.sign[depth]
    count, found, threshold = _evaluate(
        lattice, histogram, allowed, levels.path, depth, sign, threshold, record, node, best, found
    )
    if depth + 1 >= lattice.scale.shape[0] - 1:
        count = 0
    count = _drop_hopeless(lattice, depth, sign, threshold, node, count)
    base = levels.child_stop[depth]
    if base + count > children.shape[0]:
        children = _grown(children, base, base + count)
        bounds = _grown(bounds, base, base + count)
    _order_children(lattice, depth, sign, node, count, children[base:], bounds[base:])
    levels.child_next[depth], levels.child_stop[depth] = base, base + count
    return children, bounds, found, threshold


@njit(cache=True, nogil=True)
def _descend(lattice, residual, levels, depth, condition, columns, rows, outside, histograms):
    """Make the rows of a child, next on their stack, and its histograms.

    Returns the stack of rows, the histograms and the elementary operations it took.
    """
    start, stop = levels.row_start[depth], levels.row_stop[depth]
    if 2 * stop - start > rows.shape[0]:
        rows = _grown(rows, stop, 2 * stop - start)
    count = split_rows(lattice, condition, rows[start:stop], rows[stop:], outside)
    work = stop - start
    histograms = _deeper(histograms, depth + 1)
    histogram = histograms[depth + 1]
    # The histograms of the rows that are kept, or of the parent less those that are lost.
    n_outside = stop - start - count
    if n_outside < count:
        copy_histogram(lattice, columns, histograms[depth], histogram)
        work += _gather(lattice, residual, outside[:n_outside], -1.0, columns, histogram)
    else:
        clear_histogram(lattice, columns, histogram)
        work += _gather(lattice, residual, rows[stop : stop + count], 1.0, columns, histogram)
    levels.path[depth] = condition
    levels.sign[depth + 1] = _joint_sign(levels.sign[depth], lattice.sign[condition])
    levels.row_start[depth + 1], levels.row_stop[depth + 1] = stop, stop + count
    return rows, histograms, work


@njit(cache=True, nogil=True)
def _root_rows(lattice, root, rows, outside):
    """Write the rows of a unit's root; return how many there are."""
    count = outside.shape[0] - 1
    for i in range(count):
        rows[i] = i
    for k in range(root.shape[0]):
        count = split_rows(lattice, root[k], rows[:count], rows, outside)
    return count


@njit(cache=True, nogil=True)
def search_unit(lattice, residual, root, root_sign, allowed, threshold, record, n_best, budget):
    """Explore one unit.

    Parameters
    ----------
    lattice : Lattice
    residual : (n, T) negative gradient of the loss
    root, root_sign : (l,) conditions of the unit's root, and its sign
    allowed : (q,) conditions that may be added
    threshold : a node is explored only if some descendant may exceed it
    record : conjunctions whose ratio exceeds it are candidates
    n_best : number of candidates kept; once full, the worst of them is the threshold
    budget : elementary operations after which the rest is handed back

    Returns
    -------
    ratios, lengths, paths : the best candidates, in no particular order
    n_nodes : number of nodes explored
    left : the units not explored, see ``_hand_back``
    """
    n_rows, n_tasks = residual.shape
    max_length = lattice.scale.shape[0] - 1
    n_slots = lattice.offset[lattice.offset.shape[0] - 1]
    best = new_best(n_best, max_length)
    node = _new_node(n_slots, lattice.offset.shape[0], n_tasks, allowed.shape[0])
    levels = _new_levels(max_length + 2)
    children = np.empty(4 * allowed.shape[0] + 16, np.int32)
    bounds = np.empty(4 * allowed.shape[0] + 16, np.float64)
    histograms = np.zeros((root.shape[0] + 4, n_slots + 1, n_tasks, 2))
    rows = np.empty(2 * n_rows + 16, np.int32)
    outside = np.empty(n_rows + 1, np.int32)

    depth = root.shape[0]
    levels.path[:depth] = root
    levels.sign[depth] = root_sign
    levels.row_stop[depth] = _root_rows(lattice, root, rows, outside)
    if depth > 0:
        allowed = admitted(lattice, root[depth - 1], allowed)
    columns = live_columns(lattice, allowed, node.is_live, node.live)
    work = depth * n_rows
    work += _gather(
        lattice, residual, rows[: levels.row_stop[depth]], 1.0, columns, histograms[depth]
    )
    found, n_nodes, entering = 0, 0, True
    while depth >= root.shape[0]:
        if entering:
            entering = False
            n_nodes += 1
            work += 8 * allowed.shape[0]
            children, bounds, found, threshold = _visit(
                lattice, levels, depth, allowed, columns, histograms[depth], threshold, record,
                node, best, found, children, bounds,
            )  # fmt: skip
            if work > budget:
                break
        q = levels.child_next[depth]
        if q >= levels.child_stop[depth]:
            depth -= 1
            continue
        levels.child_next[depth] = q + 1
        if bounds[q] <= threshold:
            continue
        allowed = admitted(lattice, children[q], children[q + 1 : levels.child_stop[depth]])
        if allowed.shape[0] == 0:
            continue
        columns = live_columns(lattice, allowed, node.is_live, node.live)
        rows, histograms, effort = _descend(
            lattice, residual, levels, depth, children[q], columns, rows, outside, histograms
        )
        work += effort
        depth += 1
        levels.child_next[depth] = levels.child_stop[depth] = levels.child_stop[depth - 1]
        entering = True

    left = _hand_back(lattice, threshold, root.shape[0], depth, levels, children, bounds)
    return best.ratios[:found], best.lengths[:found], best.paths[:found], n_nodes, left
