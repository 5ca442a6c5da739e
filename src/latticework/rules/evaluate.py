"""Which cells satisfy a condition: the one definition that every export must reproduce.

Missing cells satisfy nothing but ``is missing``.  A level that training never saw satisfies
``!=`` only.  Numbers equal numbers of any width, strings equal strings, booleans equal booleans;
in a *boolean* column 0 and 1 are booleans too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latticework.rules.cells import BOOLEAN, Column, is_missing
from latticework.rules.conditions import (
    EQUAL,
    GREATER,
    IS_MISSING,
    IS_TRUE,
    LESS_EQUAL,
    NOT_EQUAL,
    Condition,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from latticework.rules.columns import Table

    # Rows (a slice of them) -> which of these satisfy a condition.
    RowTest = Callable[[slice], NDArray[np.bool_]]

LevelKey = tuple[str, str | float]

# Rows are taken in blocks of about this many indicators, which fit a processor's cache.
BLOCK_CELLS = 2**20


def level_key(value: Value) -> LevelKey:
    """A key that is equal for equal levels only: ``1`` is ``1.0`` but neither True nor "1".

    Examples
    --------
    >>> level_key(1) == level_key(1.0), level_key(1) == level_key(True)
    (True, False)
    """
    if isinstance(value, str):
        return "string", str(value)
    if isinstance(value, (bool, np.bool_)):
        return "boolean", bool(value)
    return "number", np.nan if value is None else value


def satisfies(value: Value, condition: Condition, kind: str | None = None) -> bool:
    """Whether one cell satisfies a condition.

    Parameters
    ----------
    value : str, int, float, bool or None
        The cell; None and NaN are missing.
    condition : Condition
        The test.
    kind : str, optional
        Kind of the column; in a "boolean" one 0 and 1 count as False and True.

    Examples
    --------
    >>> satisfies(51, Condition("age", ">", 50)), satisfies(None, Condition("age", ">", 50))
    (True, False)
    >>> satisfies("violet", Condition("colour", "!=", "red"))
    True
    """
    if is_missing(value):
        return condition.operator == IS_MISSING
    if condition.operator == IS_MISSING:
        return False
    if condition.operator == IS_TRUE:
        return not isinstance(value, str) and value == 1
    if condition.operator in (EQUAL, NOT_EQUAL):
        return _equal(value, condition.value, kind) == (condition.operator == EQUAL)
    if condition.order is not None:
        return _on_its_side_of(value, condition, condition.order)
    if isinstance(value, str) or isinstance(condition.value, str):
        return False  # strings have no order of their own
    below = value <= condition.value  # type: ignore[operator]
    return bool(below) == (condition.operator == LESS_EQUAL)


def _equal(value: Value, level: Value, kind: str | None) -> bool:
    if kind == BOOLEAN and not isinstance(value, str):
        return value == level
    return level_key(value) == level_key(level)


def _on_its_side_of(value: Value, condition: Condition, order: tuple[Value, ...]) -> bool:
    """An ordered level against ``<=`` or ``>``; levels that the order does not list fail both."""
    keys = [level_key(level) for level in order]
    if level_key(value) not in keys:
        return False
    below = keys.index(level_key(value)) <= keys.index(level_key(condition.value))
    return below == (condition.operator == LESS_EQUAL)


def row_test(condition: Condition, column: Column) -> RowTest:
    """A function from a slice of rows to the booleans that say which satisfy the condition.

    Levels are tested once each; the rows then only look the answers up.
    """
    values = column.values
    if column.levels is not None:
        answers = [satisfies(level, condition, column.kind) for level in column.levels]
        # A missing cell has code -1 and so reads the last entry.
        lookup = np.array([*answers, condition.operator == IS_MISSING], dtype=bool)
        return lambda rows: lookup[values[rows]]
    if condition.operator == IS_MISSING:
        return lambda rows: np.isnan(values[rows])
    if condition.order is not None or isinstance(condition.value, str):
        return lambda rows: _test_numbers_one_by_one(condition, values[rows])
    threshold = 1.0 if condition.operator == IS_TRUE else float(condition.value or 0)
    if condition.operator in (EQUAL, NOT_EQUAL) and isinstance(condition.value, (bool, np.bool_)):
        threshold = np.nan  # no number is a boolean
    if condition.operator == LESS_EQUAL:
        return lambda rows: values[rows] <= threshold
    if condition.operator == GREATER:
        return lambda rows: values[rows] > threshold
    if condition.operator == NOT_EQUAL:
        return lambda rows: (values[rows] != threshold) & ~np.isnan(values[rows])
    return lambda rows: values[rows] == threshold


def _test_numbers_one_by_one(condition: Condition, values: NDArray[np.float64]) -> NDArray:
    """Numbers against a condition whose levels or order are not plain numbers."""
    distinct, codes = np.unique(values, return_inverse=True)
    answers = [satisfies(number, condition) for number in distinct.tolist()]
    return np.array(answers, dtype=bool)[codes]


def evaluate_condition(condition: Condition, column: Column) -> NDArray[np.bool_]:
    """Rows of a column that satisfy a condition on it.

    Parameters
    ----------
    condition : Condition
        The test.
    column : Column
        The n cells, numeric or coded.

    Returns
    -------
    ndarray of shape (n,), bool

    Examples
    --------
    >>> import numpy as np
    >>> age = Column("age", "numeric", np.array([63.0, 50.0, np.nan]))
    >>> evaluate_condition(Condition("age", ">", 50), age)
    array([ True, False, False])
    """
    return row_test(condition, column)(slice(None))


def held_blocks(
    conjunctions: Sequence[Sequence[Condition]], table: Table
) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """Which of R conjunctions hold of which rows, a block of rows at a time.

    Each distinct condition is evaluated once per row.

    Parameters
    ----------
    conjunctions : sequence of R sequences of Condition
        Conditions that must hold together.
    table : Table
        The n rows.

    Yields
    ------
    rows : slice
        The rows of the block.
    held : ndarray of shape (rows in the block, R), bool
    """
    number: dict[Condition, int] = {}
    members = [
        [number.setdefault(c, len(number)) for c in conditions] for conditions in conjunctions
    ]
    columns = {name: table[name] for name in {condition.feature for condition in number}}
    tests = [row_test(condition, columns[condition.feature]) for condition in number]
    size = max(BLOCK_CELLS // max(len(members), len(tests), 1), 256)
    for start in range(0, table.n_rows, size):
        rows = slice(start, min(start + size, table.n_rows))
        truths = [test(rows) for test in tests]
        held = np.ones((rows.stop - start, len(members)), dtype=bool, order="F")
        for r, indices in enumerate(members):
            for index in indices:
                held[:, r] &= truths[index]
        yield rows, held
