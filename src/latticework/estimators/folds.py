"""Folds for cross-validation: which rows are learnt from, and which are scored."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, check_cv

from latticework.rules.statistics import BINARY, MULTICLASS, REGRESSION

if TYPE_CHECKING:
    from numpy.random import RandomState
    from numpy.typing import NDArray

    from latticework.estimators.targets import Targets

Folds = list[tuple["NDArray[np.intp]", "NDArray[np.intp]"]]

N_FOLDS = 5
# Scores of few rows are noisy: folds are drawn again until about so many rows have been scored.
_ROWS_SCORED = 1000
_MOST_REPEATS = 5


def make_folds(cv: Any, targets: Targets, weight: NDArray, seed: int | RandomState | None) -> Folds:
    """Rows to learn from and rows to score, for each fold.

    Parameters
    ----------
    cv : None, int, splitter or iterable of pairs
        None: five folds, drawn up to five times where there are few rows.  Folds that are drawn
        here are shuffled and stratified by class.
    targets : Targets
    weight : ndarray of shape (n,)
        Rows of weight zero are neither learnt from nor scored.
    seed : int, RandomState or None
        None is 0: the same data give the same folds.

    Raises
    ------
    ValueError
        When a fold would have to learn without one of the classes.
    """
    strata = _strata(targets)
    rows = np.flatnonzero(weight > 0.0)
    if cv is None or isinstance(cv, Integral):
        n_folds = None if cv is None else int(cv)
        folds = _drawn(n_folds, strata, rows, 0 if seed is None else seed)
    else:
        folds = _given(cv, targets, strata, rows)
    for k, (train, test) in enumerate(folds):
        _check(k, train, test, targets)
    return folds


def _strata(targets: Targets) -> NDArray[np.int64] | None:
    """What to stratify by: the class, or the task and the class where rows have one label."""
    if targets.output in (BINARY, MULTICLASS):
        return targets.plain.astype(np.int64)
    if targets.output == REGRESSION or (targets.known.sum(axis=1) != 1).any():
        return None
    positive = (targets.values > 0).any(axis=1, where=targets.known)
    return 2 * targets.known.argmax(axis=1) + positive


def _drawn(cv: int | None, strata: NDArray | None, rows: NDArray, seed: int | RandomState) -> Folds:
    n_folds = N_FOLDS if cv is None else int(cv)
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds, got {n_folds}.")
    alone = np.empty(0, dtype=np.intp)
    if strata is not None:
        # A class must be learnt from in every fold: rows that are alone in it are never scored.
        count = np.bincount(strata[rows])[strata[rows]]
        alone, rows = rows[count < 2], rows[count >= 2]
        largest = int(count.max(initial=0))
        n_folds = min(n_folds, largest) if cv is None else n_folds
    if cv is None:
        n_folds = min(n_folds, len(rows))
    if len(rows) < max(2, n_folds) or n_folds < 2:
        raise ValueError(
            f"n_samples={len(rows)} is too few for {max(2, n_folds)} folds (rows of weight 0 and "
            "those that are alone in their class are not counted): give more rows, fewer "
            "folds, or use the estimator without CV and give alpha."
        )
    repeats = 1 if cv is not None else int(np.clip(_ROWS_SCORED // len(rows), 1, _MOST_REPEATS))
    if strata is None:
        splitter: Any = RepeatedKFold(n_splits=n_folds, n_repeats=repeats, random_state=seed)
        splits = splitter.split(rows)
    else:
        splitter = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=repeats, random_state=seed)
        splits = splitter.split(rows, strata[rows])
    with warnings.catch_warnings():
        # Classes with fewer rows than folds are merely absent from some scores.
        warnings.filterwarnings("ignore", message="The least populated class")
        return [(np.concatenate([rows[train], alone]), rows[test]) for train, test in splits]


def _given(cv: Any, targets: Targets, strata: NDArray | None, rows: NDArray) -> Folds:
    splitter = check_cv(cv, strata, classifier=targets.output in (BINARY, MULTICLASS))
    n_rows = len(targets.values)
    used = np.zeros(n_rows, dtype=bool)
    used[rows] = True
    folds = []
    try:
        labels = targets.plain if strata is None else strata
        pairs = [(train, test) for train, test in splitter.split(np.zeros((n_rows, 1)), labels)]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cv gives no pairs (rows to learn from, rows to score) for {n_rows} rows: {error}"
        ) from error
    for k, pair in enumerate(pairs):
        train, test = (_rows(k, rows, n_rows) for rows in pair)
        folds.append((train[used[train]], test[used[test]]))
    if not folds:
        raise ValueError("cv gives no folds.")
    return folds


def _rows(k: int, rows: Any, n_rows: int) -> NDArray[np.intp]:
    """Positions of rows, from positions or a mask."""
    array = np.asarray(rows)
    if array.dtype == bool and array.shape == (n_rows,):
        return np.flatnonzero(array)
    if not array.size:
        return np.empty(0, np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu" or np.any(array >= n_rows):
        raise ValueError(
            f"fold {k} of cv must hold positions of the {n_rows} rows, or a mask of them, got "
            f"{np.array2string(array, threshold=6)}."
        )
    if np.any(array < -n_rows):
        raise ValueError(f"fold {k} of cv holds the position {array.min()}, of {n_rows} rows.")
    return array % n_rows


def _check(k: int, train: NDArray, test: NDArray, targets: Targets) -> None:
    if not len(train) or not len(test):
        raise ValueError(
            f"fold {k} of cv has no rows to {'score' if len(train) else 'learn from'}."
        )
    if targets.output == REGRESSION:
        missing = ~targets.known[train].any(axis=0)
        if missing.any():
            raise ValueError(
                f"fold {k} of cv learns without a known value of target {missing.argmax()}: give "
                "cv with fewer folds or other ones."
            )
        return
    signs = targets.values[train] > 0
    for t in range(signs.shape[1]):
        known = signs[targets.known[train, t], t]
        if not known.any() or known.all():
            if targets.output == MULTICLASS:
                what = f"without the class {(targets.classes or ())[t]!r}"
            else:
                what = "from one class only"
                if targets.output != BINARY:
                    what += f" of label {targets.outputs[t] if targets.outputs else t!r}"
            raise ValueError(
                f"fold {k} of cv learns {what}: give cv with fewer folds, or stratified ones."
            )
