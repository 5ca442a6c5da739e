"""Reading the columns of any table: numpy, pandas, polars, pyarrow, nested lists.

:func:`read_table` gives a :class:`Table` of typed :class:`Column` objects that no longer know
where they came from.  Frames go through narwhals, so none of their libraries is imported here.

A column is *numeric*, *categorical* (no order), *ordered* or *boolean*:

* numbers of any width, nullable or not, and decimals are numeric;
* strings, and unordered categoricals, are categorical;
* ordered pandas categoricals and ordered pyarrow dictionaries are ordered.  ``polars.Enum`` and
  ``polars.Categorical`` are categorical: polars orders them physically or lexically as a matter
  of storage, and does not record whether the order means anything;
* columns of Python objects are judged by their cells.

None, NaN and null are all missing cells, in every container.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy import sparse

from latticework.rules.cells import (
    CATEGORICAL,
    KINDS,
    NUMERIC,
    Column,
    Level,
    as_kind,
    column_of_codes,
    column_of_numbers,
    column_of_objects,
    column_of_strings,
    column_of_truths,
    infinity_message,
    is_missing,
    refuse_inexact_integers,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["KINDS", "Column", "Level", "Table", "read_table"]


@dataclass(frozen=True, slots=True)
class Table:
    """Typed columns of equal length.

    Parameters
    ----------
    columns : tuple of Column
        The m columns, in order.
    n_rows : int
        Number of rows n.
    """

    columns: tuple[Column, ...]
    n_rows: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"no column {name!r}; there are {', '.join(map(repr, self.names))}.")


def read_table(
    X: Any,
    *,
    names: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    categorical_features: Any = "from_dtype",
) -> Table:
    """Read a table of n rows and m columns from whatever holds it.

    Parameters
    ----------
    X : array-like or frame of shape (n, m)
        numpy array of numbers, booleans, strings or objects; pandas or polars DataFrame;
        pyarrow Table; list of rows.
    names : sequence of str, optional
        Names of the wanted columns, as found at fit.  Frames are searched by name, arrays are
        read by position.  By default all columns, named as in the frame or ``x0, x1, ...``.
    kinds : sequence of {"numeric", "categorical", "ordered", "boolean"}, optional
        The kind to read each of these columns as, as found at fit.  By default the container's
        types decide.  A column read as "ordered" that its container does not order comes with
        sorted levels: whoever fitted it knows the order.
    categorical_features : "from_dtype" or list of str, int or bool
        Names, positions or a mask of further columns to read as categorical, whatever their
        type.  Not used when ``kinds`` is given.

    Returns
    -------
    Table

    Raises
    ------
    ValueError, TypeError
        For tables that are empty, not two-dimensional, complex or sparse, for infinite cells,
        for dates, lists and mixtures of numbers and strings.  The message names the column.

    Examples
    --------
    >>> table = read_table([[63, "red"], [None, "blue"], [41, "red"]])
    >>> table["x0"].kind, table["x0"].values
    ('numeric', array([63., nan, 41.]))
    >>> table["x1"].levels, table["x1"].values
    (('blue', 'red'), array([1, 0, 1], dtype=int32))

    At predict time the names and kinds of the training table are given:

    >>> again = read_table([["50", "green"]], names=table.names, kinds=["numeric", "categorical"])
    Traceback (most recent call last):
    ...
    ValueError: column 'x0' was numeric when the model was fitted and now holds the string '50':
    convert the column to numbers, with missing cells where there is none.
    """
    if sparse.issparse(X):
        raise TypeError(
            "Sparse data was passed, but dense data is required here: pass X.toarray(), or use "
            "conditions='as-is' if X is a sparse matrix of zeros and ones."
        )
    frame = _as_frame(X)
    table = _read_array(X, names) if frame is None else _read_frame(frame, names)
    if kinds is None:
        chosen = categorical_columns(categorical_features, table.names)
        kinds = [CATEGORICAL if c.name in chosen else c.kind for c in table.columns]
    elif len(kinds) != len(table.columns):
        raise ValueError(f"{len(kinds)} kinds were given for {len(table.columns)} columns.")
    columns = map(as_kind, table.columns, kinds)
    return Table(tuple(columns), table.n_rows)


def categorical_columns(categorical_features: Any, names: Sequence[str]) -> set[str]:
    """Names of the columns that ``categorical_features`` asks for.

    Examples
    --------
    >>> sorted(categorical_columns([True, False, True], ["a", "b", "c"]))
    ['a', 'c']
    """
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        return set()
    wanted = np.asarray(categorical_features, dtype=object)
    if wanted.ndim != 1:
        raise ValueError(
            "categorical_features must be 'from_dtype' or a list of column names, positions or "
            f"booleans, got {categorical_features!r}."
        )
    entries = wanted.tolist()
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != len(names):
            raise ValueError(
                f"categorical_features is a mask of {len(entries)} columns, X has {len(names)}."
            )
        return {name for name, chosen in zip(names, entries, strict=True) if chosen}
    return {column_name(entry, names, "categorical_features") for entry in entries}


def column_name(key: Any, names: Sequence[str], parameter: str) -> str:
    """The column that a name or position means, for the parameter that mentions it."""
    if isinstance(key, str) and key in names:
        return key
    is_position = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
    if is_position and -len(names) <= key < len(names):
        return names[key]
    raise ValueError(
        f"{parameter} mentions the column {key!r}; X has {len(names)} columns: {_listed(names)}."
    )


def _listed(names: Sequence[str], at_most: int = 10) -> str:
    shown = ", ".join(map(repr, names[:at_most]))
    return shown if len(names) <= at_most else f"{shown} and {len(names) - at_most} more"


# -------------------------------------------------------------------------------------- frames


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """The narwhals frame around X, or None when X is no frame."""
    try:
        found = nw.from_native(X, pass_through=True)
        if isinstance(found, nw.DataFrame):
            _refuse_repeated_names(found.columns)
    except DuplicateError:
        _refuse_repeated_names([*map(str, getattr(X, "column_names", X.columns))])
        raise
    if isinstance(found, nw.LazyFrame):
        raise TypeError(
            f"X is a lazy frame ({type(X).__module__}): collect it into memory first, with "
            "X.collect() or X.compute()."
        )
    return found if isinstance(found, nw.DataFrame) else None


def _refuse_repeated_names(names: Sequence[str]) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(
            f"column names must be unique; rename the columns that share the names {repeated!r}."
        )


def _read_frame(frame: nw.DataFrame[Any], names: Sequence[str] | None) -> Table:
    _refuse_empty(frame.shape)
    present = frame.columns
    labelled = all(isinstance(name, str) for name in present)
    known = default_names(len(present)) if not labelled else list(present)
    if names is None:
        wanted = known
    elif list(names) == default_names(len(names)) and not set(names) & set(known):
        wanted = known  # fitted without names: columns count by position
        _refuse_other_width(len(known), len(names))
    else:
        wanted = list(names)
    # By position: narwhals would take the whole-number names of a pandas frame for rows.
    found: dict[str, Any] = dict(zip(known, frame.iter_columns(), strict=True))
    absent = [name for name in wanted if name not in found]
    if absent:
        raise ValueError(
            f"X lacks the columns {_listed(absent)} that the model was fitted with; it has "
            f"{_listed(known)}."
        )
    columns = tuple(
        _read_series(given, found[name])
        for name, given in zip(wanted, wanted if names is None else names, strict=True)
    )
    return Table(columns, frame.shape[0])


def _read_series(name: str, series: nw.Series[Any]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        if dtype in (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128) and len(series):
            smallest, largest = series.min(), series.max()
            if not is_missing(smallest):  # as they are when every cell is
                refuse_inexact_integers(name, int(smallest), int(largest))
        return column_of_numbers(name, series.cast(nw.Float64).to_numpy())
    if dtype == nw.Boolean:
        missing = series.is_null().to_numpy()
        return column_of_truths(name, series.fill_null(False).to_numpy(), missing)
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)):
        return _read_levels(name, series)
    if dtype in (nw.Object, nw.Unknown):
        return _read_cells(name, series.to_numpy())
    raise TypeError(
        f"column {name!r} holds {dtype}, which no condition can test: convert it to numbers, "
        "strings or booleans (a date to days since a reference, say), or drop it."
    )


def _read_levels(name: str, series: nw.Series[Any]) -> Column:
    """A column of strings or categories, through the codes of its library where it has them."""
    if series.implementation.is_polars():  # no stable way to its codes
        return column_of_strings(name, series.to_list())
    if series.dtype == nw.String:
        if series.implementation.is_pandas_like() and series.to_native().dtype == object:
            return column_of_objects(name, series.to_numpy())  # narwhals did no more than guess
        series = series.cast(nw.Categorical())
    native = series.to_native()
    if series.implementation.is_pyarrow():
        coded = native.unify_dictionaries().combine_chunks()
        codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        codes[series.is_null().to_numpy()] = -1  # the indices may be unsigned
        categories, ordered = coded.dictionary.to_pylist(), coded.type.ordered
    else:  # pandas and its relatives
        codes, categories = native.cat.codes.to_numpy(), native.cat.categories.tolist()
        ordered = native.cat.ordered
    return column_of_codes(name, codes, categories, ordered=bool(ordered))


# -------------------------------------------------------------------------------------- arrays


def default_names(n_columns: int) -> list[str]:
    """``x0, x1, ...``: what scikit-learn calls columns without names."""
    return [f"x{j}" for j in range(n_columns)]


def as_tabular(X: Any) -> Any:
    """X itself when it is a frame, a Table or sparse; else X as a two-dimensional numpy array.

    Examples
    --------
    >>> as_tabular([[1, "a"], [None, "b"]])
    array([[1, 'a'],
           [None, 'b']], dtype=object)
    """
    if sparse.issparse(X):
        _refuse_other_shapes(X)
        return X
    return X if isinstance(X, Table) or _as_frame(X) is not None else _as_array(X)


def _as_array(X: Any) -> NDArray[Any]:
    refuse_masked(X, "X")
    # For rows in lists, numpy's one type for all would make strings of [[1, "a"]] and numbers of
    # [[1, True]].
    array = np.asarray(X, dtype=object if isinstance(X, (list, tuple)) else None)
    if array.ndim == 0:
        raise ValueError(
            f"Expected 2D array, got scalar array instead: X is {_article(type(X).__name__)}. Give "
            "a frame, an array or a list of rows; a dict of columns as pandas.DataFrame(X)."
        )
    if array.ndim == 1 and array.dtype == object:
        lengths = {len(row) for row in array if isinstance(row, (list, tuple, np.ndarray))}
        if len(lengths) > 1:
            raise ValueError(
                f"X has rows of {min(lengths)} and of {max(lengths)} cells: give every row the "
                "same number of cells, None where one is missing."
            )
    _refuse_other_shapes(array)
    return array


def _article(noun: str) -> str:
    return "None" if noun == "NoneType" else f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def refuse_masked(values: Any, name: str) -> None:
    """Refuse numpy's masked arrays, whose mask every conversion forgets."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, and its mask would be lost: pass "
            f"{name}.astype(float).filled(numpy.nan), in which masked cells are missing ones."
        )


def _read_array(X: Any, names: Sequence[str] | None) -> Table:
    array = _as_array(X)
    if names is None:
        names = default_names(array.shape[1])
    _refuse_other_width(array.shape[1], len(names))
    if array.dtype.kind in "iuf":
        return _read_matrix(array, names)
    columns = tuple(_read_cells(name, array[:, j]) for j, name in enumerate(names))
    return Table(columns, len(array))


def _read_matrix(array: NDArray[Any], names: Sequence[str]) -> Table:
    """A plain numeric matrix: one pass over all cells, columns are views."""
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        for name, smallest, largest in zip(
            names, array.min(axis=0).tolist(), array.max(axis=0).tolist(), strict=True
        ):
            refuse_inexact_integers(name, smallest, largest)
    values = np.asarray(array, dtype=np.float64)
    infinite = np.isinf(values)
    if infinite.any():
        raise ValueError(infinity_message(names[int(infinite.any(axis=0).argmax())]))
    columns = tuple(Column(name, NUMERIC, values[:, j]) for j, name in enumerate(names))
    return Table(columns, len(values))


def _read_cells(name: str, cells: NDArray[Any]) -> Column:
    """One column that is a numpy array of any type."""
    kind = cells.dtype.kind
    if kind in "iuf":
        return column_of_numbers(name, cells)
    if kind == "b":
        return column_of_truths(name, cells, None)
    if kind in "OUT":
        return column_of_objects(name, cells.astype(object, copy=False))
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: column {name!r} holds complex numbers; use their real "
            "and imaginary parts."
        )
    raise TypeError(
        f"column {name!r} holds {cells.dtype}, which no condition can test: convert it to "
        "numbers, strings or booleans (a date to days since a reference, bytes to text), or "
        "drop it."
    )


# ---------------------------------------------------------------------------------- the shapes


def _refuse_other_shapes(array: Any) -> None:
    if array.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got 1D array instead:\narray={array}.\nReshape your data "
            "either using array.reshape(-1, 1) if your data has a single feature or "
            "array.reshape(1, -1) if it contains a single sample."
        )
    if array.ndim > 2:
        raise ValueError(f"Found array with dim {array.ndim}; a table has 2: rows and columns.")
    _refuse_empty(array.shape)


def _refuse_empty(shape: tuple[int, ...]) -> None:
    for axis, unit in ((0, "sample"), (1, "feature")):
        if shape[axis] == 0:
            raise ValueError(
                f"Found array with 0 {unit}(s) (shape={tuple(shape)}) while a minimum of 1 is "
                "required."
            )


def _refuse_other_width(found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(
            f"X has {found} features, but the model is expecting {expected} features as input."
        )
