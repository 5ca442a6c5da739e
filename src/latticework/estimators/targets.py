"""Labels and targets of any kind as the matrices that losses read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from latticework.rules.statistics import BINARY, MULTICLASS, MULTILABEL, REGRESSION

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Targets:
    """Encoded targets.

    Parameters
    ----------
    values : ndarray of shape (n, T)
        -1 and 1; one-hot rows (softmax); or numbers.  Any valid value where unknown.
    known : ndarray of shape (n, T), bool
    output : {"binary", "multiclass", "multilabel", "regression"}
    classes : tuple or None
        As :class:`RuleEnsemble` takes them.
    outputs : tuple of str or None
        Names of the T scores, where they are known.
    joint : bool
        Whether the loss couples the columns of a row (softmax).
    plain : ndarray
        As :func:`rule_statistics` takes them.
    """

    values: NDArray[np.float64]
    known: NDArray[np.bool_]
    output: str
    classes: tuple[Any, ...] | None
    outputs: tuple[str, ...] | None
    joint: bool
    plain: NDArray[np.float64]


def read_y(y: Any, n_rows: int, *, unknown_allowed: bool) -> tuple[NDArray, tuple[str, ...] | None]:
    """y as an array (n,) or (n, T), and the names of its columns.

    Raises
    ------
    ValueError
        When y is missing, has another number of rows than X, or holds unknown labels where it
        must not.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    names = _column_names(y)
    array = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = column_or_1d(array, warn=True)
        names = None
    if array.ndim not in (1, 2):
        raise ValueError(f"y must be a vector or a matrix, got an array of shape {array.shape}.")
    if len(array) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(array)}]"
        )
    if np.iscomplexobj(array):
        raise ValueError("Complex data not supported in y.")
    if array.dtype.kind == "f":
        if np.isinf(array).any():
            raise ValueError("Input y contains infinity or a value too large.")
        if np.isnan(array).any() and not (unknown_allowed and array.ndim == 2):
            raise ValueError(
                "Input y contains NaN. Unknown labels are allowed only in a matrix of several "
                "labels or targets: drop the rows without a label."
            )
    return array, names


def _column_names(y: Any) -> tuple[str, ...] | None:
    columns = getattr(y, "columns", None)
    if columns is None:
        return None
    names = tuple(str(name) for name in columns)
    return names if len(set(names)) == len(names) else None


def class_targets(
    y: Any, n_rows: int, *, loss_name: str, multiclass: str, tasks: ArrayLike | None = None
) -> Targets:
    """Encode the labels of a classifier.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, T)
        Labels; or a matrix of zeros and ones, one column per label, NaN where unknown.
    n_rows : int
    loss_name, multiclass : str
        Parameters of the classifier.
    tasks : array-like of shape (n,), optional
        The task of each row; y holds two classes then.
    """
    array, names = read_y(y, n_rows, unknown_allowed=True)
    if array.ndim == 2:
        if tasks is not None:
            raise ValueError("tasks needs y with one label per row, got a matrix.")
        return _label_matrix(array, names)
    check_classification_targets(array)
    classes, codes = np.unique(array, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "This classifier needs samples of at least 2 classes in the data, but the data "
            f"contains only one class: {classes[0]!r}"
        )
    if tasks is not None:
        return _separate_tasks(classes, codes, tasks, n_rows)
    labels = tuple(classes.tolist())
    if len(classes) == 2:
        signs = np.where(codes == 1, 1.0, -1.0)[:, None]
        known = np.ones_like(signs, dtype=bool)
        return Targets(signs, known, BINARY, labels, None, False, codes.astype(float))
    one_hot = (codes[:, None] == np.arange(len(classes))).astype(np.float64)
    joint = multiclass == "softmax"
    if joint and loss_name != "log_loss":
        raise ValueError(
            f"loss={loss_name!r} has no softmax form, and y has {len(classes)} classes: set "
            "multiclass='one-vs-rest', or loss='log_loss'."
        )
    values = one_hot if joint else 2.0 * one_hot - 1.0
    known = np.ones_like(values, dtype=bool)
    return Targets(values, known, MULTICLASS, labels, None, joint, codes.astype(float))


def _label_matrix(array: NDArray, names: tuple[str, ...] | None) -> Targets:
    """Several labels per row: zeros and ones, NaN where unknown."""
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "y has several columns, so it must hold 0 and 1 (and NaN where a label is unknown); "
            "got entries that are not numbers."
        ) from None
    known = ~np.isnan(numbers)
    if not np.isin(numbers[known], (0.0, 1.0)).all():
        raise ValueError(
            "Unknown label type: y has several columns, so it must hold 0 and 1 only (and NaN "
            "where a label is unknown). For several numeric targets use a regressor."
        )
    for t in range(numbers.shape[1]):
        if len(np.unique(numbers[known[:, t], t])) < 2:
            name = names[t] if names else f"column {t}"
            raise ValueError(f"label {name} of y has only one class among its known cells.")
    values = np.where(known & (numbers == 1.0), 1.0, -1.0)
    classes = ((0, 1),) * numbers.shape[1]
    return Targets(values, known, MULTILABEL, classes, names, False, numbers)


def _separate_tasks(
    classes: NDArray, codes: NDArray, tasks: ArrayLike, n_rows: int
) -> Targets:
    """Every row belongs to one task: a matrix with one known cell per row."""
    if len(classes) != 2:
        raise ValueError(f"tasks needs a y with two classes, got {len(classes)}.")
    names, task_of = _task_codes(tasks, n_rows)
    known = task_of[:, None] == np.arange(len(names))
    for t, name in enumerate(names):
        if len(np.unique(codes[known[:, t]])) < 2:
            raise ValueError(f"task {name!r} has only one class.")
    values = np.where(known & (codes[:, None] == 1), 1.0, -1.0)
    plain = np.where(known, codes[:, None].astype(float), np.nan)
    pair = (tuple(classes.tolist()),) * len(names)
    return Targets(values, known, MULTILABEL, pair, names, False, plain)


def _task_codes(tasks: ArrayLike, n_rows: int) -> tuple[tuple[str, ...], NDArray]:
    names, task_of = np.unique(np.asarray(tasks), return_inverse=True)
    if len(task_of) != n_rows:
        raise ValueError(
            f"tasks must name the task of each of the {n_rows} rows, got {len(task_of)} entries."
        )
    return tuple(str(name) for name in names), task_of


def regression_targets(y: Any, n_rows: int, tasks: ArrayLike | None = None) -> Targets:
    """Encode the targets of a regressor: numbers, one or several per row.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, T)
        NaN where one of several targets is unknown.
    n_rows : int
    tasks : array-like of shape (n,), optional
        The task of each row.
    """
    array, names = read_y(y, n_rows, unknown_allowed=True)
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "Unknown label type: y of a regressor must be numbers; got entries that are not. "
            "Use a classifier, or convert y to numbers."
        ) from None
    if np.isinf(numbers).any():
        raise ValueError("Input y contains infinity or a value too large.")
    if numbers.ndim == 1 and np.isnan(numbers).any():
        raise ValueError("Input y contains NaN: drop the rows without a target.")
    if tasks is not None:
        if numbers.ndim == 2:
            raise ValueError("tasks needs y with one target per row, got a matrix.")
        names, task_of = _task_codes(tasks, n_rows)
        numbers = np.where(task_of[:, None] == np.arange(len(names)), numbers[:, None], np.nan)
    matrix = numbers.reshape(n_rows, -1)
    known = ~np.isnan(matrix)
    empty = np.flatnonzero(~known.any(axis=0))
    if len(empty):
        raise ValueError(f"target {empty[0]} of y has no known value.")
    values = np.where(known, matrix, 0.0)
    return Targets(values, known, REGRESSION, None, names, False, matrix)


def class_weights(
    targets: Targets, class_weight: dict | str | None, sample_weight: NDArray
) -> NDArray[np.float64]:
    """Factor of every cell (n, T) that ``class_weight`` asks for.

    Parameters
    ----------
    targets : Targets
    class_weight : dict, "balanced" or None
        "balanced": every class of a task has the same total weight.
    sample_weight : ndarray of shape (n,)
    """
    if class_weight is None:
        return np.ones_like(targets.values)
    if targets.output == MULTICLASS or targets.output == BINARY:
        codes = targets.plain.astype(np.int64)
        factors = _factors(class_weight, targets.classes or (), codes, sample_weight)
        return np.repeat(factors[codes][:, None], targets.values.shape[1], axis=1)
    out = np.ones_like(targets.values)
    for t in range(out.shape[1]):
        known = targets.known[:, t]
        codes = (targets.values[known, t] > 0).astype(np.int64)
        pair = (targets.classes or ())[t]
        out[known, t] = _factors(class_weight, pair, codes, sample_weight[known])[codes]
    return out


def _factors(
    class_weight: dict | str, classes: tuple[Any, ...], codes: NDArray, sample_weight: NDArray
) -> NDArray[np.float64]:
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}."
            )
        mass = np.bincount(codes, weights=sample_weight, minlength=len(classes))
        return mass.sum() / (len(classes) * np.maximum(mass, np.finfo(float).tiny))
    unknown = [label for label in class_weight if label not in classes]
    if unknown:
        raise ValueError(
            f"class_weight has the labels {unknown}, which are not among the classes "
            f"{list(classes)}."
        )
    factors = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise ValueError("class_weight must hold positive finite numbers.")
    return factors
