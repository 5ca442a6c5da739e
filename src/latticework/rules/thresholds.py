"""Where to cut a numeric column.

A cut is a gap between two neighbouring distinct training values; its threshold is a short
decimal inside the gap.  Cuts are chosen from the masses (summed sample weights) of the distinct
values alone, and all comparisons are between products of masses and small integers, so that
whole-number weights give exactly the cuts of repeated rows.
"""

from __future__ import annotations

from decimal import ROUND_HALF_DOWN, Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Strategy = Callable[[NDArray[np.float64], NDArray[np.float64] | None, int], NDArray[np.float64]]


def quantile_thresholds(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None, n_thresholds: int
) -> NDArray[np.float64]:
    """Thresholds at the quantiles of a column, with the heavy ties set apart.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The cells of the column; NaN is missing.
    weights : ndarray of shape (n,) or None
        Positive weights of the rows; None counts every row once.
    n_thresholds : int
        The largest number of thresholds.

    Returns
    -------
    ndarray of shape (k,), k <= n_thresholds
        Ascending; each strictly separates two neighbouring distinct values, ``lower <= t <
        upper``.

    Examples
    --------
    >>> import numpy as np
    >>> quantile_thresholds(np.arange(1, 101) / 10, None, 3)
    array([2.5, 5. , 7.5])

    Of 92 zeros and 8 other values, plain quantiles would see the zeros only:

    >>> gains = np.array([0] * 92 + [114, 594, 1055, 2174, 3103, 5178, 7688, 15024])
    >>> quantile_thresholds(gains.astype(float), None, 4)
    array([   0.,  800., 2600., 6000.])
    """
    present = ~np.isnan(values)
    if not present.all():
        values = values[present]
        weights = None if weights is None else weights[present]
    distinct, masses = distinct_masses(values, weights)
    cuts = choose_cuts(masses, n_thresholds)
    heavy = masses * (n_thresholds + 1) > masses.sum()
    return np.array(
        [
            threshold_between(float(distinct[cut]), float(distinct[cut + 1]), at_lower=heavy[cut])
            for cut in cuts.tolist()
        ],
        dtype=np.float64,
    )


STRATEGIES: dict[str, Strategy] = {"quantile": quantile_thresholds}


def given_thresholds(name: str, thresholds: Any) -> NDArray[np.float64]:
    """Check the thresholds that a user gives for one column; sorted, each once."""
    given = np.asarray(thresholds)
    if given.ndim != 1 or given.dtype.kind not in "iuf" or not np.isfinite(given).all():
        raise ValueError(
            f"the thresholds of column {name!r} must be a sequence of finite numbers, got "
            f"{thresholds!r}."
        )
    return np.unique(given.astype(np.float64))


# ------------------------------------------------------------------------------- choosing cuts


def distinct_masses(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distinct values, ascending, and the sum of the weights of the rows that hold each.

    Examples
    --------
    >>> import numpy as np
    >>> distinct_masses(np.array([3.0, 1.0, 3.0]), np.array([0.5, 1.0, 2.0]))
    (array([1., 3.]), array([1. , 2.5]))
    """
    if not len(values):
        return np.empty(0), np.empty(0)
    order = None if weights is None else np.argsort(values)
    ordered = np.sort(values) if order is None else values[order]
    starts = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])
    if weights is None:
        masses = np.diff(starts, append=len(values)).astype(np.float64)
    else:
        masses = np.add.reduceat(weights[order], starts)
    return ordered[starts] + 0.0, masses  # + 0.0 turns -0.0 into 0.0


def choose_cuts(masses: NDArray[np.float64], n_cuts: int) -> NDArray[np.intp]:
    """Choose at most ``n_cuts`` cuts between ``len(masses)`` ordered values.

    Cut g lies between value g and value g + 1.  With enough cuts for all gaps, all are taken.
    Otherwise, without a value of more than 1 / (n_cuts + 1) of the mass (a *heavy tie*), the
    cuts are the quantiles at multiples of that step, all different.  A heavy tie is cut off on
    both sides, and the cuts that are left are shared out among the runs of values between the
    heavy ties, in proportion to their mass, each run being treated the same way.

    Examples
    --------
    >>> import numpy as np
    >>> choose_cuts(np.array([1.0, 1, 1, 1, 1, 1]), 2)
    array([1, 3])
    >>> choose_cuts(np.array([1.0, 1, 1, 20, 1, 1, 1, 1]), 4)  # the fourth value is heavy
    array([1, 2, 3, 5])
    """
    n_gaps = len(masses) - 1
    if n_gaps <= n_cuts:
        return np.arange(max(n_gaps, 0))
    mass_up_to = np.cumsum(masses)
    heavy = masses * (n_cuts + 1) > mass_up_to[-1]
    if not heavy.any():
        targets = mass_up_to[-1] * np.arange(1, n_cuts + 1)
        reached = np.searchsorted(mass_up_to * (n_cuts + 1), targets, side="left")
        return np.unique(np.minimum(reached, n_gaps - 1))  # rounding apart, already so
    beside = _cuts_beside(heavy, masses, mass_up_to, n_cuts)
    within = _cuts_within_runs(~heavy, masses, n_cuts - len(beside))
    return np.unique(np.concatenate([beside, within]))


def _cuts_beside(
    heavy: NDArray[np.bool_],
    masses: NDArray[np.float64],
    mass_up_to: NDArray[np.float64],
    n_cuts: int,
) -> NDArray[np.intp]:
    """Cuts on both sides of every heavy tie, or the best of them when they are too many.

    Every heavy tie gets one, on the side that splits the mass more evenly, before any gets two.
    """
    beside = np.flatnonzero(heavy[:-1] | heavy[1:])
    if len(beside) <= n_cuts:
        return beside
    balance = np.minimum(mass_up_to, mass_up_to[-1] - mass_up_to)
    chosen: set[int] = set()
    ties = np.flatnonzero(heavy)
    for tie in ties[np.argsort(-masses[ties], kind="stable")].tolist():
        sides = [cut for cut in (tie - 1, tie) if 0 <= cut < len(masses) - 1]
        if not chosen.intersection(sides):
            chosen.add(max(sides, key=lambda cut: balance[cut]))
    others = [cut for cut in beside.tolist() if cut not in chosen]
    others.sort(key=lambda cut: -balance[cut])
    return np.array([*chosen, *others[: n_cuts - len(chosen)]], dtype=np.intp)


def _cuts_within_runs(
    light: NDArray[np.bool_], masses: NDArray[np.float64], n_cuts: int
) -> NDArray[np.intp]:
    """Share ``n_cuts`` among the runs of light values: always to the run of the widest step."""
    edges = np.flatnonzero(np.diff(light, prepend=False, append=False))
    starts, stops = edges[::2], edges[1::2]
    run_mass = np.array([masses[a:b].sum() for a, b in zip(starts, stops, strict=True)])
    most = stops - starts - 1
    shares = np.zeros(len(starts), dtype=np.intp)
    for _ in range(min(n_cuts, int(most.sum()))):
        shares[np.argmax(np.where(shares < most, run_mass / (shares + 1), -1.0))] += 1
    cuts = [
        start + choose_cuts(masses[start:stop], share)
        for start, stop, share in zip(starts.tolist(), stops.tolist(), shares.tolist(), strict=True)
        if share
    ]
    return np.concatenate(cuts) if cuts else np.empty(0, dtype=np.intp)


# -------------------------------------------------------------------------------- short decimals

# 40 digits hold sums and quotients of any two neighbouring floats; not the caller's context.
_CONTEXT = Context(prec=40, rounding=ROUND_HALF_DOWN)


def threshold_between(lower: float, upper: float, *, at_lower: bool = False) -> float:
    """A decimal t with few digits and ``lower <= t < upper``, near the middle.

    Of the decimals in the middle half of the gap, those with the fewest digits, and of these
    the nearest to the middle; but ``lower`` itself where this would need a finer decimal place
    than ``lower`` and ``upper`` have, as between neighbouring whole numbers.  ``repr`` of the
    result is exact, so a printed threshold selects the rows that the number does.

    Parameters
    ----------
    lower, upper : float
        Neighbouring distinct values, ``lower < upper``.
    at_lower : bool
        ``lower`` is a value of its own importance, such as the zero of a column of amounts:
        take it when it is no longer to write.

    Examples
    --------
    >>> threshold_between(49.0, 52.0), threshold_between(0.4471, 0.4483)
    (50.0, 0.448)
    >>> threshold_between(3.0, 4.0), threshold_between(2.5, 2.6), threshold_between(2.5, 4.0)
    (3.0, 2.5, 3.0)
    >>> threshold_between(0.0, 114.0), threshold_between(0.0, 114.0, at_lower=True)
    (60.0, 0.0)
    """
    with localcontext(_CONTEXT):
        low, high = Decimal(repr(lower)), Decimal(repr(upper))
        quarter = (high - low) / 4
        middle = low + 2 * quarter
        coarsest = max(abs(low), abs(high)).adjusted() + 1
        for exponent in range(coarsest, min(_last_place(low), _last_place(high)) - 1, -1):
            unit = Decimal((0, (1,), exponent))
            candidate = (middle / unit).to_integral_value() * unit
            if low + quarter <= candidate <= high - quarter and lower <= float(candidate) < upper:
                if at_lower and _n_digits(low) <= _n_digits(candidate):
                    return lower
                return float(candidate) + 0.0  # no -0.0
    return lower


def _last_place(number: Decimal) -> int:
    """Exponent of the last decimal place that a number needs, 0 for a whole number."""
    exponent = number.normalize().as_tuple().exponent
    return min(int(exponent), 0)


def _n_digits(number: Decimal) -> int:
    """Significant digits; none for zero."""
    return len(number.normalize().as_tuple().digits) if number else 0
