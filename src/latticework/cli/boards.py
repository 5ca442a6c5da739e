"""The boards on which a game of tic-tac-toe can end, by playing out every game."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latticework.rules.cells import column_of_truths
from latticework.rules.columns import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

MARKS = X, O, BLANK = "x", "o", "b"  # noqa: E741
SQUARES = tuple(
    f"{row}-{column}"
    for row in ("top", "middle", "bottom")
    for column in ("left", "middle", "right")
)
# Lines as positions on the board.
LINES = (
    (0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)
)  # fmt: skip


def has_won(board: str, player: str) -> bool:
    """Whether a player holds all three squares of some line.

    Examples
    --------
    >>> has_won("xxxoobbbb", "x"), has_won("xxbooxbbb", "o")
    (True, False)
    """
    return any(all(board[square] == player for square in line) for line in LINES)


def final_boards() -> list[str]:
    """All boards of nine letters on which a game ends; x moves first.

    Examples
    --------
    >>> boards = final_boards()
    >>> len(boards), sum(has_won(board, "x") for board in boards)
    (958, 626)
    """
    seen: set[str] = set()
    final: list[str] = []

    def play(board: str, player: str, opponent: str) -> None:
        if board in seen:
            return
        seen.add(board)
        if has_won(board, opponent) or BLANK not in board:
            final.append(board)
            return
        for square, mark in enumerate(board):
            if mark == BLANK:
                play(board[:square] + player + board[square + 1 :], opponent, player)

    play(BLANK * len(SQUARES), X, O)
    return sorted(final)


def condition_name(square: int, mark: str) -> str:
    """What a board is asked about a square.

    Examples
    --------
    >>> condition_name(4, "x")
    'middle-middle=x'
    """
    return f"{SQUARES[square]}={mark}"


def board_table(boards: Sequence[str]) -> Table:
    """The boards as a table of truths, one column for each square and mark it can hold."""
    marks = np.array([list(board) for board in boards])
    columns = tuple(
        column_of_truths(condition_name(square, mark), marks[:, square] == mark, None)
        for square in range(len(SQUARES))
        for mark in MARKS
    )
    return Table(columns, len(boards))
