"""Rules as a LaTeX table in the style of the booktabs package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latticework.rules.export.presentation import Line, sheet_of
from latticework.rules.wording import OPERATOR, Token

if TYPE_CHECKING:
    from latticework.rules.ensemble import RuleEnsemble

OPERATORS = {"<=": r"$\le$", "<": "$<$", ">": "$>$", "==": "$=$", "!=": r"$\neq$"}

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    # Brackets would be read as the optional argument of a line break before them.
    "[": "{[}",
    "]": "{]}",
    "`": r"\textasciigrave{}",
}


def ensemble_latex(ensemble: RuleEnsemble, *, digits: int, sort_by: str | None) -> str:
    """The ensemble as LaTeX; parameters as in ``RuleEnsemble.to_text``."""
    sheet = sheet_of(ensemble, digits, sort_by)
    rows = [[*_cells(line), *map(escaped, sheet.statistics(line))] for line in sheet.lines]
    n_columns = len(sheet.headers)
    alignment = ("r" * ensemble.n_outputs + "lrrl")[:n_columns]
    note = rf"\multicolumn{{{n_columns}}}{{l}}{{\footnotesize {escaped(sheet.note)}}} \\"
    return "\n".join(
        [
            r"% needs \usepackage{booktabs,textcomp}",
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            " & ".join(map(escaped, sheet.headers)) + r" \\",
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in rows),
            r"\bottomrule",
            note,
            r"\end{tabular}",
        ]
    )


def _cells(line: Line) -> list[str]:
    texts = [" ".join(map(_token, clause)) for clause in line.clauses]
    rule = r" \textsc{and} ".join(texts) or escaped(line.label)
    return [*(f"${weight}$" for weight in line.weights), rule]


def _token(token: Token) -> str:
    if token.role == OPERATOR:
        return OPERATORS.get(token.text, token.text)
    return escaped(token.text)


def escaped(text: str) -> str:
    r"""Text in which LaTeX sees no command.

    Examples
    --------
    >>> escaped("50% of $x_1")
    '50\\% of \\$x\\_1'
    """
    plain = "".join(_SPECIAL.get(character, character) for character in text)
    # Two in a row would become a dash or a curly quote.
    return plain.replace("--", "-{}-{}").replace("''", "'{}'{}")
