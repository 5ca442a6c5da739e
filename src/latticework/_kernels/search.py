"""Compiled branch and bound over conjunctions: one unit of work.

A unit is a subtree of the search, given by a path of conditions and by the conditions that may
still be added.  It is explored depth first until it is exhausted or a budget of elementary
operations is spent; what is left is handed back as smaller units.  A unit depends on nothing but
its arguments, so the result of a search does not depend on how units are spread over threads.

Notation, for a node u with rows I_u and residuals r (one per row and task):
``kept`` mass of a condition: P_c, N_c, the sums of the positive and of the negative parts of r
over the rows of u that satisfy c; ``lost`` mass: P'_c, N'_c, the same over the rows that fail c.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

LE, GT, EQ, NE, MISSING, TRUE = 0, 1, 2, 3, 4, 5

# Less than this share of a node's mass is nothing: histograms are partly differences, exact to
# about 1e-15.  The bounds of a search are loosened by more than that.
_NOTHING = 1e-12


@njit(cache=True, nogil=True)
def _grown(buffer, used, wanted):
    """A copy of ``buffer`` with room for ``wanted`` entries, its first ``used`` ones kept."""
    larger = np.empty(max(wanted, 2 * buffer.shape[0]), buffer.dtype)
    larger[:used] = buffer[:used]
    return larger


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
def _add_sparse(indptr, indices, rows, residual, factor, histogram):
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
def _split_rows(lattice, condition, rows, inside, outside):
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
def _masses(kind, key, first, last, histogram, before, after, task, side):
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
def _cumulate(columns, offset, histogram, before, after):
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
def _norm(gain, sign):
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
    while k <= most_added:
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


@njit(cache=True, nogil=True)
def _sift(ratio, slot_of, size):
    """Restore the min-heap of candidates after its root has changed."""
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            return
        if child + 1 < size and ratio[slot_of[child + 1]] < ratio[slot_of[child]]:
            child += 1
        if ratio[slot_of[parent]] <= ratio[slot_of[child]]:
            return
        slot_of[parent], slot_of[child] = slot_of[child], slot_of[parent]
        parent = child


@njit(cache=True, nogil=True)
def _keep_candidate(ratio, path, length, condition, found, ratios, lengths, paths, heap):
    """Enter a conjunction among the best ones found; return their new number."""
    capacity = ratios.shape[0]
    if found < capacity:
        slot = found
        found += 1
        ratios[slot] = ratio
        heap[slot] = slot
        child = slot
        while child > 0:
            parent = (child - 1) // 2
            if ratios[heap[parent]] <= ratios[heap[child]]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            child = parent
    else:
        slot = heap[0]
        ratios[slot] = ratio
        _sift(ratios, heap, found)
    for k in range(length):
        paths[slot, k] = path[k]
    paths[slot, length] = condition
    lengths[slot] = length + 1
    return found


@njit(cache=True, nogil=True)
def _sort_by(keys, items, count):
    """Sort items[:count] and keys[:count] by ascending key (stable insertion, shell gaps)."""
    gap = 1
    while gap < count // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            key, item = keys[i], items[i]
            j = i
            while j >= gap and (
                keys[j - gap] > key or (keys[j - gap] == key and items[j - gap] > item)
            ):
                keys[j] = keys[j - gap]
                items[j] = items[j - gap]
                j -= gap
            keys[j] = key
            items[j] = item
        gap //= 3


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


class _Best(NamedTuple):
    """The best candidates so far, a heap with the worst on top."""

    ratios: np.ndarray
    lengths: np.ndarray
    paths: np.ndarray
    heap: np.ndarray


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


@njit(cache=True, nogil=True)
def _live_columns(lattice, allowed, node):
    """Columns that some allowed condition looks at, ascending."""
    count = 0
    for q in range(allowed.shape[0]):
        j = lattice.column[allowed[q]]
        if not node.is_live[j]:
            node.is_live[j] = True
            node.live[count] = j
            count += 1
    for q in range(count):
        node.is_live[node.live[q]] = False
    node.live[:count].sort()
    return node.live[:count]


@njit(cache=True, nogil=True)
def _gather(lattice, residual, rows, factor, columns, histogram):
    """Add rows to the histograms of some columns; returns the elementary operations it took."""
    if lattice.indptr.shape[0] > 0:
        _add_sparse(lattice.indptr, lattice.indices, rows, residual, factor, histogram)
        return rows.shape[0] * (1 + lattice.indices.shape[0] // residual.shape[0])
    add_to_histogram(lattice.codes, rows, columns, lattice.offset, residual, factor, histogram)
    return rows.shape[0] * columns.shape[0]


@njit(cache=True, nogil=True)
def _copy_histogram(lattice, columns, source, target):
    """Copy the histograms of some columns."""
    if lattice.indptr.shape[0] > 0:
        target[:] = source
        return
    for q in range(columns.shape[0]):
        first, stop = lattice.offset[columns[q]], lattice.offset[columns[q] + 1]
        target[first:stop] = source[first:stop]


@njit(cache=True, nogil=True)
def _clear_histogram(lattice, columns, target):
    """Empty the histograms of some columns."""
    if lattice.indptr.shape[0] > 0:
        target[:] = 0.0
        return
    for q in range(columns.shape[0]):
        target[lattice.offset[columns[q]] : lattice.offset[columns[q] + 1]] = 0.0


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
                kept, lost = _masses(
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
        ratio = _norm(node.gain, node_sign + lattice.sign[c]) / lattice.scale[depth + 1]
        if ratio > record and (found < capacity or ratio > best.ratios[best.heap[0]]):
            found = _keep_candidate(
                ratio, path, depth, c, found, best.ratios, best.lengths, best.paths, best.heap
            )
            if found == capacity:
                threshold = max(threshold, best.ratios[best.heap[0]])
        # Even if further conditions removed all rows of one sign and none of the other?
        for t in range(node.gain.shape[0]):
            node.gain[t] = max(node.kept[n_valid, t, 0], node.kept[n_valid, t, 1])
        if depth + 1 < max_length and _norm(node.gain, 0) <= threshold * lattice.scale[depth + 2]:
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
    _sort_by(node.weight, node.rank, count)
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
def _admitted(lattice, condition, candidates, out):
    """Write those candidates that may stand beside ``condition``; return their number."""
    count = 0
    for q in range(candidates.shape[0]):
        other = candidates[q]
        if lattice.column[other] != lattice.column[condition] or _compatible(
            lattice.kind[condition], lattice.kind[other]
        ):
            out[count] = other
            count += 1
    return count


@njit(cache=True, nogil=True)
def _hand_back(lattice, threshold, depth0, depth, path, signs, first, stop, children, bounds):
    """The children that were not explored, as units of their own.

    Unit u has the conditions ``paths[u, :lengths[u]]`` and may add
    ``children[starts[u]:stops[u]]``.
    """
    count = 0
    for d in range(depth0, depth + 1):
        for q in range(first[d], stop[d]):
            count += bounds[q] > threshold
    bound = np.empty(count, np.float64)
    paths = np.empty((count, lattice.scale.shape[0] - 1), np.int32)
    lengths = np.empty(count, np.int32)
    sign = np.empty(count, np.int32)
    starts = np.empty(count, np.int64)
    stops = np.empty(count, np.int64)
    u = 0
    for d in range(depth0, depth + 1):
        for q in range(first[d], stop[d]):
            if bounds[q] > threshold:
                bound[u] = bounds[q]
                paths[u, :d] = path[:d]
                paths[u, d] = children[q]
                lengths[u] = d + 1
                sign[u] = _joint_sign(signs[d], lattice.sign[children[q]])
                starts[u] = q + 1
                stops[u] = stop[d]
                u += 1
    return bound, paths, lengths, sign, starts, stops, children


@njit(cache=True, nogil=True)
def _joint_sign(a, b):
    """Sign of a conjunction whose parts have signs that do not contradict each other."""
    return a if a != 0 else b


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
    depth0 = root.shape[0]
    n_slots = lattice.offset[lattice.offset.shape[0] - 1]
    sparse = lattice.indptr.shape[0] > 0
    best = _Best(
        np.empty(n_best),
        np.empty(n_best, np.int32),
        np.empty((n_best, max_length), np.int32),
        np.empty(n_best, np.int32),
    )
    node = _new_node(n_slots, lattice.offset.shape[0], n_tasks, allowed.shape[0])

    # Stacks along the current path: rows, histograms, children and their bounds.
    row_start = np.zeros(max_length + 2, np.int64)
    row_stop = np.zeros(max_length + 2, np.int64)
    child_next = np.zeros(max_length + 2, np.int64)
    child_stop = np.zeros(max_length + 2, np.int64)
    signs = np.zeros(max_length + 2, np.int64)
    path = np.empty(max_length + 2, np.int32)
    children = np.empty(4 * allowed.shape[0] + 16, np.int32)
    bounds = np.empty(4 * allowed.shape[0] + 16, np.float64)
    histograms = np.zeros((depth0 + 4, n_slots + 1, n_tasks, 2))

    rows = np.empty(2 * n_rows + 16, np.int32)
    outside = np.empty(n_rows + 1, np.int32)
    count = n_rows
    for i in range(n_rows):
        rows[i] = i
    for k in range(depth0):
        path[k] = root[k]
        count = _split_rows(lattice, root[k], rows[:count], rows, outside)
    if depth0 > 0:
        admitted = np.empty_like(allowed)
        allowed = admitted[: _admitted(lattice, root[depth0 - 1], allowed, admitted)]

    depth = depth0
    row_stop[depth] = count
    signs[depth] = root_sign
    columns = _live_columns(lattice, allowed, node)
    work = depth0 * n_rows
    work += _gather(lattice, residual, rows[:count], 1.0, columns, histograms[depth])
    found = 0
    n_nodes = 0
    entering = True
    while depth >= depth0:
        if entering:
            entering = False
            n_nodes += 1
            work += 8 * allowed.shape[0]
            if not sparse:
                _cumulate(columns, lattice.offset, histograms[depth], node.before, node.after)
            n_children, found, threshold = _evaluate(
                lattice, histograms[depth], allowed, path, depth, signs[depth],
                threshold, record, node, best, found,
            )  # fmt: skip
            if depth + 1 >= max_length:
                n_children = 0
            n_children = _drop_hopeless(lattice, depth, signs[depth], threshold, node, n_children)
            base = child_stop[depth]
            if base + n_children > children.shape[0]:
                children = _grown(children, base, base + n_children)
                bounds = _grown(bounds, base, base + n_children)
            _order_children(
                lattice, depth, signs[depth], node, n_children, children[base:], bounds[base:]
            )
            child_next[depth], child_stop[depth] = base, base + n_children
            if work > budget:
                break
        q = child_next[depth]
        if q >= child_stop[depth]:
            depth -= 1
            continue
        child_next[depth] = q + 1
        if bounds[q] <= threshold:
            continue
        c = children[q]
        admitted = np.empty(child_stop[depth] - q - 1, np.int32)
        n_admitted = _admitted(lattice, c, children[q + 1 : child_stop[depth]], admitted)
        if n_admitted == 0:
            continue
        allowed = admitted[:n_admitted]
        columns = _live_columns(lattice, allowed, node)
        start, stop = row_start[depth], row_stop[depth]
        if 2 * stop - start > rows.shape[0]:
            rows = _grown(rows, stop, 2 * stop - start)
        count = _split_rows(lattice, c, rows[start:stop], rows[stop:], outside)
        work += stop - start
        # The histograms of the rows that are kept, or of the parent less those that are lost.
        histograms = _deeper(histograms, depth + 1)
        histogram = histograms[depth + 1]
        n_outside = stop - start - count
        if n_outside < count:
            _copy_histogram(lattice, columns, histograms[depth], histogram)
            work += _gather(lattice, residual, outside[:n_outside], -1.0, columns, histogram)
        else:
            _clear_histogram(lattice, columns, histogram)
            work += _gather(lattice, residual, rows[stop : stop + count], 1.0, columns, histogram)
        path[depth] = c
        signs[depth + 1] = _joint_sign(signs[depth], lattice.sign[c])
        row_start[depth + 1], row_stop[depth + 1] = stop, stop + count
        child_next[depth + 1] = child_stop[depth + 1] = child_stop[depth]
        depth += 1
        entering = True

    left = _hand_back(
        lattice, threshold, depth0, depth, path, signs, child_next, child_stop, children, bounds
    )
    return best.ratios[:found], best.lengths[:found], best.paths[:found], n_nodes, left


@njit(cache=True, nogil=True)
def indicator(lattice, conjunction, n_rows):
    """Rows of a conjunction as an array of zeros and ones (n,)."""
    rows = np.empty(n_rows, np.int32)
    for i in range(n_rows):
        rows[i] = i
    count = n_rows
    outside = np.empty(n_rows, np.int32)
    for k in range(conjunction.shape[0]):
        count = _split_rows(lattice, conjunction[k], rows[:count], rows, outside)
    out = np.zeros(n_rows, np.uint8)
    for k in range(count):
        out[rows[k]] = 1
    return out
