"""Labels and targets of any kind as the matrices that losses read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from latticework.rules.cells import is_missing, refuse_inexact_integers
from latticework.rules.columns import refuse_masked
from latticework.rules.statistics import BINARY, MULTICLASS, MULTILABEL, REGRESSION

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Squares of larger numbers, and sums of them, would overflow.
_LARGEST_TARGET = 1e100
_INFINITE = "Input y contains infinity or a value too large for float64: remove such rows."


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

    def take(self, rows: NDArray[np.intp]) -> Targets:
        """The targets of some of the rows."""
        return replace(
            self, values=self.values[rows], known=self.known[rows], plain=self.plain[rows]
        )


def read_y(y: Any, n_rows: int | None = None) -> tuple[NDArray, tuple[str, ...] | None]:
    """y as an array (n,) or (n, T), and the names of its columns.

    Cells that a frame marks as missing become NaN.

    Raises
    ------
    ValueError
        When y is missing, has another number of rows than X, or holds what no label can be.
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if sparse.issparse(y):
        raise TypeError("Sparse data was passed as y, but dense data is required: y.toarray().")
    refuse_masked(y, "y")
    names = _column_names(y)
    array = _as_array(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = column_or_1d(array, warn=True)
        names = None
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise ValueError(
            "y must be a vector, or a matrix with a column per label or target; got an array of "
            f"shape {array.shape}."
        )
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_rows} rows and y has {len(array)}."
        )
    if np.iscomplexobj(array):
        raise ValueError("Complex data not supported in y: use the real and imaginary parts.")
    if array.dtype.kind in "mM":
        raise ValueError("y holds dates or times: convert them to numbers, or to classes.")
    if array.dtype.kind == "f" and np.isinf(array).any():
        raise ValueError(_INFINITE)
    return array, names


def _as_array(y: Any) -> NDArray[Any]:
    """y as numpy holds it, with NaN where a frame or a list has None or NA."""
    if hasattr(y, "column_names") and hasattr(y, "columns"):  # a pyarrow table
        array = np.column_stack([_as_array(column) for column in y.columns])
    else:
        from_arrow = type(y).__module__.partition(".")[0] == "pyarrow"
        options = {"zero_copy_only": False} if from_arrow else {}  # nulls and truths are copied
        array = y.to_numpy(**options) if hasattr(y, "to_numpy") else np.asarray(y)
    if array.dtype != object:
        return array
    missing = np.array([is_missing(cell) for cell in array.ravel()], dtype=bool)
    if not missing.any():
        return array
    array = array.copy()
    array[missing.reshape(array.shape)] = np.nan
    return array


def _refuse_missing(array: NDArray[Any]) -> None:
    """Refuse a label of one vector that is NaN (which alone differs from itself)."""
    missing = int(np.count_nonzero(array != array))
    if missing:
        raise ValueError(
            f"Input y contains NaN: {missing} of {len(array)} labels are missing. Drop the rows "
            "without a label; only a matrix of several labels or targets may hold NaN."
        )


def _column_names(y: Any) -> tuple[str, ...] | None:
    columns = getattr(y, "column_names", getattr(y, "columns", None))
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
    array, names = read_y(y, n_rows)
    if array.ndim == 2:
        if tasks is not None:
            raise ValueError("tasks needs y with one label per row, got a matrix.")
        return _label_matrix(array, names)
    classes, codes = _classes_of(array)
    if tasks is not None:
        task_names, task_of = _task_codes(tasks, n_rows)
        if len(task_names) > 1:
            return _separate_tasks(classes, codes, task_names, task_of)
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


def _classes_of(array: NDArray) -> tuple[NDArray, NDArray[np.intp]]:
    """The classes, in order, and the class of each row as a position among them."""
    _refuse_missing(array)
    if array.dtype == object and len({isinstance(label, str) for label in array}) > 1:
        raise ValueError(
            "Unknown label type: y mixes strings with other labels: convert y to one type."
        )
    array = _plain_labels(array)
    check_classification_targets(array)
    classes, codes = np.unique(array, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "This classifier needs samples of at least 2 classes in the data, but the data "
            f"contains only one class: {classes.tolist()[0]!r}."
        )
    return classes, codes


def _plain_labels(array: NDArray) -> NDArray:
    """Labels that are Python objects but all truths or all whole numbers, as numpy holds these."""
    if array.dtype == object:
        for kinds, dtype in (((bool, np.bool_), np.bool_), ((Integral,), np.int64)):
            if all(isinstance(label, kinds) for label in array):
                return array.astype(dtype)
    return array


def _label_matrix(array: NDArray, names: tuple[str, ...] | None) -> Targets:
    """Several labels per row: zeros and ones, NaN where unknown."""
    numbers = _as_numbers(array)
    if numbers is None:
        raise ValueError(
            "Unknown label type: y has several columns, so it must hold 0 and 1 (and NaN where a "
            "label is unknown), but some entries are not numbers."
        )
    known = ~np.isnan(numbers)
    if not np.isin(numbers[known], (0.0, 1.0)).all():
        raise ValueError(
            "Unknown label type: y has several columns, so it must hold 0 and 1 only (and NaN "
            "where a label is unknown). For several numeric targets use a regressor; for classes "
            "of several labels fit one classifier per label."
        )
    values = np.where(known & (numbers == 1.0), 1.0, -1.0)
    classes = ((0, 1),) * numbers.shape[1]
    return Targets(values, known, MULTILABEL, classes, names, False, numbers)


def _separate_tasks(
    classes: NDArray, codes: NDArray, names: tuple[str, ...], task_of: NDArray
) -> Targets:
    """Every row belongs to one task: a matrix with one known cell per row."""
    if len(classes) != 2:
        raise ValueError(f"tasks needs a y with two classes, got {len(classes)}.")
    known = task_of[:, None] == np.arange(len(names))
    for t, name in enumerate(names):
        if len(np.unique(codes[known[:, t]])) < 2:
            raise ValueError(
                f"task {name!r} has only one class among its rows: leave these rows out."
            )
    values = np.where(known & (codes[:, None] == 1), 1.0, -1.0)
    plain = np.where(known, codes[:, None].astype(float), np.nan)
    pair = (tuple(classes.tolist()),) * len(names)
    return Targets(values, known, MULTILABEL, pair, names, False, plain)


def _task_codes(tasks: ArrayLike, n_rows: int) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Names of the tasks, in order, and the task of each row as a position among them."""
    array = _as_array(tasks)
    if array.shape != (n_rows,):
        raise ValueError(
            f"tasks must name the task of each of the {n_rows} rows, got an array of shape "
            f"{array.shape}."
        )
    if np.any(array != array):
        raise ValueError("tasks has missing entries: every row needs a task.")
    if array.dtype == object:
        if len({isinstance(task, str) for task in array}) > 1:
            raise ValueError("tasks mixes strings with other names: convert it to one type.")
        array = array.astype(str)
    names, task_of = np.unique(array, return_inverse=True)
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
    array, names = read_y(y, n_rows)
    numbers = _numbers_of(array)
    if tasks is not None:
        if numbers.ndim == 2:
            raise ValueError("tasks needs y with one target per row, got a matrix.")
        names, task_of = _task_codes(tasks, n_rows)
        numbers = np.where(task_of[:, None] == np.arange(len(names)), numbers[:, None], np.nan)
        names = names if len(names) > 1 else None
    matrix = numbers.reshape(n_rows, -1)
    known = ~np.isnan(matrix)
    values = np.where(known, matrix, 0.0)
    return Targets(values, known, REGRESSION, None, names, False, matrix)


def _as_numbers(array: NDArray) -> NDArray[np.float64] | None:
    """The array as numbers; None when it holds text or other things that are none."""
    if array.dtype.kind not in "biufO":
        return None
    if array.dtype == object and any(isinstance(entry, (str, bytes)) for entry in array.flat):
        return None
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _numbers_of(array: NDArray) -> NDArray[np.float64]:
    """Targets of a regressor, with NaN only where there are several of them."""
    numbers = _as_numbers(array)
    if numbers is None:
        raise ValueError(
            "Unknown label type: y of a regressor must be numbers, but some entries are not. Use "
            "a classifier, or convert y to numbers."
        )
    if np.isinf(numbers).any():
        raise ValueError(_INFINITE)
    if array.dtype.kind in "iu" and array.size:
        refuse_inexact_integers("y", int(array.min()), int(array.max()))
    largest = float(np.abs(numbers[~np.isnan(numbers)]).max(initial=0.0))
    if largest > _LARGEST_TARGET:
        raise ValueError(
            f"y holds numbers as large as {largest:.3g}, and losses overflow beyond "
            f"{_LARGEST_TARGET:g}: divide y by a constant."
        )
    if numbers.ndim == 1:
        _refuse_missing(numbers)
    return numbers


def refuse_weightless(targets: Targets, weight: NDArray[np.float64]) -> None:
    """Refuse classes, labels and targets all of whose known cells have weight zero.

    Parameters
    ----------
    targets : Targets
    weight : ndarray of shape (n,)
    """
    counted = weight > 0.0
    if targets.output in (BINARY, MULTICLASS):
        missing = set(range(len(targets.classes or ()))) - set(targets.plain[counted].astype(int))
        if missing:
            label = (targets.classes or ())[min(missing)]
            raise ValueError(
                f"All rows of the class {label!r} have sample_weight 0, and every one of the "
                "classes must count: drop these rows, or give some of them a weight."
            )
        return
    for t in range(targets.values.shape[1]):
        values = targets.values[targets.known[:, t] & counted, t]
        name = targets.outputs[t] if targets.outputs else t
        if targets.output == REGRESSION and not len(values):
            raise ValueError(f"Target {name!r} of y has no known value in a row with weight.")
        if targets.output == MULTILABEL and len(np.unique(values)) < 2:
            raise ValueError(
                f"Label {name!r} of y has only one class among the rows with a known label and "
                "weight above 0: drop this label."
            )


def refuse_all_zero(targets: Targets) -> None:
    """Refuse counts that are all zero: the logarithm of their mean has no end."""
    for t in range(targets.values.shape[1]):
        if not targets.values[targets.known[:, t], t].any():
            which = "y" if targets.values.shape[1] == 1 else f"target {t} of y"
            raise ValueError(
                f"The poisson loss needs a target above 0, but all of {which} is 0: predict 0, or "
                "use loss='squared_error'."
            )


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
    for label, factor in class_weight.items():
        if not (isinstance(factor, Real) and 0 < float(factor) < np.inf):
            raise ValueError(
                f"class_weight must hold positive finite numbers, got {factor!r} for the class "
                f"{label!r}."
            )
    return np.array([float(class_weight.get(label, 1.0)) for label in classes])
