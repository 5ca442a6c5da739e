"""Rules as a Markdown table (GitHub's dialect)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latticework.rules.export.presentation import Line, sheet_of

if TYPE_CHECKING:
    from latticework.rules.ensemble import RuleEnsemble

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")


def ensemble_markdown(ensemble: RuleEnsemble, *, digits: int, sort_by: str | None) -> str:
    """The ensemble as Markdown; parameters as in ``RuleEnsemble.to_text``."""
    sheet = sheet_of(ensemble, digits, sort_by)
    alignment = ["---:"] * ensemble.n_outputs + [":---", "---:", "---:", ":---"]
    rows = [
        [_escaped(header) for header in sheet.headers],
        alignment[: len(sheet.headers)],
        *([*_cells(line), *map(_escaped, sheet.statistics(line))] for line in sheet.lines),
    ]
    table = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([_escaped(sheet.title), "", *table, "", _escaped(sheet.note)])


def _cells(line: Line) -> list[str]:
    spans = [_code(" ".join(token.text for token in clause)) for clause in line.clauses]
    return [*line.weights, " and ".join(spans) or _escaped(line.label)]


def _code(text: str) -> str:
    """A code span: nothing in it is markup, except that a table still splits at bars."""
    runs = {len(run) for run in re.findall("`+", text)}
    fence = "`" * next(length for length in range(1, len(text) + 2) if length not in runs)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}".replace("|", r"\|")


def _escaped(text: str) -> str:
    """Text without markup or HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", text)
