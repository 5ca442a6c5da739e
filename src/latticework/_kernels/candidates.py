"""Compiled lists of the best conjunctions found, and small sorts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class Best(NamedTuple):
    """The best candidates so far, a heap with the worst on top."""

    ratios: np.ndarray
    lengths: np.ndarray
    paths: np.ndarray
    heap: np.ndarray


@njit(cache=True, nogil=True)
def new_best(capacity, max_length):
    """Room for so many candidates."""
    return Best(
        np.empty(capacity),
        np.empty(capacity, np.int32),
        np.empty((capacity, max_length), np.int32),
        np.empty(capacity, np.int32),
    )


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
def keep_candidate(ratio, path, length, condition, found, ratios, lengths, paths, heap):
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
def sort_by(keys, items, count):
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
