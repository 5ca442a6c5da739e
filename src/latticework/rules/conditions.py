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
