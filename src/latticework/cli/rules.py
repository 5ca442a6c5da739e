"""``latticework rules``: a model in the language of its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latticework.cli.errors import CommandError, blamed_on
from latticework.cli.models import MODEL_MARK, load_model, model_text
from latticework.cli.outputs import (
    begins_with,
    check_writable,
    refuse_table_ending,
    write_text,
)
from latticework.cli.sheets import STANDARD_STREAM
from latticework.cli.terminal import say

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from latticework.rules.ensemble import RuleEnsemble

_DEFAULT_TABLE = "data"
# How what is written in each format begins: only such a file is written over.
_MARKS = {
    "text": b" = sum of the weights of all lines that hold",
    "markdown": b" = sum of the weights of all lines that hold",
    "sql": b"SELECT\n  t.*,",
    "json": MODEL_MARK,
    "latex": b"% needs \\usepackage{booktabs,textcomp}\n\\begin{tabular}",
    "python": b"def decision_function(row: dict)",
}
_ENDINGS = {
    "text": ".txt", "markdown": ".md", "sql": ".sql", "json": ".json", "latex": ".tex",
    "python": ".py",
}  # fmt: skip


def run(options: Namespace) -> None:
    """Write the rules in the format asked for."""
    if options.table is not None and options.format != "sql":
        raise CommandError(f"--table is for --format sql, not for --format {options.format}")
    parts = (options.table or _DEFAULT_TABLE).split(".")
    if not all(parts):
        raise CommandError(f"--table {options.table!r} is neither 'table' nor 'schema.table'")
    _check_output(options)
    ensemble = load_model(options.model)
    if options.format == "text" and options.output == STANDARD_STREAM:
        say(model_text(ensemble))
        return
    with blamed_on(options.model):
        text = _exported(ensemble, options.format, parts)
    write_text(options.output, text.rstrip("\n") + "\n")


def _check_output(options: Namespace) -> None:
    refuse_table_ending(
        options.output, f"--format {options.format} is none", _ENDINGS[options.format]
    )
    mark = _MARKS[options.format]
    check_writable(options.output, [options.model], lambda path: begins_with(path, mark))


def _exported(ensemble: RuleEnsemble, wanted: str, table: Sequence[str]) -> str:
    if wanted == "sql":
        return ensemble.to_sql(table)
    if wanted == "json":
        return ensemble.to_json()
    if wanted == "python":
        return ensemble.to_python()
    export = {
        "text": ensemble.to_text, "markdown": ensemble.to_markdown, "latex": ensemble.to_latex
    }  # fmt: skip
    return export[wanted](sort_by="importance")
