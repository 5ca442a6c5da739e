"""Where numeric columns are cut, and the decimals that do it."""

from __future__ import annotations

import math
import sys
from decimal import localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from latticework.rules.thresholds import (
    choose_cuts,
    distinct_masses,
    given_thresholds,
    quantile_thresholds,
    threshold_between,
)

NAN = float("nan")
FINITE = st.floats(allow_nan=False, allow_infinity=False)
# Other work on the machine must not fail a test.
unhurried = settings(deadline=None)
MASSES = st.lists(st.integers(1, 60), min_size=1, max_size=40)


def digits(number: float) -> int:
    """Significant digits of a number as it is printed."""
    mantissa = repr(number).split("e")[0].lstrip("-").replace(".", "").strip("0")
    return len(mantissa)


# ------------------------------------------------------------------------------------ decimals


@unhurried
@given(FINITE, FINITE)
def test_threshold_separates_exactly_and_survives_printing(a, b):
    lower, upper = sorted((a + 0.0, b + 0.0))
    if lower == upper:
        return
    for at_lower in (False, True):
        threshold = threshold_between(lower, upper, at_lower=at_lower)
        assert lower <= threshold < upper
        assert float(repr(threshold)) == threshold
        assert digits(threshold) <= max(digits(lower), digits(upper)) + 1


@unhurried
@given(FINITE)
def test_neighbouring_floats_are_separated(lower):
    upper = math.nextafter(lower, math.inf)
    if math.isfinite(upper):
        assert threshold_between(lower, upper) == lower


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (49.0, 52.0, 50.0),
        (0.4471, 0.4483, 0.448),
        (3.0, 4.0, 3.0),
        (2.5, 2.6, 2.5),
        (1.0, 1.5, 1.2),
        (99.0, 101.0, 100.0),
        (20.0, 30.0, 25.0),
        (-0.001, 0.0005, 0.0),
        (-5.0, -2.0, -3.0),
        (0.1, 0.30000000000000004, 0.2),
        (0.123456789, 0.987654321, 0.6),
        (1e22, 3e22, 2e22),
        (-sys.float_info.max, sys.float_info.max, 0.0),
    ],
)
def test_short_decimals(lower, upper, expected):
    assert threshold_between(lower, upper) == expected


def test_decimals_do_not_depend_on_the_callers_context():
    with localcontext() as context:
        context.prec = 2
        assert threshold_between(1234567.1, 1234567.9) == 1234567.5


def test_cut_beside_a_heavy_zero_is_at_zero():
    gains = np.array([0.0] * 92 + [114, 594, 1055, 2174, 3103, 5178, 7688, 15024])
    assert quantile_thresholds(gains, None, 8)[0] == 0
    assert quantile_thresholds(np.array([0.0, 114.0, 594.0, 700.0]), None, 3)[0] == 60


# ---------------------------------------------------------------------------------------- cuts


@unhurried
@given(MASSES, st.integers(1, 12))
def test_as_many_cuts_as_allowed(masses, n_cuts):
    """Never more than n_cuts, never fewer where there are gaps for them, and all different."""
    cuts = choose_cuts(np.array(masses, dtype=float), n_cuts)
    assert len(cuts) == min(n_cuts, len(masses) - 1)
    assert_array_equal(cuts, np.unique(cuts))
    assert not len(cuts) or (cuts[0] >= 0 and cuts[-1] < len(masses) - 1)


@unhurried
@given(MASSES, st.integers(1, 12))
def test_every_heavy_tie_is_cut_off(masses, n_cuts):
    cuts = set(choose_cuts(np.array(masses, dtype=float), n_cuts).tolist())
    last = len(masses) - 1
    heavy = [i for i, mass in enumerate(masses) if mass * (n_cuts + 1) > sum(masses)]
    sides = [{side for side in (i - 1, i) if 0 <= side < last} for i in heavy]
    assert all(cuts & both for both in sides if both)
    if len(set().union(*sides)) <= n_cuts:
        assert all(both <= cuts for both in sides)


@unhurried
@given(MASSES, st.integers(1, 12), st.integers(2, 7))
def test_scaled_weights_without_ties_give_the_same_cuts(masses, n_cuts, factor):
    masses = np.array(masses, dtype=float)
    if (masses * (n_cuts + 1) <= masses.sum()).all():
        assert_array_equal(choose_cuts(masses, n_cuts), choose_cuts(factor * masses, n_cuts))


@unhurried
@given(st.integers(2, 500), st.integers(1, 20))
def test_without_ties_cuts_are_the_quantiles(n, n_cuts):
    values = np.arange(1.0, n + 1)
    cuts = choose_cuts(np.ones(n), n_cuts)
    if n_cuts < n - 1:
        levels = np.arange(1, n_cuts + 1) / (n_cuts + 1)
        expected = np.quantile(values, levels, method="inverted_cdf")
        # numpy's own levels are rounded: leave out those that fall on a value's edge
        edge = np.isclose(levels * n, np.round(levels * n))
        assert_array_equal(values[cuts][~edge], expected[~edge])
    else:
        assert_array_equal(cuts, np.arange(n - 1))


def test_zero_inflated_column():
    """92 % zeros: one cut beside them, the others at the quantiles of the rest."""
    rest = np.arange(1.0, 81.0)
    values = np.concatenate([np.zeros(920), rest])
    thresholds = quantile_thresholds(values, None, 8)
    assert_array_equal(thresholds, [0, 10, 20, 30, 40, 50, 60, 70])


def test_heavy_tie_inside_a_column_is_cut_off_on_both_sides():
    values = np.concatenate([np.arange(0, 40), np.full(47, 40), np.arange(41, 61)]).astype(float)
    thresholds = quantile_thresholds(values, None, 4)
    assert {39.0, 40.0} <= set(thresholds)
    assert len(thresholds) == 4


def test_more_sides_than_cuts():
    """Five heavy ties with eight sides and one cut each at most."""
    masses = np.array([20.0, 1, 20, 1, 20, 1, 20, 1])
    cuts = choose_cuts(masses, 4)
    assert len(cuts) == 4
    assert all({tie - 1, tie} & set(cuts.tolist()) for tie in (0, 2, 4, 6))


# --------------------------------------------------------------------------------- the column


@unhurried
@given(
    st.lists(st.tuples(st.sampled_from([*range(12), NAN]), st.integers(0, 5)), min_size=1),
    st.integers(1, 9),
)
def test_whole_weights_are_repeated_rows(rows, n_thresholds):
    values = np.array([value for value, _ in rows], dtype=float)
    weights = np.array([weight for _, weight in rows])
    kept = weights > 0
    weighted = quantile_thresholds(values[kept], weights[kept].astype(float), n_thresholds)
    repeated = quantile_thresholds(np.repeat(values, weights), None, n_thresholds)
    assert_array_equal(weighted, repeated)


@unhurried
@given(st.lists(FINITE, min_size=1, max_size=60), st.integers(1, 9))
def test_thresholds_of_any_column(values, n_thresholds):
    values = np.array(values)
    thresholds = quantile_thresholds(values, None, n_thresholds)
    distinct = np.unique(values)
    assert len(thresholds) == min(n_thresholds, len(distinct) - 1)
    assert (np.diff(thresholds) > 0).all()
    below = (distinct[None, :] <= thresholds[:, None]).sum(axis=1)
    assert len(set(below)) == len(thresholds)
    assert ((below > 0) & (below < len(distinct))).all()


def test_columns_without_two_values_have_no_thresholds():
    for values in ([], [NAN], [1.0, 1.0, NAN], [-0.0, 0.0]):
        assert quantile_thresholds(np.array(values), None, 8).shape == (0,)


def test_distinct_masses():
    distinct, masses = distinct_masses(np.array([2.0, -0.0, 2.0, 0.0]), None)
    assert_array_equal(distinct, [0, 2])
    assert not np.signbit(distinct[0])
    assert_array_equal(masses, [2, 2])


def test_given_thresholds_are_sorted_and_checked():
    assert_array_equal(given_thresholds("a", [3, 1.5, 3]), [1.5, 3])
    for bad in ([1, NAN], [np.inf], ["1"], 3.0, [[1.0]], [True]):
        with pytest.raises(ValueError, match="thresholds of column 'a' must be a sequence of"):
            given_thresholds("a", bad)
