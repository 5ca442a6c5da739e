"""How the cells of a column become small integer codes, and conditions intervals of codes.

The code of a *cut* column (numbers between thresholds) is the number of thresholds below the
cell, so that with k counted from 1 ``x <= t_k`` is "code at most k - 1"; one more code is for
missing cells.  The code of a column with *levels* is the level's position; then come one code
for levels unseen at fit and one for missing cells.

====================  =========================  =======================  ==========
column                codes                      conditions               unseen
====================  =========================  =======================  ==========
numeric, m cuts       0..m, missing m + 1        ``<=``, ``>`` per cut    --
levels, unordered     0..L-1, unseen, missing    ``==``, ``!=`` per level ``!=`` only
levels, two           0, 1, unseen, missing      ``==`` per level         none
levels, ordered       0..L-1, unseen, missing    ``<=``, ``>`` per cut    none
====================  =========================  =======================  ==========

Missing cells satisfy ``is missing`` only, a condition of the columns where some training cells,
but not all, were missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from latticework.rules.cells import ORDERED, Column, Level
from latticework.rules.conditions import (
    EQUAL,
    GREATER,
    IS_MISSING,
    LESS_EQUAL,
    NOT_EQUAL,
    Condition,
    ConditionTable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    CodesOfRows = Callable[[slice], NDArray[np.integer[Any]]]

LARGEST_N_CODES = 2**16
# Up to here counting the thresholds below a cell by comparing is faster than by bisection.
MANY_THRESHOLDS = 32
# Rows coded at a time: all intermediate results stay in the processor's cache.
BLOCK = 8192


class CodedCondition(NamedTuple):
    """A condition and the codes of its column that satisfy it: low..high without hole."""

    condition: Condition
    low: int
    high: int
    hole: int = -1


@dataclass(frozen=True, slots=True)
class NumericCoder:
    """Codes of a numeric column: how many of its thresholds lie below the cell.

    Examples
    --------
    >>> import numpy as np
    >>> coder = NumericCoder("age", np.array([20.0, 65.0]), has_missing=True)
    >>> coder.reader(Column("age", "numeric", np.array([20.0, 21, 66, np.nan])))(slice(0, 4))
    array([0, 1, 2, 3], dtype=uint8)
    >>> print(*(coded.condition for coded in coder.conditions()), sep=", ")
    age <= 20, age <= 65, age > 20, age > 65, age is missing
    """

    name: str
    thresholds: NDArray[np.float64]
    has_missing: bool

    @property
    def n_codes(self) -> int:
        """Number of codes, the one for missing cells included."""
        return len(self.thresholds) + 2

    def conditions(self) -> list[CodedCondition]:
        """The column's conditions: ``<=`` ascending, ``>`` ascending, missing."""
        last = len(self.thresholds)
        cuts = list(enumerate(self.thresholds.tolist()))
        below = [CodedCondition(Condition(self.name, LESS_EQUAL, t), 0, k) for k, t in cuts]
        above = [CodedCondition(Condition(self.name, GREATER, t), k + 1, last) for k, t in cuts]
        return [*below, *above, *_missing(self.name, last + 1, self.has_missing)]

    def reader(self, column: Column) -> CodesOfRows:
        """The function that codes the rows of a slice of a numeric column."""
        missing = len(self.thresholds) + 1

        def codes(rows: slice) -> NDArray[np.integer[Any]]:
            values = np.ascontiguousarray(column.values[rows])
            if len(self.thresholds) > MANY_THRESHOLDS:
                below = np.searchsorted(self.thresholds, values, side="left")
            else:
                below = np.zeros(len(values), dtype=np.uint8)
                for threshold in self.thresholds:
                    below += values > threshold
            below[np.isnan(values)] = missing
            return below

        return codes


@dataclass(frozen=True, slots=True)
class LevelCoder:
    """Codes of a categorical, boolean or ordered column: positions in the fitted levels.

    Examples
    --------
    >>> import numpy as np
    >>> coder = LevelCoder("colour", ("blue", "red"), has_missing=False)
    >>> new = Column("colour", "categorical", np.array([0, 1, -1, 0]), ("green", "red"))
    >>> coder.reader(new)(slice(0, 4))  # unseen, red, missing, unseen
    array([2, 1, 3, 2], dtype=uint16)
    """

    name: str
    levels: tuple[Level, ...]
    has_missing: bool
    # For an ordered column, the positions after which training rows can be told apart.
    cuts: tuple[int, ...] | None = None

    @property
    def n_codes(self) -> int:
        """Number of codes, those for unseen levels and missing cells included."""
        return len(self.levels) + 2

    def conditions(self) -> list[CodedCondition]:
        """The column's conditions: ``==`` per level, ``!=`` per level (or cuts), missing."""
        unseen = len(self.levels)
        missing = _missing(self.name, unseen + 1, self.has_missing)
        if self.cuts is not None:
            return [*self._ordered(), *missing]
        levels = list(enumerate(self.levels))
        if len(levels) == 1 and not self.has_missing:
            return []
        equal = [CodedCondition(Condition(self.name, EQUAL, v), k, k) for k, v in levels]
        if len(levels) <= 2:
            return [*equal, *missing]
        other = [
            CodedCondition(Condition(self.name, NOT_EQUAL, v), 0, unseen, k) for k, v in levels
        ]
        return [*equal, *other, *missing]

    def _ordered(self) -> list[CodedCondition]:
        last, order = len(self.levels) - 1, self.levels
        cuts = [(k, order[k]) for k in self.cuts or ()]
        below = [CodedCondition(Condition(self.name, LESS_EQUAL, v, order), 0, k) for k, v in cuts]
        above = [
            CodedCondition(Condition(self.name, GREATER, v, order), k + 1, last) for k, v in cuts
        ]
        return [*below, *above]

    def reader(self, column: Column) -> CodesOfRows:
        """The function that codes the rows of a slice of a column with levels of its own."""
        assert column.levels is not None
        self.refuse_other_types(column.levels)
        unseen = len(self.levels)
        code = {level: k for k, level in enumerate(self.levels)}
        # One entry per level of the column; its last entry is met by -1, a missing cell.
        lookup = np.array(
            [*(code.get(level, unseen) for level in column.levels), unseen + 1], dtype=np.uint16
        )
        return lambda rows: lookup[column.values[rows]]

    def refuse_other_types(self, levels: Sequence[Level]) -> None:
        """Numbers where there were strings are no unseen levels, but another way of reading."""
        fitted = {isinstance(level, str) for level in self.levels}
        found = {isinstance(level, str) for level in levels}
        if fitted and found and not fitted & found:
            was, now = ("strings", "numbers") if True in fitted else ("numbers", "strings")
            raise ValueError(
                f"column {self.name!r} held {was} when the model was fitted and now holds {now}, "
                f"such as {levels[0]!r}: convert it to {was}."
            )


Coder = NumericCoder | LevelCoder


def level_coder(column: Column, kept: NDArray[np.bool_] | None) -> LevelCoder:
    """Learn the levels of a column from its ``kept`` rows (None: all).

    The levels of an ordered column are all that it declares, with a cut after each that occurs
    but the highest; those of the others are the ones that occur.
    """
    assert column.levels is not None
    codes = column.values if kept is None else column.values[kept]
    has_missing = occurs_beside_others(codes < 0)
    occurring = np.unique(codes[codes >= 0]).tolist()
    if column.kind == ORDERED:
        return LevelCoder(column.name, column.levels, has_missing, tuple(occurring[:-1]))
    return LevelCoder(column.name, tuple(column.levels[k] for k in occurring), has_missing)


def condition_table(
    coded: Iterable[Sequence[CodedCondition]], n_codes: Sequence[int]
) -> ConditionTable:
    """Stack the conditions of the columns, in order, into one table."""
    conditions: list[Condition] = []
    rows: list[tuple[int, int, int, int]] = []
    for column, group in enumerate(coded):
        for one in group:
            conditions.append(one.condition)
            rows.append((column, one.low, one.high, one.hole))
    column_, low, high, hole = np.array(rows, dtype=np.int32).reshape(-1, 4).T.copy()
    return ConditionTable(conditions, column_, low, high, hole, np.array(n_codes, dtype=np.int32))


def code_rows(readers: Sequence[CodesOfRows], n_rows: int, dtype: Any) -> NDArray[Any]:
    """Codes of all rows and columns, of shape (n, m) and C-contiguous, one block after another."""
    codes = np.empty((n_rows, len(readers)), dtype=dtype)
    for start in range(0, n_rows, BLOCK):
        rows = slice(start, min(start + BLOCK, n_rows))
        block = np.empty((len(readers), rows.stop - start), dtype=dtype)
        for j, codes_of in enumerate(readers):
            block[j] = codes_of(rows)
        codes[rows] = block.T
    return codes


def occurs_beside_others(missing: NDArray[np.bool_]) -> bool:
    """Whether some cells are missing, but not all: else the condition would tell no rows apart."""
    return bool(missing.any() and not missing.all())


def _missing(name: str, code: int, has_missing: bool) -> list[CodedCondition]:
    return [CodedCondition(Condition(name, IS_MISSING), code, code)] if has_missing else []
