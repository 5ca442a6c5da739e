"""What each rule does on the training rows: support, count, precision or mean, lift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

BINARY, MULTICLASS, MULTILABEL, REGRESSION = "binary", "multiclass", "multilabel", "regression"
OUTPUTS = (BINARY, MULTICLASS, MULTILABEL, REGRESSION)

# Rows are taken in blocks: indicators become numbers of eight bytes before they are multiplied.
BLOCK_ROWS = 2**16


@dataclass(frozen=True)
class RuleStatistics:
    """Statistics of R rules; NaN where a rule covers no row with a known label.

    Parameters
    ----------
    support : ndarray of shape (R,)
        Weighted fraction of the rows where each rule holds.
    count : ndarray of shape (R,), int64
        Number of these rows, unweighted.
    precision : ndarray of shape (R,) or None
        Classification: weighted fraction of these rows for which the rule's vote is right.
    mean : ndarray of shape (R,) or None
        Regression: weighted mean of the target over these rows.
    lift : ndarray of shape (R,)
        Classification: precision divided by its value over all rows.  Regression: mean minus its
        value over all rows.
    """

    support: NDArray[np.float64]
    count: NDArray[np.int64]
    precision: NDArray[np.float64] | None
    mean: NDArray[np.float64] | None
    lift: NDArray[np.float64]

    def of_rule(self, r: int) -> dict[str, Any]:
        """The statistics of one rule, as :class:`Rule` takes them."""
        return {
            "support": float(self.support[r]),
            "count": int(self.count[r]),
            "precision": None if self.precision is None else float(self.precision[r]),
            "mean": None if self.mean is None else float(self.mean[r]),
            "lift": float(self.lift[r]),
        }


def votes(weights: NDArray[np.float64], output: str) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """What each rule votes on, and whether it votes for or against it.

    Parameters
    ----------
    weights : ndarray of shape (R, T)
        Weights of the rules.
    output : {"binary", "multiclass", "multilabel", "regression"}
        What the T scores are.

    Returns
    -------
    chosen : ndarray of shape (R,)
        Index of an output: the class with the largest weight when that is positive, otherwise
        the one with the most negative; with labels or targets, that of the largest absolute
        weight.
    in_favour : ndarray of shape (R,), bool
        Whether the weight of the chosen output is positive.

    Examples
    --------
    >>> import numpy as np
    >>> votes(np.array([[0.2, 1.0, -3.0], [0.0, -1.0, 0.0]]), "multiclass")
    (array([1, 1]), array([ True, False]))
    """
    if output == MULTICLASS:
        in_favour = weights.max(axis=1, initial=-np.inf) > 0
        chosen = np.where(in_favour, weights.argmax(axis=1), weights.argmin(axis=1))
    else:
        chosen = np.abs(weights).argmax(axis=1)
        in_favour = np.take_along_axis(weights, chosen[:, None], axis=1)[:, 0] > 0
    return chosen, in_favour


def rule_statistics(
    indicators: NDArray[np.bool_],
    y: ArrayLike,
    weights: NDArray[np.float64],
    output: str,
    sample_weight: ArrayLike | None = None,
    row_count: ArrayLike | None = None,
) -> RuleStatistics:
    """Support, count, precision or mean, and lift of R rules on n rows.

    Parameters
    ----------
    indicators : ndarray of shape (n, R), bool
        Which rules hold on which rows.
    y : array-like of shape (n,) or (n, T)
        Binary: 0 and 1, the second class being 1.  Multiclass: class codes 0 .. T-1.
        Multilabel: 0 and 1 of shape (n, T).  Regression: the targets.  NaN (and the code -1 of
        a class) is an unknown label: such rows count for the support only.
    weights : ndarray of shape (R,) or (R, T)
        Weights of the rules: they say what each rule votes for.
    output : {"binary", "multiclass", "multilabel", "regression"}
        What the T scores are.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; 1 by default.
    row_count : array-like of shape (n,), optional
        How many rows each of them stands for; 1 by default.

    Returns
    -------
    RuleStatistics

    Examples
    --------
    >>> import numpy as np
    >>> holds = np.array([[True], [True], [False], [False]])
    >>> found = rule_statistics(holds, [1, 1, 1, 0], np.array([0.7]), "binary")
    >>> found.support, found.precision, found.lift.round(3)
    (array([0.5]), array([1.]), array([1.333]))
    """
    if output not in OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, got {output!r}.")
    indicators = np.asarray(indicators)
    weights = np.asarray(weights, dtype=np.float64)
    weights = weights[:, None] if weights.ndim == 1 else weights
    row_weights = _row_weights(sample_weight, len(indicators))
    values = _values(y, weights.shape[1], output)
    known = ~np.isnan(values)
    masses = row_weights[:, None] * known
    sums = masses * np.where(known, values, 0.0)
    covered = _column_sums(indicators, np.column_stack([row_weights, masses, sums]))
    support, masses_covered, sums_covered = np.split(covered, [1, 1 + values.shape[1]], axis=1)

    chosen, in_favour = votes(weights, output)
    rules = np.arange(len(chosen))
    with np.errstate(invalid="ignore", divide="ignore"):
        local = sums_covered[rules, chosen] / masses_covered[rules, chosen]
        overall = (sums.sum(axis=0) / masses.sum(axis=0))[chosen]
        if output != REGRESSION:
            local = np.where(in_favour, local, 1.0 - local)
            overall = np.where(in_favour, overall, 1.0 - overall)
        lift = local - overall if output == REGRESSION else local / overall
    return RuleStatistics(
        support=support[:, 0] / row_weights.sum(),
        count=_counts(indicators, row_count),
        precision=None if output == REGRESSION else local,
        mean=local if output == REGRESSION else None,
        lift=np.where(np.isfinite(lift), lift, np.nan),
    )


def _counts(indicators: NDArray[np.bool_], row_count: ArrayLike | None) -> NDArray[np.int64]:
    if row_count is None:
        return np.count_nonzero(indicators, axis=0).astype(np.int64)
    return np.array([np.sum(row_count, where=held) for held in indicators.T], dtype=np.int64)


def _row_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    if sample_weight is None:
        return np.ones(n_rows)
    return np.asarray(sample_weight, dtype=np.float64)


def _values(y: ArrayLike, n_outputs: int, output: str) -> NDArray[np.float64]:
    """Labels as a matrix (n, T): class memberships or targets, NaN where unknown."""
    if output != MULTICLASS:
        values = np.asarray(y, dtype=np.float64)
        return values.reshape(len(values), -1)
    codes = np.asarray(y, dtype=np.float64)
    memberships = (codes[:, None] == np.arange(n_outputs)).astype(np.float64)
    memberships[~(codes >= 0)] = np.nan
    return memberships


def _column_sums(
    indicators: NDArray[np.bool_], columns: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``indicators.T @ columns`` of shape (R, k), in blocks of rows."""
    total = np.zeros((indicators.shape[1], columns.shape[1]))
    for start in range(0, len(indicators), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        total += indicators[block].T.astype(np.float64) @ columns[block]
    return total
