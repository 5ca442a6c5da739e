"""The options of every command."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any, NoReturn

from latticework import __version__
from latticework.cli.errors import CommandError
from latticework.cli.terminal import terminal_width

TASKS = ("auto", "classification", "regression")
FORMATS = ("text", "markdown", "sql", "json", "latex", "python")
HINGES = ("hinge", "squared_hinge")
LOSSES = {
    "classification": ("log_loss", *HINGES),
    "regression": ("squared_error", "huber", "epsilon_insensitive", "poisson"),
}


class _Help(argparse.HelpFormatter):
    """Help of which lines that begin with spaces are examples and stay as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=27, width=min(100, terminal_width() - 2))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.split("\n")
        return "\n".join(
            line if line[:1] == " " else super(_Help, self)._fill_text(line, width, indent)
            for line in lines
        )

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """``-o, --output FILE``, not ``--output FILE, -o FILE``."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        names = ", ".join(sorted(action.option_strings, key=len))
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{names} {value}"


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are errors like all others."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_Help, **options)

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
    bound = f"above {low:g}" if open_low else f"of {low:g} or more"
    if high != float("inf"):
        bound = f"{bound if open_low else f'from {low:g}'} to {high:g}"

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
        usage="latticework COMMAND ...",
        description="Learn a few weighted rules from a table, with a proof of how good they are.",
        epilog="Each command explains its options:\n  latticework learn --help\n"
        "To see it work:\n  latticework demo",
    )
    parser.add_argument("--version", action="version", version=f"latticework {__version__}")
    parser.set_defaults(run=lambda options: _ask_for_a_command(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="latticework")
    _add_learn(commands)
    _add_predict(commands)
    _add_rules(commands)
    _add_demo(commands)
    return parser


def _ask_for_a_command(parser: argparse.ArgumentParser) -> NoReturn:
    raise CommandError(f"name a command\n\n{parser.format_help().rstrip()}")


def _command(
    commands: Any, name: str, arguments: str, summary: str, description: str, *examples: str
) -> Any:
    command = commands.add_parser(
        name,
        usage=f"latticework {name} {arguments}",
        help=summary,
        description=description,
        epilog="\n".join(["examples:", *(f"  latticework {name} {text}" for text in examples)]),
    )
    command.set_defaults(run=_Run(name))
    return command


def _add_learn(commands: Any) -> None:
    learn = _command(
        commands, "learn", "DATA --target COLUMN [options]", "learn rules from a table",
        "Learn rules from a CSV or Parquet file. Without --alpha the strength of the penalty is "
        "chosen by cross-validation, among models of at most --max-rules rules.",
        "patients.csv --target died --model model.json",
        "patients.csv -t died --drop patient_id --holdout 0.3",
    )  # fmt: skip
    data = learn.add_argument_group("the data")
    _add_data(data)
    data.add_argument("--target", "-t", required=True, metavar="COLUMN", help="what to predict")
    data.add_argument(
        "--task", choices=TASKS, default="auto", metavar="TASK",
        help="classification or regression (default: whatever the target looks like)",
    )  # fmt: skip
    _add_missing(data)
    data.add_argument(
        "--columns", action="append", metavar="A,B", help="learn from these columns only"
    )
    data.add_argument("--drop", action="append", metavar="A,B", help="columns to leave out")
    data.add_argument(
        "--categorical", action="append", metavar="A,B",
        help="columns of numbers that are names, not amounts",
    )  # fmt: skip
    _add_model(learn.add_argument_group("the model"))
    _add_work(learn.add_argument_group("the work"))


def _add_model(model: Any) -> None:
    model.add_argument("--model", "-m", metavar="FILE", help="where to save the model, as JSON")
    model.add_argument(
        "--max-rules", type=_WHOLE, metavar="N", help="most rules of the model (default: 20)"
    )
    model.add_argument(
        "--alpha", type=_POSITIVE, metavar="NUMBER",
        help="strength of the penalty; more means fewer rules (default: cross-validation)",
    )  # fmt: skip
    model.add_argument(
        "--length-penalty", type=_ANY, metavar="A",
        help="a rule of k conditions pays (1 + A)^k; 0: long rules cost no more than short ones",
    )  # fmt: skip
    model.add_argument("--max-length", type=_COUNT, metavar="N", help="most conditions of a rule")
    model.add_argument(
        "--thresholds", type=_COUNT, metavar="N", help="most thresholds of a numeric column"
    )
    model.add_argument(
        "--loss", choices=[name for names in LOSSES.values() for name in names], metavar="LOSS",
        help="; ".join(
            f"for {task} {names[0]} (default), {', '.join(names[1:])}"
            for task, names in LOSSES.items()
        ),
    )  # fmt: skip
    model.add_argument(
        "--relax", type=_SHARE, metavar="R",
        help="0 to 1: how much of the penalty is taken off once the rules are selected",
    )  # fmt: skip


def _add_work(work: Any) -> None:
    work.add_argument(
        "--folds", type=_number(2, float("inf"), whole=True), metavar="N",
        help="folds of the cross-validation (default: 5, several times where rows are few)",
    )  # fmt: skip
    work.add_argument(
        "--holdout", type=_number(0, 0.9, open_low=True), metavar="SHARE",
        help="set this share of the rows aside and report the score on them",
    )  # fmt: skip
    work.add_argument(
        "--time-limit", type=_POSITIVE, metavar="SECONDS",
        help="stop then, as Ctrl-C does: with the best model so far and how far it can be from "
        "the optimum",
    )  # fmt: skip
    work.add_argument(
        "--seed", type=_WHOLE, default=0, metavar="N", help="of folds and holdout (default: 0)"
    )
    work.add_argument("--jobs", type=_threads, metavar="N", help="threads (-1: one a core)")


def _add_predict(commands: Any) -> None:
    predict = _command(
        commands, "predict", "MODEL DATA [options]", "apply a model to a table",
        "Write one row of predictions for each row of the data, in the same order. Columns: the "
        "--id columns, then 'prediction', then 'probability_<class>' for each class where the "
        "model has probabilities and 'score' where it has not. Models of several labels or "
        "targets have 'prediction_<name>' and 'probability_<name>' for each.",
        "model.json new.csv -o predictions.csv",
        "model.json new.csv --id patient_id --explain",
    )  # fmt: skip
    files = predict.add_argument_group("the data")
    files.add_argument("model", metavar="MODEL", help="model file that 'learn' saved")
    _add_data(files)
    _add_missing(files)
    output = predict.add_argument_group("the predictions")
    output.add_argument(
        "--output", "-o", default="-", metavar="FILE", help="CSV or Parquet (default: the screen)"
    )
    output.add_argument(
        "--id", action="append", default=[], metavar="COLUMN",
        help="column of the data to copy into the output; may be repeated",
    )  # fmt: skip
    output.add_argument(
        "--explain", action="store_true",
        help="add the score and what each rule contributes to it",
    )  # fmt: skip


def _add_rules(commands: Any) -> None:
    rules = _command(
        commands, "rules", "MODEL [options]", "write a model's rules as text, SQL, Python, ...",
        "Write the rules of a model as a table to read or as code to run elsewhere.",
        "model.json",
        "model.json --format sql --table patients -o score.sql",
    )  # fmt: skip
    rules.add_argument("model", metavar="MODEL", help="model file that 'learn' saved")
    rules.add_argument(
        "--format", "-f", choices=FORMATS, default="text", metavar="FORMAT",
        help=f"{FORMATS[0]} (default), {', '.join(FORMATS[1:-1])} or {FORMATS[-1]}",
    )  # fmt: skip
    rules.add_argument(
        "--table",
        metavar="NAME",
        help="SQL: the table to select from, or schema.table (default: data)",
    )
    rules.add_argument("--output", "-o", default="-", metavar="FILE", help="default: the screen")


def _add_demo(commands: Any) -> None:
    demo = _command(
        commands, "demo", "[options]", "the whole story in one screen: tic-tac-toe",
        "Learn from the final boards of tic-tac-toe who has won, and find the winning lines.",
        "--save boards.csv",
    )  # fmt: skip
    demo.add_argument(
        "--seed", type=_WHOLE, default=0, metavar="N", help="of the split (default: 0)"
    )
    demo.add_argument("--save", metavar="FILE", help="also write the boards, as CSV or Parquet")


def _add_data(group: Any) -> None:
    group.add_argument(
        "data", metavar="DATA",
        help="CSV (also .csv.gz, - for standard input) or Parquet file",
    )  # fmt: skip


def _add_missing(group: Any) -> None:
    group.add_argument(
        "--missing", action="append", default=[], metavar="TEXT",
        help="text that means a missing cell, such as '?', beside empty cells, NA, NaN and null",
    )  # fmt: skip
