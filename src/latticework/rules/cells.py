"""Cells of one column, whatever holds them, as numbers or as codes of levels.

Everything here turns the values of a single column into a :class:`Column`; which columns there
are, and in which container, is the business of :mod:`latticework.rules.columns`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from numbers import Integral, Number, Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

NUMERIC, CATEGORICAL, ORDERED, BOOLEAN = "numeric", "categorical", "ordered", "boolean"
KINDS = (NUMERIC, CATEGORICAL, ORDERED, BOOLEAN)

Level = str | int | float | bool

# Beyond this, neighbouring integers share one 64-bit float.
LARGEST_EXACT_INTEGER = 2**53


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, read once and typed.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"numeric", "categorical", "ordered", "boolean"}
        What the cells are.
    values : ndarray of shape (n,)
        Numeric columns: float64, NaN for a missing cell.  All others: int32 positions in
        ``levels``, -1 for a missing cell.
    levels : tuple of str, int, float or bool, or None
        The distinct values; lowest first in an ordered column, sorted in the others.  None in a
        numeric column.  Ordered and boolean columns list every level they could hold,
        categorical ones only those that occur.

    Examples
    --------
    >>> import numpy as np
    >>> Column("colour", "categorical", np.array([1, -1, 0], dtype=np.int32), ("blue", "red"))
    Column(name='colour', kind='categorical', values=array([ 1, -1,  0], dtype=int32),
        levels=('blue', 'red'))
    """

    name: str
    kind: str
    values: NDArray[Any]
    levels: tuple[Level, ...] | None = None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Cells that are missing, boolean of shape (n,)."""
        return np.isnan(self.values) if self.levels is None else self.values < 0


def as_kind(column: Column, kind: str) -> Column:
    """The same cells read as another kind of column.

    Numbers become levels exactly; levels become numbers only when they are numbers.

    Examples
    --------
    >>> import numpy as np
    >>> as_kind(Column("size", "numeric", np.array([2.0, np.nan, 1.5])), "categorical").levels
    (1.5, 2)
    """
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} of column {column.name!r} is not one of {KINDS}.")
    if column.kind == kind:
        return column
    if column.levels is None:
        return _numbers_as_levels(column, kind)
    if kind == NUMERIC:
        return _levels_as_numbers(column)
    if kind == CATEGORICAL:
        return column_of_codes(column.name, column.values, column.levels)
    if kind == BOOLEAN:
        _refuse_other_truths(column.name, column.levels)
    return Column(column.name, kind, column.values, column.levels)


def column_of_numbers(name: str, numbers: NDArray[Any]) -> Column:
    """A numeric column; raises ValueError on an infinite cell or an inexact integer."""
    if numbers.dtype.kind in "iu" and numbers.dtype.itemsize == 8 and numbers.size:
        refuse_inexact_integers(name, int(numbers.min()), int(numbers.max()))
    values = np.asarray(numbers, dtype=np.float64)
    if np.isinf(values).any():
        raise ValueError(infinity_message(name))
    return Column(name, NUMERIC, values)


def column_of_truths(name: str, truths: NDArray[Any], missing: NDArray[np.bool_] | None) -> Column:
    """A boolean column from truth values and a mask of the missing cells."""
    codes = truths.astype(np.int32)
    if missing is not None:
        codes[missing] = -1
    return Column(name, BOOLEAN, codes, (False, True))


def column_of_codes(
    name: str, codes: NDArray[Any], categories: Iterable[Any], *, ordered: bool = False
) -> Column:
    """A column that came as integer codes of declared categories, negative where missing.

    Unordered categories are sorted and those that do not occur are dropped, so that a table has
    the same codes whichever library holds it; ordered ones are kept as declared.

    Examples
    --------
    >>> import numpy as np
    >>> column_of_codes("size", np.array([2, 0, -1]), ["S", "M", "L"]).levels
    ('L', 'S')
    >>> column_of_codes("size", np.array([2, 0, -1]), ["S", "M", "L"], ordered=True).levels
    ('S', 'M', 'L')
    """
    categories = list(categories)
    occurs = np.zeros(len(categories) + 1, dtype=bool)
    occurs[codes] = True  # -1 marks the extra entry at the end
    levels = {
        position: level_of(name, category)
        for position, category in enumerate(categories)
        if (ordered or occurs[position]) and not is_missing(category)
    }
    refuse_mixed_levels(name, levels.values())
    kept = list(levels.values()) if ordered else sorted(levels.values(), key=_sorting_key)
    rank = {level: i for i, level in enumerate(kept)}
    renumbered = np.full(len(categories) + 1, -1, dtype=np.int32)
    for position, level in levels.items():
        renumbered[position] = rank[level]
    return Column(name, ORDERED if ordered else CATEGORICAL, renumbered[codes], tuple(kept))


def column_of_objects(name: str, objects: NDArray[Any]) -> Column:
    """A column of Python objects, typed by what the cells are.

    All numbers: numeric.  All booleans: boolean.  Strings, alone or with booleans: categorical.
    None, NaN and pandas' NA are missing;
    a column of nothing else is numeric.

    Examples
    --------
    >>> import numpy as np
    >>> column_of_objects("answer", np.array(["yes", None, "no"], dtype=object)).values
    array([ 1, -1,  0], dtype=int32)
    >>> column_of_objects("count", np.array([1, None, 2.5], dtype=object)).values
    array([1. , nan, 2.5])
    """
    cells = objects.tolist()
    types = set(map(type, cells))
    _refuse_foreign_types(name, types, cells)
    if str in types and types <= {str, type(None)}:
        return column_of_strings(name, cells)
    if types <= {float, int, type(None)}:
        return _column_of_floats_and_integers(name, cells)
    # The types of the cells that are there: NaN is a float, yet says nothing of the column.
    found = {_family(cell) for cell in cells if not is_missing(cell)}
    if found <= {"number"}:
        plain = [None if is_missing(cell) else _plain_number(cell) for cell in cells]
        return _column_of_floats_and_integers(name, plain)
    if found == {"boolean"}:
        missing = np.fromiter(map(is_missing, cells), dtype=bool, count=len(cells))
        return column_of_truths(name, np.where(missing, False, objects), missing)
    _refuse_mixed_families(name, found)
    return column_of_strings(name, cells)


def _column_of_floats_and_integers(name: str, cells: list[float | int | None]) -> Column:
    values = np.array(cells, dtype=np.float64)  # None becomes NaN
    if np.any(np.abs(values) >= LARGEST_EXACT_INTEGER):
        integers = [cell for cell in cells if isinstance(cell, int)]
        refuse_inexact_integers(name, min(integers, default=0), max(integers, default=0))
    return column_of_numbers(name, values)


def _plain_number(number: Any) -> float | int:
    return int(number) if isinstance(number, Integral) else float(number)


def column_of_strings(name: str, cells: Sequence[Any]) -> Column:
    """A categorical column of strings and booleans (which never equal a string)."""
    levels = sorted(
        {level_of(name, cell) for cell in set(cells) if not is_missing(cell)}, key=_sorting_key
    )
    # dict.get mapped over the cells runs without a Python frame per cell.
    position = {level: i for i, level in enumerate(levels)}
    codes = np.fromiter(map(position.get, cells, repeat(-1)), dtype=np.int32, count=len(cells))
    return Column(name, CATEGORICAL, codes, tuple(levels))


def _numbers_as_levels(column: Column, kind: str) -> Column:
    present = ~column.missing
    distinct, codes = np.unique(column.values[present], return_inverse=True)
    values = np.full(len(column.values), -1, dtype=np.int32)
    values[present] = codes
    levels = tuple(level_of(column.name, number) for number in distinct.tolist())
    if kind == BOOLEAN:
        _refuse_other_truths(column.name, levels)
    return Column(column.name, kind, values, levels)


def _refuse_other_truths(name: str, levels: Iterable[Level]) -> None:
    for level in levels:
        if isinstance(level, str) or level not in (0, 1):
            raise ValueError(
                f"column {name!r} was boolean when the model was fitted and now holds {level!r}: "
                "convert it to true and false (or 1 and 0), with missing cells where unknown."
            )


def _levels_as_numbers(column: Column) -> Column:
    assert column.levels is not None
    for level in column.levels:
        if isinstance(level, str):
            raise ValueError(
                f"column {column.name!r} was numeric when the model was fitted and now holds the "
                f"string {level!r}: convert the column to numbers, with missing cells where "
                "there is none."
            )
    lookup = np.array([*map(float, column.levels), np.nan])
    return Column(column.name, NUMERIC, lookup[column.values])


def level_of(name: str, value: Any) -> Level:
    """A level as a plain Python scalar: whole floats become integers, numpy types vanish."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, (Real, Decimal)):
        number = float(value)
        if np.isinf(number):
            raise ValueError(infinity_message(name))
        return int(number) if number.is_integer() else number
    raise TypeError(
        f"column {name!r} has a category {value!r} of type {type(value).__name__}: categories "
        "must be strings, numbers or booleans; convert them to strings first."
    )


def is_missing(value: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA (told by name: pandas is not imported)."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, (float, Decimal, np.floating)) and bool(value != value)


def infinity_message(name: str) -> str:
    """The error for an infinite cell."""
    return (
        f"Input X contains infinity or a value too large for dtype('float64') in column {name!r}: "
        "replace such cells by missing ones or by a finite bound."
    )


def refuse_inexact_integers(name: str, smallest: int, largest: int) -> None:
    """Raise ValueError when 64-bit floats cannot tell the integers of a column apart."""
    if max(-smallest, largest) > LARGEST_EXACT_INTEGER:
        raise ValueError(
            f"column {name!r} holds integers beyond 2**53, which 64-bit floats cannot tell "
            "apart: scale them down, or convert them to strings if they are identifiers."
        )


def refuse_mixed_levels(name: str, levels: Iterable[Level]) -> None:
    """Raise ValueError when strings and numbers, or numbers and booleans, share a column."""
    _refuse_mixed_families(name, {_family(level) for level in levels})


def _refuse_mixed_families(name: str, families: set[str]) -> None:
    if "number" in families and len(families) > 1:
        other = "strings" if "string" in families else "booleans"
        raise ValueError(
            f"column {name!r} mixes numbers and {other}: convert it to numbers throughout, or to "
            "strings throughout to treat it as categorical."
        )


def _refuse_foreign_types(name: str, types: set[type], cells: Sequence[Any]) -> None:
    """Raise TypeError for cells that are neither numbers, strings nor booleans."""
    for cell_type in types:
        if issubclass(cell_type, (str, np.bool_, Decimal, type(None))):
            continue
        if issubclass(cell_type, Real) or cell_type.__name__ in {"NAType", "NaTType"}:
            continue
        if issubclass(cell_type, Number):
            raise ValueError(
                f"Complex data not supported: column {name!r} holds "
                f"{cell_type.__name__} numbers; use their real and imaginary parts."
            )
        example = next(cell for cell in cells if type(cell) is cell_type)
        raise TypeError(
            f"column {name!r} holds {example!r} of type {cell_type.__name__}, but an argument "
            "must be a string or a real number (or a boolean, or missing): convert dates, lists "
            "and other objects to one of these, or drop the column."
        )


def _family(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    return "boolean" if isinstance(value, (bool, np.bool_)) else "number"


def _sorting_key(level: Level) -> tuple[bool, Any]:
    """Booleans and numbers by value, before strings in alphabetical order."""
    return isinstance(level, str), level
