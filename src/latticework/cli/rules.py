"""``latticework rules``: a model in the language of its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latticework.cli.errors import CommandError, blamed_on
from latticework.cli.models import load_model, model_text
from latticework.cli.sheets import STANDARD_STREAM, check_writable, write_text
from latticework.cli.terminal import say

if TYPE_CHECKING:
    from argparse import Namespace

    from latticework.rules.ensemble import RuleEnsemble

_DEFAULT_TABLE = "data"


def run(options: Namespace) -> None:
    """Write the rules in the format asked for."""
    if options.table is not None and options.format != "sql":
        raise CommandError(f"--table is for --format sql, not for --format {options.format}")
    check_writable(options.output, keep=[options.model])
    ensemble = load_model(options.model)
    if options.format == "text" and options.output == STANDARD_STREAM:
        say(model_text(ensemble))
        return
    with blamed_on(options.model):
        text = _exported(ensemble, options.format, options.table or _DEFAULT_TABLE)
    write_text(options.output, text.rstrip("\n") + "\n")


def _exported(ensemble: RuleEnsemble, wanted: str, table: str) -> str:
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
