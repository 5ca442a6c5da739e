"""The options of every command."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any, NoReturn

from latticework import __version__
from latticework.cli.errors import CommandError

TASKS = ("auto", "classification", "regression")
FORMATS = ("text", "markdown", "sql", "json", "latex", "python")
HINGES = ("hinge", "squared_hinge")
LOSSES = {
    "classification": ("log_loss", *HINGES),
    "regression": ("squared_error", "huber", "epsilon_insensitive", "poisson"),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are errors like all others."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}\nsee:  {self.prog} --help")


class _Run:
    """A command that is imported when it runs."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __call__(self, options: argparse.Namespace) -> None:
        import_module(f"latticework.cli.{self.module}").run(options)


def _number(low: float, high: float, *, whole: bool = False, open_low: bool = False) -> Any:
    """A type of option: a number between bounds."""
    bound = f"{'above' if open_low else 'at least'} {low:g}"
    if high != float("inf"):
        bound += f" and at most {high:g}"

    def read(text: str) -> float:
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            value = float("nan")
        if not (low < value <= high if open_low else low <= value <= high):
            noun = "a whole number" if whole else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {noun} {bound}")
        return value

    return read


def _threads(text: str) -> int:
    """A type of option: a number of threads."""
    if text != "-1" and not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of threads, nor -1 for all")
    return int(text)


_ANY, _POSITIVE = _number(0, float("inf")), _number(0, float("inf"), open_low=True)
_COUNT, _WHOLE = _number(1, float("inf"), whole=True), _number(0, float("inf"), whole=True)
_SHARE = _number(0, 1)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = _Parser(
        prog="latticework",
        description="Learn a few weighted rules from a table, with a proof of how good they are.",
        epilog="Each command explains its options:  latticework learn --help",
    )
    parser.add_argument("--version", action="version", version=f"latticework {__version__}")
    parser.set_defaults(run=lambda options: _ask_for_a_command(parser))
    commands = parser.add_subparsers(title="commands", metavar="command")
    _add_learn(commands)
    _add_predict(commands)
    _add_rules(commands)
    _add_demo(commands)
    return parser


def _ask_for_a_command(parser: argparse.ArgumentParser) -> NoReturn:
    raise CommandError(f"name a command\n\n{parser.format_help().rstrip()}")


def _command(commands: Any, name: str, summary: str, description: str = "") -> Any:
    command = commands.add_parser(name, help=summary, description=description or summary)
    command.set_defaults(run=_Run(name))
    return command


def _add_learn(commands: Any) -> None:
    learn = _command(
        commands, "learn", "learn rules from a table",
        "Learn rules from a CSV or Parquet file. Without --alpha the strength of the penalty is "
        "chosen by cross-validation, among models of at most --max-rules rules.",
    )  # fmt: skip
    learn.add_argument("data", help="CSV (also .csv.gz, - for standard input) or Parquet file")
    learn.add_argument("--target", "-t", required=True, metavar="COLUMN", help="what to predict")
    learn.add_argument("--model", "-m", metavar="FILE", help="where to save the model, as JSON")
    learn.add_argument(
        "--task", choices=TASKS, default="auto", help="default: whatever the target looks like"
    )
    _add_reading(learn)
    learn.add_argument(
        "--columns", action="append", metavar="A,B", help="learn from these columns only"
    )
    learn.add_argument("--drop", action="append", metavar="A,B", help="columns to leave out")
    learn.add_argument(
        "--categorical", action="append", metavar="A,B", help="numbers that are names, not amounts"
    )
    model = learn.add_argument_group("the model")
    model.add_argument(
        "--max-rules", type=_WHOLE, metavar="N", help="most rules of the model (default: 20)"
    )
    model.add_argument(
        "--alpha", type=_POSITIVE, help="strength of the penalty (default: cross-validation)"
    )
    model.add_argument(
        "--length-penalty", type=_ANY, metavar="A",
        help="a rule of k conditions pays (1 + A)^k; 0: long rules cost no more than short ones",
    )  # fmt: skip
    model.add_argument("--max-length", type=_COUNT, metavar="N", help="most conditions of a rule")
    model.add_argument(
        "--thresholds", type=_COUNT, metavar="N", help="most thresholds of a numeric column"
    )
    model.add_argument(
        "--loss", choices=[name for names in LOSSES.values() for name in names],
        help="default: log_loss or squared_error",
    )  # fmt: skip
    model.add_argument(
        "--relax", type=_SHARE, metavar="R",
        help="0 to 1: how much of the penalty is taken off once the rules are selected",
    )  # fmt: skip
    work = learn.add_argument_group("the work")
    work.add_argument(
        "--folds", type=_number(2, float("inf"), whole=True), metavar="N",
        help="of the cross-validation (default: 5)",
    )  # fmt: skip
    work.add_argument(
        "--holdout", type=_number(0, 0.9, open_low=True), metavar="SHARE",
        help="set this share of the rows aside and report the score on them",
    )  # fmt: skip
    work.add_argument(
        "--time-limit", type=_POSITIVE, metavar="SECONDS",
        help="stop then, with the best model so far and how far it can be from the optimum",
    )  # fmt: skip
    work.add_argument("--seed", type=_WHOLE, default=0, help="of folds and holdout (default: 0)")
    work.add_argument("--jobs", type=_threads, metavar="N", help="threads (-1: one a core)")


def _add_predict(commands: Any) -> None:
    predict = _command(
        commands, "predict", "apply a model to a table",
        "Write one row of predictions for each row of the data, in the same order. Columns: the "
        "--id columns, then 'prediction', then 'probability_<class>' for each class where the "
        "model has probabilities and 'score' where it has not. Models of several labels or "
        "targets have 'prediction_<name>' and 'probability_<name>' for each.",
    )  # fmt: skip
    predict.add_argument("model", help="model file that 'learn' saved")
    predict.add_argument("data", help="CSV (also .csv.gz, - for standard input) or Parquet file")
    predict.add_argument(
        "--output", "-o", default="-", metavar="FILE", help="CSV or Parquet (default: the screen)"
    )
    predict.add_argument(
        "--id", action="append", default=[], metavar="COLUMN",
        help="column of the data to copy into the output; may be repeated",
    )  # fmt: skip
    predict.add_argument(
        "--explain", action="store_true",
        help="add the score and what each rule contributes to it",
    )  # fmt: skip
    _add_reading(predict)


def _add_rules(commands: Any) -> None:
    rules = _command(commands, "rules", "write a model's rules as text, SQL, Python, ...")
    rules.add_argument("model", help="model file that 'learn' saved")
    rules.add_argument("--format", "-f", choices=FORMATS, default="text", help="default: text")
    rules.add_argument(
        "--table", metavar="NAME", help="SQL: the table to select from (default: data)"
    )
    rules.add_argument("--output", "-o", default="-", metavar="FILE", help="default: the screen")


def _add_demo(commands: Any) -> None:
    demo = _command(
        commands, "demo", "the whole story in one screen: tic-tac-toe",
        "Learn from the final boards of tic-tac-toe who has won, and find the winning lines.",
    )  # fmt: skip
    demo.add_argument("--seed", type=_WHOLE, default=0, help="of the split (default: 0)")
    demo.add_argument("--save", metavar="FILE", help="also write the boards, as CSV or Parquet")


def _add_reading(command: Any) -> None:
    command.add_argument(
        "--missing", action="append", default=[], metavar="TEXT",
        help="text that means a missing cell, such as '?', beside empty cells, NA, NaN and null",
    )  # fmt: skip
