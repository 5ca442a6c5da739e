"""Conditions on one column, and how the search sees a whole set of them.

A :class:`Condition` is what a person reads (``age > 50``).  A :class:`ConditionTable` is what the
compiled search reads: every column of the data is an integer code per row, and every condition
is an interval of codes of one column, perhaps with one code taken out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LESS_EQUAL, GREATER, EQUAL, NOT_EQUAL, IS_MISSING, IS_TRUE = (
    "<=",
    ">",
    "==",
    "!=",
    "is missing",
    "is true",
)
OPERATORS = (LESS_EQUAL, GREATER, EQUAL, NOT_EQUAL, IS_MISSING, IS_TRUE)

# Rows judged at a time, so that what is written row by row is still in the processor's cache.
INDICATOR_BLOCK = 4096

Value = float | int | bool | str | None


@dataclass(frozen=True, slots=True)
class Condition:
    """One test on one column, such as ``age > 50`` or ``colour == "red"``.

    Parameters
    ----------
    feature : str
        Name of the column.
    operator : {"<=", ">", "==", "!=", "is missing", "is true"}
        ``"is true"`` is the single condition of a column that is already boolean
        (``conditions="as-is"``).
    value : float, int, bool, str or None
        The threshold or level; None for ``"is missing"`` and ``"is true"``.
    order : tuple of levels or None
        For ``<=`` and ``>`` on an ordered categorical column: its levels, lowest first.
    """

    feature: str
    operator: str
    value: Value = None
    order: tuple[Value, ...] | None = None

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(
                f"operator {self.operator!r} of a condition on {self.feature!r} is not one of "
                f"{', '.join(OPERATORS)}."
            )

    def __str__(self) -> str:
        """The condition as people read it; ``"is true"`` is understood and not written.

        Examples
        --------
        >>> print(Condition("age", ">", 50.0), Condition("bp", "is missing"), sep=" and ")
        age > 50 and bp is missing
        >>> print(Condition("x_1 = b", "is true"))
        x_1 = b
        """
        if self.operator == IS_TRUE:
            return self.feature
        if self.operator == IS_MISSING:
            return f"{self.feature} {self.operator}"
        return f"{self.feature} {self.operator} {format_value(self.value)}"


def format_value(value: Value) -> str:
    """A threshold or level in the fewest characters that give back exactly the same value.

    Strings are bare, except where that would hide them.

    Examples
    --------
    >>> [format_value(value) for value in (50.0, 0.1, 1e22, -0.0, True, "red", " red")]
    ['50', '0.1', '1e+22', '0', 'True', 'red', "' red'"]
    """
    if isinstance(value, str):
        return value if value and value == value.strip() else repr(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return repr(value)


@dataclass(frozen=True, slots=True)
class ConditionTable:
    """A set of p conditions as intervals of integer codes.

    Row i of the data satisfies condition c when its code in column ``column[c]`` lies in
    ``low[c] .. high[c]`` (both included) and differs from ``hole[c]``.

    Parameters
    ----------
    conditions : sequence of Condition
        The p conditions, in the order of the arrays.
    column, low, high, hole : ndarray of shape (p,), int32
        ``hole[c]`` is -1 when no code is taken out.
    n_codes : ndarray of shape (m,), int32
        Number of codes of each of the m coded columns.
    """

    conditions: Sequence[Condition]
    column: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    hole: NDArray[np.int32]
    n_codes: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.conditions)

    def satisfied(self, codes: NDArray[np.integer], condition: int) -> NDArray[np.bool_]:
        """Rows of ``codes`` (n, m) that satisfy the condition with this index."""
        values = codes[:, self.column[condition]]
        inside = (values >= self.low[condition]) & (values <= self.high[condition])
        return inside & (values != self.hole[condition])

    def indicators(self, codes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """All conditions at once, boolean of shape (n, p), from ``codes`` of shape (n, m).

        Examples
        --------
        >>> import numpy as np
        >>> bounds = np.array([0, 1], dtype=np.int32)  # each is true of one code
        >>> table = ConditionTable(
        ...     conditions=[Condition("smokes", "==", False), Condition("smokes", "==", True)],
        ...     column=np.array([0, 0], dtype=np.int32),
        ...     low=bounds, high=bounds, hole=np.array([-1, -1], dtype=np.int32),
        ...     n_codes=np.array([4], dtype=np.int32),
        ... )
        >>> table.indicators(np.array([[1], [0], [3]], dtype=np.uint8))
        array([[False,  True],
               [ True, False],
               [False, False]])
        """
        # Python integers, which leave the codes the narrow type they have.
        intervals = np.stack([self.column, self.low, self.high, self.hole], axis=1).tolist()
        result = np.empty((len(codes), len(self)), dtype=bool)
        for start in range(0, len(codes), INDICATOR_BLOCK):
            by_column = np.ascontiguousarray(codes[start : start + INDICATOR_BLOCK].T)
            block = np.empty((len(self), by_column.shape[1]), dtype=bool)
            for c, (column, low, high, hole) in enumerate(intervals):
                values = by_column[column]
                np.logical_and(values >= low, values <= high, out=block[c])
                if hole >= 0:
                    block[c] &= values != hole
            result[start : start + INDICATOR_BLOCK] = block.T
        return result
