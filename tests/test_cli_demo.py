"""``latticework demo``: the eight winning lines, the whole story, one screen."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from tests.commands import Command, Outcome, labelled

from latticework.cli import demo
from latticework.cli.boards import LINES, SQUARES, final_boards, has_won

# The lines of a board, as sets of squares numbered row by row.
WINNING = {
    frozenset(line)
    for line in combinations(range(9), 3)
    if len({k // 3 for k in line}) == 1
    or len({k % 3 for k in line}) == 1
    or set(line) in ({0, 4, 8}, {2, 4, 6})
}


def drawn_lines(outcome: Outcome) -> list[frozenset[int]]:
    """The squares that hold x in each of the boards that are drawn."""
    lines = outcome.out.splitlines()
    first = next(k for k, line in enumerate(lines) if line[:5] in (". . .", "x x x", ". . x"))
    marks = [[board.split() for board in line.split("   ")] for line in lines[first : first + 3]]
    return [
        frozenset(3 * row + column for row in range(3) for column in range(3)
                  if marks[row][board][column] == "x")
        for board in range(len(marks[0]))
    ]  # fmt: skip


def test_the_lines_are_those_of_the_game() -> None:
    assert {frozenset(line) for line in LINES} == WINNING
    assert len(LINES) == 8


def test_the_boards_are_those_of_the_game() -> None:
    boards = final_boards()
    for board in boards:
        n_x, n_o = board.count("x"), board.count("o")
        x_won, o_won = has_won(board, "x"), has_won(board, "o")
        assert n_x - n_o == (0 if o_won else 1)
        assert x_won + o_won <= 1
        assert x_won or o_won or "b" not in board
    assert len(set(boards)) == len(boards) == 958


@pytest.mark.parametrize("seed", [0, 1])
def test_the_story(run: Command, seed: int) -> None:
    outcome = run("demo", "--seed", seed)
    parts = labelled(outcome)
    assert "x has won on 626 of them" in parts["Tic-tac-toe"]
    assert "2^27 = 134,217,728 conjunctions" in parts["Question"]
    assert "the 8 with the largest weights are the eight winning lines:" in parts["Rules"]
    assert set(drawn_lines(outcome)) == WINNING
    assert "288 of the 288 boards set aside are judged right: accuracy 1.000" in parts["Test"]
    assert "none has a penalised loss more than 0." in parts["Certificate"]
    assert outcome.err == ""


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_one_screen(run: Command, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("demo").out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= width


def test_what_is_claimed_is_counted(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo that finds fewer lines says so."""
    draw = demo._draw
    monkeypatch.setattr(demo, "_draw", lambda rules: draw(replace(rules, rules=rules.rules[:5])))
    n_found = len(set(drawn_lines(run("demo"))) & WINNING)
    assert n_found < 8
    assert f"largest weights are {n_found} of the eight winning lines" in run("demo").flat()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_boards_can_be_kept(run: Command, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"boards.{ending}"
    for _ in range(2):  # its own file is written over
        assert run("demo", "--save", file).code == 0
    boards = pd.read_parquet(file) if ending == "parquet" else pd.read_csv(file)
    assert boards.columns.tolist() == [*SQUARES, "result"]
    texts = boards[[*SQUARES]].agg("".join, axis=1)
    assert texts.tolist() == final_boards()
    won = [has_won(text, "x") for text in texts]
    assert (boards["result"] == "x has won").tolist() == won


def test_what_comes_next_works(run: Command, tmp_path: Path) -> None:
    """The command that the demo ends with finds the lines, too (here at one alpha, not twenty)."""
    outcome = run("demo", "--save", tmp_path / "boards.csv")
    name, *command = shlex.split(outcome.out.splitlines()[-1].replace("Next", ""))
    assert name == "latticework"
    learnt = run(*command, "--alpha", "0.015").flat()
    rows = [
        f"{row}-left == x AND {row}-middle == x AND {row}-right == x" for row in ("top", "bottom")
    ]
    assert all(row in learnt for row in rows)
    assert "area under the ROC curve 1 " in learnt


@pytest.mark.parametrize(
    ("save", "message"),
    [
        ("other.csv", "other.csv: this file exists, and nothing tells that this command wrote it"),
        ("a/boards.csv", "the folder 'a' does not exist; create it first"),
        ("boards.xlsx", "tables are written as CSV or Parquet, not as .xlsx"),
    ],
)
def test_files_that_are_not_written(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.csv").write_text("patient,age\n1,2\n")
    assert message in run("demo", "--save", save).error()
    assert Path("other.csv").read_text() == "patient,age\n1,2\n"
