"""Rules as a self-contained HTML table, which notebooks show."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from latticework.rules.export.presentation import Line, sheet_of
from latticework.rules.wording import FEATURE, OPERATOR, Token

if TYPE_CHECKING:
    from latticework.rules.ensemble import RuleEnsemble

SIGNS = {"<=": "≤", "!=": "≠", "==": "="}

# Colours with enough contrast on light and dark pages; everything else follows the page.
STYLE = """
.latticework { border-collapse: collapse; font-size: 0.9em; }
.latticework caption { text-align: left; padding: 0.3em 0.6em; font-weight: bold; }
.latticework th, .latticework td { text-align: right; padding: 0.25em 0.6em; }
.latticework th { border-bottom: 1px solid currentColor; }
.latticework .rule, .latticework .vote { text-align: left; }
.latticework .weight { font-variant-numeric: tabular-nums; white-space: nowrap; }
.latticework .bar { display: block; height: 3px; margin-left: auto; }
.latticework .positive { background: #2a7fb8; }
.latticework .negative { background: #d95f30; }
.latticework .feature { font-weight: 600; }
.latticework .and { opacity: 0.6; font-variant: small-caps; }
.latticework .note td { text-align: left; opacity: 0.8; border-top: 1px solid currentColor; }
"""


def ensemble_html(ensemble: RuleEnsemble) -> str:
    """The ensemble as an HTML fragment without scripts or outside resources."""
    sheet = sheet_of(ensemble, digits=3, sort_by=None)
    kinds = ["weight"] * ensemble.n_outputs + ["rule", "support", "quality", "vote"]
    header = "".join(
        f'<th class="{kind}">{escape(text)}</th>'
        for kind, text in zip(kinds, sheet.headers, strict=False)
    )
    rows = "\n".join(
        f"<tr>{_row(line)}{''.join(map(_cell, kinds[-3:], sheet.statistics(line)))}</tr>"
        for line in sheet.lines
    )
    return (
        f"<style>{STYLE}</style>\n"
        f'<table class="latticework">\n<caption>{escape(sheet.title)}</caption>\n'
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}\n"
        f'<tr class="note"><td colspan="{len(sheet.headers)}">{escape(sheet.note)}</td></tr>\n'
        "</tbody>\n</table>"
    )


def _row(line: Line) -> str:
    weights = "".join(map(_weight, line.weights, line.strengths))
    texts = [" ".join(map(_token, clause)) for clause in line.clauses]
    rule = ' <span class="and">and</span> '.join(texts) or escape(line.label)
    return f'{weights}<td class="rule">{rule}</td>'


def _cell(kind: str, text: str) -> str:
    return f'<td class="{kind}">{escape(text)}</td>'


def _weight(text: str, strength: float) -> str:
    sign = "positive" if strength > 0 else "negative"
    bar = f'<span class="bar {sign}" style="width: {abs(strength):.0%}"></span>' if strength else ""
    return f'<td class="weight">{escape(text)}{bar}</td>'


def _token(token: Token) -> str:
    if token.role == OPERATOR:
        return escape(SIGNS.get(token.text, token.text))
    text = escape(token.text)
    return f'<span class="feature">{text}</span>' if token.role == FEATURE else text
