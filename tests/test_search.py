"""The search over conjunctions against full enumeration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from tests.oracles import boolean_table, enumerate_conjunctions, random_table

from latticework._kernels.bounds import bound_below
from latticework.blocks.lattices.conjunctions import ConjunctionLattice
from latticework.search import branch_and_bound
from latticework.search.branch_and_bound import find_conjunctions, try_neighbours
from latticework.search.limits import Limits

EXACT = 1e-8  # bounds are loosened by 1e-9


def one_sided(gains, sides):
    """‖g_w‖ of gains (k, T), for each weight of which only the parts on one side may count."""
    wrong = sides[:, None] * gains < 0.0
    return np.linalg.norm(np.where(wrong, 0.0, gains), axis=1)


class Case:
    """A random lattice with residuals, and the ratios of all its conjunctions."""

    def __init__(self, seed, n_tasks=1, length_penalty=1.0, max_length=None, signed=False, n=60):
        rng = np.random.default_rng(seed)
        self.codes, table = random_table(rng, n, 1, 1, 2, 3, missing=0.1)
        signs = rng.integers(-1, 2, len(table)).astype(np.int8) if signed else None
        self.lattice = ConjunctionLattice(self.codes, table, length_penalty, max_length, signs)
        self.residual = rng.normal(size=(n, n_tasks)) * (rng.random((n, n_tasks)) < 0.8)
        everything = enumerate_conjunctions(table, self.codes, length_penalty, max_length)
        sides = np.zeros(len(everything))
        possible = np.ones(len(everything), bool)
        if signs is not None:
            own = [set(signs[list(w)]) - {0} for w in everything.conditions]
            possible = np.array([len(s) < 2 for s in own])
            sides = np.array([sum(s) for s in own], float)
        gains = everything.indicators.T.astype(float) @ self.residual
        ratios = np.where(possible, one_sided(gains, sides) / everything.D, 0.0)
        self.ratios = dict(zip(everything.conditions, ratios, strict=True))
        self.largest = max(self.ratios.values())


VARIANTS = [
    {},
    {"n_tasks": 3},
    {"length_penalty": 0.0},
    {"length_penalty": 0.5, "n_tasks": 2},
    {"length_penalty": 2.0},
    {"max_length": 1},
    {"max_length": 2, "length_penalty": 0.0},
    {"signed": True},
    {"signed": True, "n_tasks": 2, "length_penalty": 0.3},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_the_largest_ratio_is_found_and_proved(seed, variant):
    case = Case(seed, **variant)
    found = find_conjunctions(case.lattice, case.residual, threshold=0.0, n_best=1)
    assert found.complete
    assert_allclose(found.ratios[0], case.largest, rtol=EXACT)
    assert_allclose(found.bound, case.largest, rtol=EXACT)
    assert found.bound >= case.largest
    assert_allclose(case.ratios[found.conjunctions[0]], case.largest, rtol=EXACT)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("share", [0.5, 0.9, 1.1])
def test_all_above_the_threshold_are_found(variant, share):
    """Up to conjunctions that select the same rows as a shorter one does."""
    case = Case(7, **variant)
    threshold = share * case.largest
    found = find_conjunctions(case.lattice, case.residual, threshold=threshold, n_best=10_000)
    assert found.complete
    assert_allclose(found.bound, max(threshold, case.largest), rtol=EXACT)
    for conjunction, ratio in zip(found.conjunctions, found.ratios, strict=True):
        assert_allclose(ratio, case.ratios[conjunction], rtol=EXACT)
    wanted = {round(r, 9) for r in case.ratios.values() if r > threshold * (1 + EXACT)}
    assert wanted <= {round(r, 9) for r in found.ratios}
    assert len(set(found.conjunctions)) == len(found.conjunctions)


@pytest.mark.parametrize("budget", [1, 300, 5_000])
@pytest.mark.parametrize("threads", [None, 2, 5])
def test_units_and_threads_change_nothing(monkeypatch, budget, threads):
    case = Case(3, n_tasks=2, length_penalty=0.3, n=200)
    arguments = {"threshold": 0.4 * case.largest, "n_best": 20}
    plain = find_conjunctions(case.lattice, case.residual, **arguments)
    monkeypatch.setattr(branch_and_bound, "_FIRST_BUDGET", budget)
    monkeypatch.setattr(branch_and_bound, "_UNIT_BUDGET", budget)
    if threads is None:
        found = find_conjunctions(case.lattice, case.residual, **arguments)
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = find_conjunctions(case.lattice, case.residual, **arguments, pool=pool)
    assert found.complete
    assert_allclose(found.ratios, plain.ratios, rtol=EXACT)
    assert_allclose(found.bound, plain.bound, rtol=EXACT)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    """To the last bit, nodes included."""
    case = Case(5, length_penalty=0.1, n=300)
    monkeypatch.setattr(branch_and_bound, "_FIRST_BUDGET", 500)
    monkeypatch.setattr(branch_and_bound, "_UNIT_BUDGET", 2_000)
    results = []
    for threads in (1, 2, 7):
        with ThreadPoolExecutor(threads) as pool:
            found = find_conjunctions(
                case.lattice, case.residual, threshold=0.5 * case.largest, pool=pool
            )
        results.append((found.conjunctions, found.ratios.tolist(), found.bound, found.n_nodes))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("max_nodes", [0, 1, 5])
def test_an_unfinished_search_still_bounds(monkeypatch, max_nodes):
    case = Case(11, length_penalty=0.2, n=200)
    monkeypatch.setattr(branch_and_bound, "_FIRST_BUDGET", 100)
    monkeypatch.setattr(branch_and_bound, "_UNIT_BUDGET", 100)
    found = find_conjunctions(
        case.lattice, case.residual, threshold=0.0, n_best=1, max_nodes=max_nodes
    )
    assert not found.complete
    assert found.bound >= case.largest
    late = find_conjunctions(case.lattice, case.residual, threshold=0.0, limits=Limits(deadline=0))
    assert not late.complete
    assert late.bound == np.inf


@pytest.mark.parametrize("moment", [1, 2, 3, 7])
def test_units_that_time_left_unexplored_count(monkeypatch, moment):
    """Time may run out between any two units of a round."""
    case = Case(11, length_penalty=0.2, n=200)
    monkeypatch.setattr(branch_and_bound, "_FIRST_BUDGET", 100)
    monkeypatch.setattr(branch_and_bound, "_UNIT_BUDGET", 100)
    looks = iter(range(1000))
    limits = Limits()
    monkeypatch.setattr(Limits, "is_over", lambda self: next(looks) >= moment)
    found = find_conjunctions(case.lattice, case.residual, threshold=0.0, n_best=1, limits=limits)
    assert not found.complete
    assert found.bound >= case.largest


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_boolean_columns_as_they_are(storage):
    rng = np.random.default_rng(0)
    cells, table = boolean_table(rng, 80, 7, 0.4)
    residual = rng.normal(size=(80, 2))
    codes = sparse.csr_array(cells) if storage == "sparse" else cells
    lattice = ConjunctionLattice(codes, table, 0.2)
    everything = enumerate_conjunctions(table, cells, 0.2)
    ratios = np.linalg.norm(everything.indicators.T @ residual, axis=1) / everything.D
    found = find_conjunctions(lattice, residual, threshold=0.0, n_best=1)
    assert found.complete
    assert_allclose([found.bound, found.ratios[0]], ratios.max(), rtol=EXACT)
    assert found.conjunctions[0] == everything.conditions[int(ratios.argmax())]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_neighbours(variant):
    """One condition more, less or exchanged, and nothing is proved."""
    case = Case(2, **variant)
    start = max(case.ratios, key=lambda w: (case.ratios[w] > 0, len(w) == 2, case.ratios[w]))
    found = try_neighbours(case.lattice, case.residual, [start], record=0.0, n_best=10_000)
    assert not found.complete
    assert found.bound == np.inf
    for conjunction, ratio in zip(found.conjunctions, found.ratios, strict=True):
        assert len(set(start) - set(conjunction)) <= 1
        assert len(set(conjunction) - set(start)) <= 1
        assert_allclose(ratio, case.ratios[conjunction], rtol=EXACT)
    near = {
        round(ratio, 9)
        for w, ratio in case.ratios.items()
        if len(set(start) - set(w)) <= 1 and len(set(w) - set(start)) == 1 and ratio > 1e-9
    }
    assert near <= {round(r, 9) for r in found.ratios}
    few = try_neighbours(case.lattice, case.residual, [start], record=0.0, most=1)
    assert few.n_nodes <= 1


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_tasks=st.integers(1, 3),
    a=st.sampled_from([0.0, 0.2, 0.5, 1.0, 2.0]),
    sign=st.sampled_from([-1, 0, 1]),
    length=st.integers(1, 4),
)
def test_the_bound_dominates_all_descendants(seed, n_tasks, a, sign, length):
    """A node, and every set of further conditions, on random rows."""
    rng = np.random.default_rng(seed)
    n, q = int(rng.integers(1, 25)), int(rng.integers(1, 7))
    residual = rng.normal(size=(n, n_tasks))
    holds = rng.random((q, n)) < rng.uniform(0.1, 0.95, (q, 1))
    parts = np.stack([np.maximum(residual, 0.0), np.maximum(-residual, 0.0)], axis=2)
    kept = parts.sum(axis=0)
    most_lost = np.max([parts[~row].sum(axis=0) for row in holds], axis=0)
    scale = (1.0 + a) ** np.arange(length + q + 1)
    bound = bound_below(kept, most_lost, sign, length, q, scale)
    for k in range(1, q + 1):
        for chosen in combinations(range(q), k):
            gain = residual[holds[list(chosen)].all(axis=0)].sum(axis=0)
            ratio = one_sided(gain[None], np.array([sign]))[0] / scale[length + k]
            assert ratio <= bound * (1 + 1e-12) + 1e-14
