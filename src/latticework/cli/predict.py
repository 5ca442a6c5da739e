"""``latticework predict``: a model's predictions for the rows of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latticework.cli.errors import CommandError, blamed_on, optional
from latticework.cli.models import load_model
from latticework.cli.outputs import check_table_file, write_columns
from latticework.cli.sheets import STANDARD_STREAM, open_sheet, require_columns
from latticework.cli.terminal import say_error
from latticework.rules.columns import Table
from latticework.rules.statistics import BINARY, MULTICLASS, MULTILABEL, REGRESSION

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from latticework.cli.sheets import Sheet
    from latticework.rules.ensemble import RuleEnsemble

    NamedColumns = Iterator[tuple[str, list[Any]]]


def run(options: Namespace) -> None:
    """Read, predict, write."""
    check_table_file(options.output, [options.model, options.data], _are_predictions)
    ensemble = load_model(options.model)
    sheet = open_sheet(options.data, options.missing)
    require_columns(sheet, options.id, "which --id names")
    with blamed_on(sheet.path):
        table = read_for(ensemble, sheet)
        found = [*_predictions(ensemble, table)]
        if options.explain:
            found += _contributions(ensemble, table)
    columns = {name: sheet.cells(name) for name in options.id}
    for name, values in found:
        if name in columns:
            raise CommandError(
                f"{sheet.path}: the --id column {name!r} has the name of a column of the output: "
                "rename it"
            )
        columns[name] = values
    write_columns(options.output, columns)
    if options.output != STANDARD_STREAM:
        say_error(f"{sheet.n_rows:,} predictions in {options.output}")


def _are_predictions(names: list[str]) -> bool:
    """Whether a table with these columns is one of predictions."""
    return any(name.partition("_")[0] == "prediction" for name in names)


def read_for(ensemble: RuleEnsemble, sheet: Sheet) -> Table:
    """The columns that a model uses, read as it reads them."""
    used = [
        (name, kind)
        for name, kind in zip(ensemble.feature_names, ensemble.feature_kinds, strict=True)
        if name in ensemble.used_features
    ]
    require_columns(sheet, [name for name, _ in used], "which the model's rules use")
    levels: dict[str, list[Any]] = {name: [] for name, _ in used}
    for rule in ensemble:
        for condition in rule.conditions:
            levels[condition.feature].append(condition.value)
    columns = tuple(sheet.column_as(name, kind, levels[name]) for name, kind in used)
    return Table(columns, sheet.n_rows)


def _predictions(ensemble: RuleEnsemble, table: Table) -> NamedColumns:
    """Predictions, then probabilities where the model has them and scores where not."""
    several = ensemble.output == MULTILABEL or (
        ensemble.output == REGRESSION and ensemble.n_outputs > 1
    )
    names = [f"_{name}" for name in ensemble.outputs] if several else [""]
    yield from _named("prediction", names, ensemble.predict(table))
    if ensemble.output == REGRESSION:
        return
    if ensemble.link is not None:
        classes = ensemble.classes if ensemble.output in (BINARY, MULTICLASS) else ensemble.outputs
        labels = [f"_{label}" for label in classes or ()]
        yield from _named("probability", labels, ensemble.predict_proba(table))
    else:
        yield from _scores(ensemble, table)


def _scores(ensemble: RuleEnsemble, table: Table) -> NamedColumns:
    outputs = ensemble.outputs if ensemble.n_outputs > 1 else ()
    names = [f"_{name}" for name in outputs] or [""]
    yield from _named("score", names, ensemble.decision_function(table))


def _named(what: str, names: list[str], values: Any) -> NamedColumns:
    """Columns of an array (n,) or (n, k), as plain Python values."""
    matrix = np.asarray(values).reshape(len(values), len(names))
    for name, column in zip(names, matrix.T, strict=True):
        yield what + name, column.tolist()


def _contributions(ensemble: RuleEnsemble, table: Table) -> list[tuple[str, list[Any]]]:
    """The scores, and what each rule and the intercept add to them."""
    optional("pandas", "--explain")
    columns = [] if ensemble.link is None and ensemble.output != REGRESSION else [
        *_scores(ensemble, table)
    ]  # fmt: skip
    frame = ensemble.explain(table)
    for label in frame.columns:
        name = label if isinstance(label, str) else f"{label[0]} [{label[1]}]"
        columns.append(
            (name, (frame[label] + 0.0).tolist())
        )  # 0 for rules that say nothing, not -0
    return columns
