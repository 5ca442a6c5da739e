"""``latticework learn``: from a table to a model in a file."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import train_test_split

from latticework.cli.arguments import LOSSES
from latticework.cli.errors import CommandError, blamed_on
from latticework.cli.models import certificate_text, model_text
from latticework.cli.scores import score_text
from latticework.cli.sheets import (
    check_writable,
    open_sheet,
    require_columns,
    table_of,
    write_text,
)
from latticework.cli.terminal import Progress, say, say_commands, say_error, say_labelled
from latticework.estimators.assembly import take_rows
from latticework.estimators.cv import RuleClassifierCV, RuleRegressorCV
from latticework.estimators.rules import RuleClassifier, RuleRegressor
from latticework.rules.cells import CATEGORICAL, NUMERIC, as_kind

if TYPE_CHECKING:
    from argparse import Namespace

    from numpy.typing import NDArray

    from latticework.cli.sheets import Sheet
    from latticework.rules.cells import Column
    from latticework.rules.columns import Table
    from latticework.rules.ensemble import RuleEnsemble

_HINT = "(Ctrl-C keeps the best model so far)"
CLASSIFICATION, REGRESSION = "classification", "regression"
MAX_RULES = 20
# Whole numbers with at most so many different values are taken for classes.
_MOST_NUMBERED_CLASSES = 10
# Text columns in which at least this share of the cells differ look like identifiers.
_IDENTIFIER_SHARE = 0.9
_LEAST_IDENTIFIER_ROWS = 20


@dataclass(frozen=True)
class _Rows:
    """Columns and target of some rows."""

    table: Table
    y: NDArray[Any]

    def take(self, rows: NDArray[np.intp]) -> _Rows:
        return _Rows(take_rows(self.table, rows), self.y[rows])


def run(options: Namespace) -> None:
    """Read, learn, print, save."""
    if options.alpha is not None and options.max_rules is not None:
        raise CommandError(
            "--alpha fixes the model, so --max-rules has nothing to choose: give one of them"
        )
    if options.model is not None:
        check_writable(options.model)
    sheet = open_sheet(options.data, options.missing)
    require_columns(sheet, [options.target], "which --target names")
    names = _wanted_columns(sheet, options)
    target = sheet.column(options.target)
    task, reason = _task(sheet, target, options.task)
    y = _labels(sheet, target, task)
    table = _with_categories(table_of(sheet, names), sheet, options)
    _describe(sheet, table, target.name, y, task, reason)
    everything = _Rows(table, y)
    fitted_on, aside = _split(everything, task, options)
    estimator = _estimator(task, options)
    seconds = _fit(estimator, fitted_on, sheet.path)
    _print_model(estimator, seconds, fitted_on, aside, options)
    _save(estimator, options)


# ------------------------------------------------------------------------------------- reading


def _wanted_columns(sheet: Sheet, options: Namespace) -> list[str]:
    """Names of the columns to learn from."""
    dropped = _listed_columns(sheet, options.drop, "--drop")
    wanted = _listed_columns(sheet, options.columns, "--columns") or sheet.names
    names = [name for name in wanted if name not in dropped and name != options.target]
    if not names:
        raise CommandError(f"{sheet.path}: no column is left to learn from beside the target")
    return names


def _listed_columns(sheet: Sheet, given: list[str] | None, option: str) -> list[str]:
    """Column names separated by commas; a name may hold a comma itself."""
    names: list[str] = []
    for entry in given or []:
        names += [entry] if entry in sheet.names else [part.strip() for part in entry.split(",")]
    require_columns(sheet, names, f"which {option} names")
    return names


def _with_categories(table: Table, sheet: Sheet, options: Namespace) -> Table:
    """The table with the columns that --categorical names read as such; identifiers pointed out."""
    chosen = set(_listed_columns(sheet, options.categorical, "--categorical"))
    with blamed_on(sheet.path):
        columns = tuple(
            as_kind(column, CATEGORICAL) if column.name in chosen else column
            for column in table.columns
        )
    for column in columns:
        n_levels = len(column.levels or ())
        if n_levels >= max(_LEAST_IDENTIFIER_ROWS, _IDENTIFIER_SHARE * table.n_rows):
            say_error(
                f"note: {sheet.path}: column {column.name!r} has {n_levels:,} different values in "
                f"{table.n_rows:,} rows; if it is an identifier, leave it out with "
                f"--drop {_quoted(column.name)}"
            )
    return replace(table, columns=columns)


def _quoted(name: str) -> str:
    return name if name.replace("_", "").isalnum() else repr(name)


def _task(sheet: Sheet, target: Column, asked: str) -> tuple[str, str]:
    """Classification or regression, and why."""
    n_missing = int(target.missing.sum())
    if n_missing:
        first = int(target.missing.argmax()) + 1
        raise CommandError(
            f"{sheet.path}: {n_missing:,} of {sheet.n_rows:,} cells of the target "
            f"{target.name!r} are missing (the first in row {first:,} after the header): remove "
            "these rows"
        )
    if target.levels is not None:
        if asked == REGRESSION:
            raise CommandError(
                f"{sheet.path}: the target {target.name!r} holds {target.levels[0]!r}, which is "
                "no number: convert it, or use --task classification"
            )
        reason = f"{target.name!r} holds {'truth values' if target.kind == 'boolean' else 'text'}"
        return CLASSIFICATION, "as asked" if asked != "auto" else reason
    if asked != "auto":
        return asked, "as asked"
    distinct = np.unique(target.values)
    whole = bool(np.all(distinct == np.round(distinct)))
    few = len(distinct) <= (_MOST_NUMBERED_CLASSES if whole else 2)
    kind = "whole numbers" if whole else "numbers"
    reason = f"{target.name!r} holds {len(distinct):,} different {kind}"
    return (CLASSIFICATION if few else REGRESSION), reason


def _labels(sheet: Sheet, target: Column, task: str) -> NDArray[Any]:
    """The target as an array: numbers, or labels."""
    if task == REGRESSION:
        return target.values
    column = as_kind(target, CATEGORICAL) if target.kind == NUMERIC else target
    assert column.levels is not None
    codes = column.values
    present = np.unique(codes)
    if len(present) < 2:
        raise CommandError(
            f"{sheet.path}: the target {target.name!r} is {column.levels[codes[0]]!r} in every "
            "row: there is nothing to tell apart; add rows of another class"
        )
    if len(present) == sheet.n_rows:
        raise CommandError(
            f"{sheet.path}: the target {target.name!r} is different in every row, so no class "
            "can be learnt; name another column, or use --task regression if it is a number"
        )
    return np.array(column.levels)[codes]


def _describe(
    sheet: Sheet, table: Table, target: str, y: NDArray[Any], task: str, reason: str
) -> None:
    kinds = Counter(column.kind for column in table.columns)
    counts = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    n_missing = sum(int(column.missing.sum()) for column in table.columns)
    missing = f"{n_missing:,} missing cells" if n_missing else "no missing cells"
    columns = "column" if len(table.columns) == 1 else "columns"
    say_labelled(
        "Data",
        f"{sheet.path}: {table.n_rows:,} rows, {len(table.columns):,} {columns} beside the target "
        f"({counts}), {missing}",
    )
    if task == CLASSIFICATION:
        labels, counted = np.unique(y, return_counts=True)
        shown = [f"{label} ({count:,})" for label, count in zip(labels[:8], counted, strict=False)]
        more = f" and {len(labels) - 8} more" if len(labels) > 8 else ""
        say_labelled("Target", f"{target}: {', '.join(shown)}{more}")
    else:
        say_labelled("Target", f"{target}: {y.min():.6g} to {y.max():.6g}, mean {y.mean():.6g}")
    hint = "" if reason == "as asked" else " (--task overrides this)"
    say_labelled("Task", f"{task}, because {reason}{hint}" if hint else f"{task}, as asked")


# ------------------------------------------------------------------------------------ learning


def _split(everything: _Rows, task: str, options: Namespace) -> tuple[_Rows, _Rows | None]:
    """The rows to learn from and, with --holdout, those set aside."""
    if options.holdout is None:
        return everything, None
    with blamed_on("--holdout"):
        fit, aside = train_test_split(
            np.arange(len(everything.y)),
            test_size=options.holdout,
            random_state=options.seed,
            stratify=everything.y if task == CLASSIFICATION else None,
        )
    return everything.take(np.sort(fit)), everything.take(np.sort(aside))


def _estimator(task: str, options: Namespace) -> Any:
    """The estimator that the options describe; what they leave open keeps its default."""
    if options.loss is not None and options.loss not in LOSSES[task]:
        raise CommandError(
            f"--loss {options.loss} is not for {task}: choose among {', '.join(LOSSES[task])}"
        )
    given = {
        "length_penalty": options.length_penalty,
        "max_length": options.max_length,
        "n_thresholds": options.thresholds,
        "loss": options.loss,
        "relax": options.relax,
        "time_limit": options.time_limit,
        "n_jobs": options.jobs,
        "random_state": options.seed,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    plain = options.alpha is not None
    if plain:
        if options.folds is not None:
            raise CommandError("--alpha leaves nothing to cross-validate: drop --folds")
        kind = RuleClassifier if task == CLASSIFICATION else RuleRegressor
        return kind(alpha=options.alpha, **chosen)
    chosen["max_rules"] = MAX_RULES if options.max_rules is None else options.max_rules
    if options.folds is not None:
        chosen["cv"] = options.folds
    if task == CLASSIFICATION:
        return RuleClassifierCV(**chosen)
    if options.loss in (None, "squared_error"):
        chosen["scoring"] = "r2"
    return RuleRegressorCV(**chosen)


def _fit(estimator: Any, rows: _Rows, path: str) -> float:
    """Fit; warnings become lines on standard error.  Returns the seconds it took."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, Progress("learning", _HINT) as progress:
        warnings.simplefilter("always")
        estimator.set_callbacks(progress)
        with blamed_on(path):
            estimator.fit(rows.table, rows.y)
    for message in dict.fromkeys(str(entry.message) for entry in caught):
        say_error(f"warning: {' '.join(message.split())}")
    return time.perf_counter() - started


# ------------------------------------------------------------------------------------- showing


def _print_model(
    estimator: Any, seconds: float, fitted_on: _Rows, aside: _Rows | None, options: Namespace
) -> None:
    ensemble = _named_ensemble(estimator, options)
    chosen = "as asked" if options.alpha is not None else "chosen by cross-validation"
    n_rules = len(ensemble)
    say_labelled(
        "Model",
        f"{n_rules} {'rule' if n_rules == 1 else 'rules'}, alpha {estimator.alpha_:.4g} "
        f"{chosen}, in {seconds:.1f} s",
    )
    say()
    say(model_text(ensemble))
    say()
    relaxed = float(getattr(estimator, "relax_", estimator.relax)) > 0.0
    say_labelled("Certificate", certificate_text(estimator.certificate_, relaxed=relaxed))
    say_labelled("Score", _scores(estimator, fitted_on, aside))


def _scores(estimator: Any, fitted_on: _Rows, aside: _Rows | None) -> str:
    parts = []
    best = getattr(estimator, "best_score_", None)
    if best is not None and np.isfinite(best):
        parts.append(
            f"cross-validation: {_SCORE_NAMES[type(estimator), estimator.scoring]} {best:.4g}"
        )
    ensemble = estimator.rules_
    parts.append(f"rows learnt from: {score_text(ensemble, fitted_on.table, fitted_on.y)}")
    if aside is not None:
        parts.append(
            f"{len(aside.y):,} rows set aside: {score_text(ensemble, aside.table, aside.y)}"
        )
    return "; ".join(parts)


_SCORE_NAMES: dict[tuple[type, str | None], str] = {
    (RuleClassifierCV, None): "area under the ROC curve",
    (RuleRegressorCV, "r2"): "R2",
    (RuleRegressorCV, None): "minus the mean loss",
}


def _named_ensemble(estimator: Any, options: Namespace) -> RuleEnsemble:
    """The model; a regression's score is called by the name of the target."""
    ensemble: RuleEnsemble = estimator.rules_
    if ensemble.output == REGRESSION:
        return replace(ensemble, outputs=(options.target,))
    return ensemble


def _save(estimator: Any, options: Namespace) -> None:
    if options.model is None:
        say_labelled("Saved", "nothing; add  --model model.json  to keep the model")
        return
    write_text(options.model, _named_ensemble(estimator, options).to_json())
    say_labelled("Saved", options.model)
    say_commands(
        "Next",
        f"latticework predict {options.model} new.csv -o predictions.csv",
        f"latticework rules {options.model} --format sql",
    )
