"""``latticework demo``: what the library does, on tic-tac-toe, in one screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from latticework.cli.boards import (
    LINES,
    MARKS,
    SQUARES,
    X,
    board_table,
    condition_name,
    final_boards,
    has_won,
)
from latticework.cli.models import certificate_text, size_text
from latticework.cli.outputs import check_table_file, write_columns
from latticework.cli.terminal import Progress, say, say_commands, say_labelled
from latticework.estimators.assembly import take_rows
from latticework.estimators.path import rule_path
from latticework.solvers.result import INTERRUPTED

if TYPE_CHECKING:
    from argparse import Namespace

    from numpy.typing import NDArray

    from latticework.estimators.path import RulePath
    from latticework.rules.columns import Table
    from latticework.rules.ensemble import RuleEnsemble
    from latticework.rules.rule import Rule

WON, NOT_WON = "x has won", "x has not won"
_RESULT = "result"
_TEST_SHARE, _CHOICE_SHARE = 0.3, 0.25
_N_ALPHAS = 20
# Every conjunction pays the same, however long it is: winning lines have three conditions.
_LENGTH_PENALTY = 0.0


def run(options: Namespace) -> None:
    """Learn who has won from 70 % of the boards, and tell the story."""
    if options.save is not None:
        check_table_file(options.save, [], lambda names: names == [*SQUARES, _RESULT])
    boards = final_boards()
    table = board_table(boards)
    y = np.array([WON if has_won(board, X) else NOT_WON for board in boards])
    learn, test = _parts(np.arange(len(y)), y, _TEST_SHARE, options.seed)
    fit, choose = _parts(learn, y[learn], _CHOICE_SHARE, options.seed)
    say_labelled(
        "Tic-tac-toe",
        f"all {len(y)} boards on which a game can end; x has won on {np.sum(y == WON)} of them",
    )
    with Progress("compiling and learning"):
        loading = _seconds(lambda: _path(table, y, fit, n_alphas=3))[1]
        choices, _ = _seconds(lambda: _path(table, y, fit))
        best = _best(choices, take_rows(table, choose), y[choose])
        path, seconds = _seconds(lambda: _path(table, y, learn))
    model: Any = path[best]
    _tell_learning(model, len(learn), len(choose), seconds, loading)
    _draw(model.rules_)
    say_labelled("Certificate", certificate_text(model.certificate_, relaxed=False))
    _tell_test(model.rules_, take_rows(table, test), y[test])
    _tell_next(options.save, boards, y)


def _parts(
    rows: NDArray[np.intp], y: NDArray[Any], share: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Two parts of the rows; the second has this share of each class."""
    first, second = train_test_split(rows, test_size=share, random_state=seed, stratify=y)
    return np.sort(first), np.sort(second)


def _path(
    table: Table, y: NDArray[Any], rows: NDArray[np.intp], n_alphas: int = _N_ALPHAS
) -> RulePath:
    path = rule_path(
        take_rows(table, rows),
        y[rows],
        n_alphas=n_alphas,
        length_penalty=_LENGTH_PENALTY,
        conditions="as-is",
    )
    if path.models[-1].status_ == INTERRUPTED:
        raise KeyboardInterrupt
    return path


def _seconds(work: Any) -> tuple[Any, float]:
    """What a function returns, and how long it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def _best(path: RulePath, table: Table, y: NDArray[Any]) -> int:
    """Position on the path of the model with the least log loss on these rows."""
    models: list[Any] = path.models
    losses = [log_loss(y, model.predict_proba(table), labels=model.classes_) for model in models]
    return int(np.argmin(losses))


# ------------------------------------------------------------------------------------- telling


def _tell_learning(model: Any, n_learn: int, n_choose: int, seconds: float, loading: float) -> None:
    certificate = model.certificate_
    n_conditions = certificate.lattice_size.bit_length() - 1
    say_labelled(
        "Question",
        f"who has won? A condition says that a square holds x, o or is blank: {n_conditions} "
        f"conditions, {size_text(certificate.lattice_size)} = {certificate.lattice_size:,} "
        "conjunctions of them",
    )
    say_labelled(
        "Learning",
        f"{n_learn} boards, a path of {_N_ALPHAS} alphas, each certified, in {seconds:.2f} s (and "
        f"{loading:.1f} s to load the machine code, which the first run compiles); "
        f"{n_choose} of the boards chose alpha = {model.alpha_:.2g}",
    )


def winning_line(rule: Rule) -> tuple[int, ...] | None:
    """The line that a rule describes, where it says: these three squares hold x, so x has won."""
    if rule.weight <= 0.0:
        return None
    asked = {condition.feature for condition in rule.conditions}
    for line in LINES:
        if asked == {condition_name(square, X) for square in line}:
            return line
    return None


def _draw(ensemble: RuleEnsemble) -> None:
    """The rules with the largest weights, as boards side by side."""
    rules = sorted(ensemble, key=lambda rule: -abs(rule.weight))[: len(LINES)]
    found = {winning_line(rule) for rule in rules} - {None}
    number = "the eight" if len(found) == len(LINES) else f"{len(found)} of the eight"
    say_labelled(
        "Rules",
        f"{len(ensemble)} rules; the {len(rules)} with the largest weights are {number} winning "
        "lines:",
    )
    say()
    drawings = [_drawing(rule) for rule in rules]
    for row in range(3):
        say("   ".join(drawing[row] for drawing in drawings).rstrip())
    say("   ".join(f"{rule.weight:^+5.2f}" for rule in rules).rstrip())
    say()


def _drawing(rule: Rule) -> list[str]:
    """A rule as the three lines of a board; squares that it does not ask about are dots."""
    marks = ["."] * len(SQUARES)
    asked = {condition.feature for condition in rule.conditions}
    for square in range(len(SQUARES)):
        for mark in MARKS:
            if condition_name(square, mark) in asked:
                marks[square] = mark
    return [" ".join(marks[k : k + 3]) for k in (0, 3, 6)]


def _tell_test(ensemble: RuleEnsemble, table: Table, y: NDArray[Any]) -> None:
    right = int(np.sum(ensemble.predict(table) == y))
    say_labelled(
        "Test",
        f"{right} of the {len(y)} boards set aside are judged right: accuracy {right / len(y):.3f}",
    )


def _tell_next(path: str | None, boards: list[str], y: NDArray[Any]) -> None:
    data = path or "boards.csv"
    learn = f"latticework learn {data} -t {_RESULT} --length-penalty 0 --max-length 3"
    if path is None:
        say_commands("Next", "latticework demo --save boards.csv", learn)
        return
    columns = dict(zip(SQUARES, map(list, zip(*boards, strict=True)), strict=True))
    write_columns(path, {**columns, _RESULT: y.tolist()})
    say_labelled("Saved", path)
    say_commands("Next", learn)
