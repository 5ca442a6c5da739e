"""``latticework learn``: from a table to a model in a file."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import train_test_split

from latticework.cli.arguments import HINGES, LOSSES
from latticework.cli.errors import CommandError, blamed_on
from latticework.cli.models import certificate_text, check_model_file, model_text
from latticework.cli.outputs import write_text
from latticework.cli.scores import score_text
from latticework.cli.sheets import open_sheet, require_columns, table_of
from latticework.cli.targets import CLASSIFICATION, REGRESSION, labels_of, task_of
from latticework.cli.terminal import (
    Interrupt,
    Progress,
    say,
    say_commands,
    say_error,
    say_labelled,
    say_list,
)
from latticework.estimators.assembly import take_rows
from latticework.estimators.cv import RuleClassifierCV, RuleRegressorCV
from latticework.estimators.rules import RuleClassifier, RuleRegressor
from latticework.exceptions import CertificateWarning
from latticework.rules.cells import CATEGORICAL, as_kind
from latticework.solvers.result import INTERRUPTED, TIME_LIMIT

if TYPE_CHECKING:
    from argparse import Namespace

    from numpy.typing import NDArray

    from latticework.cli.sheets import Sheet
    from latticework.rules.columns import Table
    from latticework.rules.ensemble import RuleEnsemble

MAX_RULES = 20
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
        check_model_file(options.model, keep=[options.data])
    sheet = open_sheet(options.data, options.missing)
    require_columns(sheet, [options.target], "which --target names")
    names = _wanted_columns(sheet, options)
    with blamed_on(sheet.path):
        target = sheet.column(options.target)
    task, reason = task_of(sheet, target, options.task)
    y = labels_of(sheet, target, task)
    table = _with_categories(table_of(sheet, names), sheet, options)
    estimator = _estimator(task, y, options)
    _note_odd_columns(sheet, [options.target, *names])
    _note_identifiers(sheet, table)
    _describe(sheet, table, target.name, y, task, reason)
    everything = _Rows(table, y)
    fitted_on, aside = _split(everything, task, options)
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
    """The table with the columns that --categorical names read as such."""
    chosen = set(_listed_columns(sheet, options.categorical, "--categorical"))
    with blamed_on(sheet.path):
        columns = tuple(
            as_kind(column, CATEGORICAL) if column.name in chosen else column
            for column in table.columns
        )
    return replace(table, columns=columns)


def _note_odd_columns(sheet: Sheet, names: list[str]) -> None:
    """Point out columns that a few cells keep from being numbers."""
    for name in names:
        advice = sheet.why_text(name)
        if advice:
            say_error(f"note: {sheet.path}: column {name!r} is read as text, not as numbers, "
                      f"because {advice}")  # fmt: skip


def _note_identifiers(sheet: Sheet, table: Table) -> None:
    for column in table.columns:
        n_levels = len(column.levels or ())
        if n_levels >= max(_LEAST_IDENTIFIER_ROWS, _IDENTIFIER_SHARE * table.n_rows):
            say_error(
                f"note: {sheet.path}: column {column.name!r} has {n_levels:,} different values in "
                f"{table.n_rows:,} rows; if it is an identifier, leave it out with "
                f"--drop {_quoted(column.name)}"
            )


def _quoted(name: str) -> str:
    return name if name.replace("_", "").isalnum() else repr(name)


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
    n_rows = len(everything.y)
    try:
        fit, aside = train_test_split(
            np.arange(n_rows),
            test_size=options.holdout,
            random_state=options.seed,
            stratify=everything.y if task == CLASSIFICATION else None,
        )
    except ValueError as error:
        raise CommandError(
            f"--holdout {options.holdout:g}: {n_rows:,} rows cannot be divided so that both parts "
            "have rows of every class: choose another share, or leave --holdout out"
        ) from error
    return everything.take(np.sort(fit)), everything.take(np.sort(aside))


def _estimator(task: str, y: NDArray[Any], options: Namespace) -> Any:
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
    if task == CLASSIFICATION and options.loss in HINGES and len(np.unique(y)) > 2:
        chosen["multiclass"] = "one-vs-rest"  # the only form that these losses have
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
    interrupt = Interrupt()
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            interrupt,
            Progress("learning", interrupt) as progress,
            blamed_on(path),
        ):
            warnings.simplefilter("always")
            estimator.set_callbacks(progress)
            estimator.fit(rows.table, rows.y)
    except Exception as error:
        if interrupt.asked:  # whatever a second Ctrl-C broke
            raise KeyboardInterrupt from error
        raise
    stopped = _why_stopped(estimator)
    texts = [
        " ".join(str(warning.message).split())
        for warning in caught
        if not (stopped and issubclass(warning.category, CertificateWarning))
    ]
    for text in dict.fromkeys([*texts, stopped]):
        if text:
            say_error(f"warning: {text}")
    return time.perf_counter() - started


def _why_stopped(estimator: Any) -> str:
    """What ended a fit before its work was done and what that means; empty for others."""
    if estimator.status_ not in (INTERRUPTED, TIME_LIMIT):
        return ""
    cause = "Ctrl-C"
    if estimator.status_ == TIME_LIMIT:
        cause = f"--time-limit {estimator.time_limit:g}"
    text = (
        f"stopped by {cause}: this is the best model so far; its certificate says how far it can "
        "be from the optimum"
    )
    n_folds = _folds_scored(estimator)
    if n_folds is None or n_folds == estimator.n_splits_:
        return text
    return f"{text}, and it was chosen after {n_folds} of {estimator.n_splits_} folds"


def _folds_scored(estimator: Any) -> int | None:
    """On how many folds models were compared; None without cross-validation."""
    results = getattr(estimator, "cv_results_", None)
    if results is None:
        return None
    folds = [results[f"split{k}_test_score"] for k in range(estimator.n_splits_)]
    return sum(bool(np.isfinite(scores).any()) for scores in folds)


# ------------------------------------------------------------------------------------- showing


def _print_model(
    estimator: Any, seconds: float, fitted_on: _Rows, aside: _Rows | None, options: Namespace
) -> None:
    ensemble = _named_ensemble(estimator, options)
    n_folds = _folds_scored(estimator)
    chosen = "as asked" if n_folds is None else "chosen by cross-validation"
    if n_folds == 0:
        chosen = "chosen without cross-validation"
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
    if n_rules == 0:
        say_labelled("No rules", _why_empty(estimator, options))
    say_list("Score", _scores(estimator, fitted_on, aside))


def _why_empty(estimator: Any, options: Namespace) -> str:
    if estimator.certificate_.lattice_size == 1:
        return "no column has two different values, so there is nothing that a rule could ask"
    if options.alpha is not None:
        return "at this alpha no rule is worth its penalty: choose a smaller --alpha"
    if options.max_rules == 0:
        return "as --max-rules 0 asks"
    return (
        "none predicts rows that it was not learnt from better than the intercept alone; more rows "
        "or other columns may help"
    )


def _scores(estimator: Any, fitted_on: _Rows, aside: _Rows | None) -> list[str]:
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
    return parts


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
