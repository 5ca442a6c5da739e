"""Best conjunctions for given residuals, and a proof that there are no better ones.

The search answers: which conjunctions w have the largest ratio ‖g_w‖ / D_w, where
g_w = sum of the residuals over the rows of w, and how large can the ratio be at most?
"""

from __future__ import annotations

import heapq
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from latticework._kernels import search as kernels
from latticework.search.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from latticework.blocks.lattices.conjunctions import ConjunctionLattice

# Elementary operations of one unit.  The first unit is small on large data, so that its children
# are shared among the threads at once; later ones amortise what a unit costs by itself.
_FIRST_BUDGET = 4_000_000
_UNIT_BUDGET = 40_000_000
_UNITS_PER_ROUND = 16
# Sums of n terms are exact to about n * 1e-16; bounds are loosened by more than that.
ROUNDING = 1.0 + 1e-9
# Ratios that differ by less than this share of the largest one count as equal.
_DISTINCT = 1e-9


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found and what it proved.

    Parameters
    ----------
    conjunctions : list of tuple of int
        Candidates, best first, as ascending condition indices.
    ratios : ndarray
        Their ratios ‖g_w‖ / D_w.
    bound : float
        No conjunction of the lattice has a larger ratio.
    complete : bool
        False when a budget ran out; ``bound`` is valid all the same.
    n_nodes : int
        Nodes explored.
    """

    conjunctions: list[tuple[int, ...]]
    ratios: NDArray[np.float64]
    bound: float
    complete: bool
    n_nodes: int


@dataclass(slots=True)
class _Unit:
    """A subtree that waits to be explored."""

    bound: float
    root: NDArray[np.int32]
    sign: int
    allowed: NDArray[np.int32]
    key: tuple[float, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.key = (-self.bound, self.root.tolist())

    def __lt__(self, other: _Unit) -> bool:
        """Largest bound first; no two units of a search have the same root."""
        return self.key < other.key


class _Candidates:
    """The best candidates of all units, without repetition."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.items: list[tuple[float, tuple[int, ...]]] = []
        self.known: set[tuple[int, ...]] = set()

    def add(self, ratios: NDArray, lengths: NDArray, paths: NDArray) -> None:
        for ratio, length, path in zip(ratios, lengths, paths, strict=True):
            conjunction = tuple(sorted(int(c) for c in path[:length]))
            if conjunction in self.known:
                continue
            self.known.add(conjunction)
            item = (float(ratio), conjunction)
            if len(self.items) < self.capacity:
                heapq.heappush(self.items, item)
            else:
                heapq.heappushpop(self.items, item)

    @property
    def worst_kept(self) -> float:
        """Ratio below which nothing enters any more."""
        return self.items[0][0] if len(self.items) >= self.capacity else 0.0

    def ranked(self) -> list[tuple[float, tuple[int, ...]]]:
        """By falling ratio; where they are equal up to rounding, by length and conditions.

        Otherwise the order of the rows would decide which of two rules that select the same rows
        is kept.
        """
        unit = _DISTINCT * max((ratio for ratio, _ in self.items), default=0.0) or 1.0
        return sorted(self.items, key=lambda item: (-round(item[0] / unit), len(item[1]), item[1]))


def find_conjunctions(
    lattice: ConjunctionLattice,
    residual: NDArray[np.float64],
    *,
    threshold: float,
    record: float | None = None,
    n_best: int = 64,
    max_nodes: int | None = None,
    limits: Limits = NO_LIMITS,
    pool: ThreadPoolExecutor | None = None,
) -> SearchResult:
    """Search all conjunctions for the largest ratios ‖g_w‖ / D_w.

    Parameters
    ----------
    lattice : ConjunctionLattice
    residual : ndarray of shape (n, T)
        Negative gradients of the weighted loss, zero where a label is unknown.
    threshold : float
        Subtrees that provably hold no larger ratio are not explored.
    record : float, optional
        Conjunctions with a larger ratio are returned; by default ``threshold``.
    n_best : int
        At most so many candidates; the worst of them takes the place of the threshold.
    max_nodes : int, optional
        Give up after so many nodes.
    limits : Limits
        Give up when they say so; their number of nodes is not looked at.
    pool : ThreadPoolExecutor, optional
        Threads.  The result does not depend on their number.

    Returns
    -------
    SearchResult
    """
    record = threshold if record is None else record
    candidates = _Candidates(n_best)
    compiled = lattice.compiled
    everything = np.arange(lattice.n_conditions, dtype=np.int32)
    frontier = [_Unit(np.inf, np.empty(0, np.int32), 0, everything)] if len(everything) else []
    budget = _FIRST_BUDGET
    n_nodes = 0

    def explore(unit: _Unit) -> tuple | None:
        if limits.is_over():
            return None
        return kernels.search_unit(
            compiled, residual, unit.root, unit.sign, unit.allowed,
            max(threshold, candidates.worst_kept), record, n_best, budget,
        )  # fmt: skip

    while frontier:
        if limits.is_over() or (max_nodes is not None and n_nodes >= max_nodes):
            break
        bar = max(threshold, candidates.worst_kept)
        batch: list[_Unit] = []
        while frontier and len(batch) < _UNITS_PER_ROUND and frontier[0].bound > bar:
            batch.append(heapq.heappop(frontier))
        results = (
            map(explore, batch) if pool is None or len(batch) == 1 else pool.map(explore, batch)
        )
        for unit, result in zip(batch, list(results), strict=True):
            if result is None:
                heapq.heappush(frontier, unit)
                continue
            ratios, lengths, paths, nodes, left = result
            candidates.add(ratios, lengths, paths)
            n_nodes += int(nodes)
            for part in _units(*left):
                heapq.heappush(frontier, part)
        bar = max(threshold, candidates.worst_kept)
        if frontier and frontier[0].bound <= bar:  # and so are all others
            frontier.clear()
        budget = _UNIT_BUDGET

    ranked = candidates.ranked()
    best = max((ratio for ratio, _ in ranked), default=0.0)
    bound = max([threshold, best, *(unit.bound for unit in frontier)])
    return SearchResult(
        [conjunction for _, conjunction in ranked],
        np.array([ratio for ratio, _ in ranked]),
        bound * ROUNDING,
        not frontier,
        n_nodes,
    )


def try_neighbours(
    lattice: ConjunctionLattice,
    residual: NDArray[np.float64],
    conjunctions: Sequence[tuple[int, ...]],
    *,
    record: float,
    n_best: int = 64,
    most: int | None = None,
    limits: Limits = NO_LIMITS,
    pool: ThreadPoolExecutor | None = None,
) -> SearchResult:
    """Conjunctions that differ from given ones by a condition more, less or exchanged.

    What is missing from a good model mostly looks like what is in it, and costs a small part of
    a search to find.

    Parameters
    ----------
    lattice, residual, record, n_best, limits, pool
        As in :func:`find_conjunctions`.
    conjunctions : sequence of tuple of int
        The first ones are tried first.
    most : int, optional
        Look at so many nodes at most.

    Returns
    -------
    SearchResult
        Incomplete, as it proves nothing: its bound is infinite.
    """
    nodes = list(dict.fromkeys(node for w in conjunctions for node in _around(w)))
    nodes = [node for node in nodes if len(node) < lattice.longest][:most]
    candidates = _Candidates(n_best)

    def explore(node: tuple[int, ...]) -> tuple | None:
        if limits.is_over():
            return None
        allowed = lattice.extensions(node)
        return kernels.search_unit(
            lattice.compiled, residual, np.array(node, np.int32), lattice.sign(node), allowed,
            np.inf, record, n_best, 0,
        )  # fmt: skip

    results = map(explore, nodes) if pool is None else pool.map(explore, nodes)
    explored = [result for result in results if result is not None]
    for ratios, lengths, paths, _, _ in explored:
        candidates.add(ratios, lengths, paths)
    ranked = candidates.ranked()
    return SearchResult(
        [conjunction for _, conjunction in ranked],
        np.array([ratio for ratio, _ in ranked]),
        np.inf,
        False,
        len(explored),
    )


def _around(conjunction: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """A conjunction, and what dropping one of its conditions leaves."""
    yield conjunction
    for k in range(len(conjunction)):
        yield conjunction[:k] + conjunction[k + 1 :]


def _units(
    bounds: NDArray,
    paths: NDArray,
    lengths: NDArray,
    signs: NDArray,
    starts: NDArray,
    stops: NDArray,
    children: NDArray,
) -> list[_Unit]:
    """The unexplored children of a unit as units."""
    return [
        _Unit(
            float(bounds[u]),
            paths[u, : lengths[u]].copy(),
            int(signs[u]),
            children[starts[u] : stops[u]],
        )
        for u in range(len(bounds))
    ]


def thread_pool(n_jobs: int | None) -> ThreadPoolExecutor | None:
    """Threads for a search: None is one, -1 is one per core."""
    cores = os.cpu_count() or 1
    n_threads = 1 if n_jobs is None else (cores + 1 + n_jobs if n_jobs < 0 else n_jobs)
    return ThreadPoolExecutor(max(1, n_threads)) if n_threads > 1 else None
