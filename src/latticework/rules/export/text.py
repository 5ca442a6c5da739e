"""Rules as aligned text, for a terminal or a letter."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from latticework.rules.export.presentation import Line, sheet_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from latticework.rules.ensemble import RuleEnsemble

GAP = "  "


def ensemble_text(ensemble: RuleEnsemble, *, digits: int, sort_by: str | None) -> str:
    """The ensemble as text; parameters as in ``RuleEnsemble.to_text``."""
    sheet = sheet_of(ensemble, digits, sort_by)
    rows = [
        sheet.headers,
        *((*line.weights, rule_text(line), *sheet.statistics(line)) for line in sheet.lines),
    ]
    table = aligned(rows, left_aligned={ensemble.n_outputs, ensemble.n_outputs + 3})
    return "\n".join([sheet.title, "", *table, "", sheet.note])


def rule_text(line: Line) -> str:
    """A rule, linear term or intercept in words."""
    texts = [" ".join(token.text for token in clause) for clause in line.clauses]
    return " AND ".join(texts) or line.label


def aligned(rows: Sequence[Sequence[str]], left_aligned: Collection[int]) -> list[str]:
    """Rows of cells as lines; columns are aligned right, but for these positions."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(
            _padded(cell, width, left=k in left_aligned)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _width(text: str) -> int:
    """Columns that a text takes in a terminal: wide characters take two, accents none."""
    return sum(
        0 if combining(character) else 1 + (east_asian_width(character) in "WF")
        for character in text
    )


def _padded(cell: str, width: int, *, left: bool) -> str:
    spaces = " " * (width - _width(cell))
    return cell + spaces if left else spaces + cell
