"""Rules as one SELECT in standard SQL.

Three things deserve care.  Missing cells are NULL, and a comparison with NULL is not true, which
is what a rule wants.  Numbers are written with an exponent, for otherwise ``0.1`` is a decimal
fraction and not a floating-point number.  And sums are grouped, for parsers limit the depth of an
expression and ``a + b + c + ...`` is as deep as it is long.
"""

from __future__ import annotations

from fractions import Fraction
from math import ulp
from typing import TYPE_CHECKING

from latticework.rules.cells import BOOLEAN, NUMERIC
from latticework.rules.conditions import IS_MISSING, IS_TRUE, LESS_EQUAL, Condition, Value
from latticework.rules.evaluate import satisfies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latticework.rules.ensemble import RuleEnsemble
    from latticework.rules.terms import LinearTerm

# Terms of a sum that stand in one pair of parentheses: the square root of what parsers allow.
TERMS_PER_GROUP = 30

OPERATORS = {"==": "=", "!=": "<>", "<=": "<=", ">": ">"}
NAN = "CAST('NaN' AS DOUBLE PRECISION)"


def ensemble_sql(
    ensemble: RuleEnsemble, table: str | Sequence[str], *, stored_nan: bool = False
) -> str:
    """The ensemble as SQL; parameters as in ``RuleEnsemble.to_sql``."""
    parts = [table] if isinstance(table, str) else list(table)
    columns = _Columns(ensemble, stored_nan)
    names = ["score"]
    if ensemble.n_outputs > 1:
        names = [f"score_{output}" for output in ensemble.outputs]
    scores = [
        f"{_score(ensemble, columns, t)}\n  AS {identifier(name)}" for t, name in enumerate(names)
    ]
    selected = ",\n  ".join(["t.*", *scores])
    return f"SELECT\n  {selected}\nFROM {'.'.join(map(identifier, parts))} AS t"


class _Columns:
    """How the columns of an ensemble's features are written."""

    def __init__(self, ensemble: RuleEnsemble, stored_nan: bool) -> None:
        self.kinds: Mapping[str, str] = dict(
            zip(ensemble.feature_names, ensemble.feature_kinds, strict=True)
        )
        self.stored_nan = stored_nan

    def __getitem__(self, feature: str) -> str:
        """A column for comparisons: booleans become the numbers 0 and 1."""
        column = self.as_stored(feature)
        return f"CAST({column} AS INTEGER)" if self.kinds[feature] == BOOLEAN else column

    def as_stored(self, feature: str) -> str:
        """A column that is NULL where its cell is missing."""
        # Qualified, for SQLite takes an unknown name in double quotes for a string.
        column = f"t.{identifier(feature)}"
        if self.kinds[feature] == NUMERIC and self.stored_nan:
            return f"NULLIF({column}, {NAN})"
        return column


def _score(ensemble: RuleEnsemble, columns: _Columns, t: int) -> str:
    terms = [float_literal(ensemble.intercept[t])]
    for rule in ensemble.rules:
        if rule.weights[t]:
            holds = " AND ".join(_test(c, columns) for c in rule.conditions) or "1 = 1"
            terms.append(f"CASE WHEN {holds} THEN {float_literal(rule.weights[t])} ELSE 0e0 END")
    terms += [_linear(term, columns, t) for term in ensemble.linear_terms if term.weights[t]]
    return grouped_sum(terms)


def _test(condition: Condition, columns: _Columns) -> str:
    column = columns[condition.feature]
    if condition.operator == IS_MISSING:
        return f"{columns.as_stored(condition.feature)} IS NULL"
    if condition.operator == IS_TRUE:
        return f"{column} = 1"
    if condition.order is not None:
        levels = [level for level in condition.order if satisfies(level, condition)]
        return f"{column} IN ({', '.join(map(literal, levels))})" if levels else "1 = 0"
    return f"{column} {OPERATORS[condition.operator]} {literal(condition.value)}"


def _linear(term: LinearTerm, columns: _Columns, t: int) -> str:
    """A linear term; its clipped ends are thresholds as in a condition."""
    column, weight = columns[term.feature], term.weights[t]
    mean, scale = float_literal(term.mean), float_literal(term.scale)
    low, high = float_literal(term.low), float_literal(term.high)
    return (
        f"CASE WHEN {column} IS NULL THEN 0e0 ELSE {float_literal(weight)} * ("
        f"CASE WHEN {column} {LESS_EQUAL} {low} THEN {low} WHEN {column} > {high} THEN {high} "
        f"ELSE {column} END - ({mean})) / {scale} END"
    )


def grouped_sum(terms: Sequence[str], indent: str = "  ") -> str:
    """Terms added in nested groups, so that the depth grows with the logarithm of their number.

    Examples
    --------
    >>> print(grouped_sum(["1e0", "x", "y"]))
    1e0
      + x
      + y
    """
    size = 1
    while size * TERMS_PER_GROUP < len(terms):
        size *= TERMS_PER_GROUP
    if size == 1:
        return f"\n{indent}+ ".join(terms)
    groups = [terms[start : start + size] for start in range(0, len(terms), size)]
    inner = indent + "  "
    return f"\n{indent}+ ".join(f"({grouped_sum(group, inner)})" for group in groups)


def identifier(name: str) -> str:
    r'''A name of a table or column, quoted.

    Examples
    --------
    >>> print(identifier('"x" of y'))
    """x"" of y"
    '''
    _refuse_null(name)
    return '"' + name.replace('"', '""') + '"'


def literal(value: Value) -> str:
    """A level or threshold.

    Examples
    --------
    >>> print(literal("it's"), literal(True), literal(50), literal(0.1))
    'it''s' 1 50 0.1e0
    """
    if isinstance(value, str):
        _refuse_null(value)
        return "'" + value.replace("'", "''") + "'"
    number = float(value or 0)
    # Small whole numbers are exact in every numeric type, the shortest floats included.
    if number.is_integer() and abs(number) <= 2**24:
        return str(int(number))
    return float_literal(number)


def float_literal(number: float) -> str:
    """A double-precision literal that every correct or nearly correct parser reads as ``number``.

    Its shortest form is taken unless that lies next to the midpoint of two doubles, where parsers
    that round twice (SQLite before 3.42) go wrong; then 17 digits are.

    Examples
    --------
    >>> print(float_literal(0.5), float_literal(-12.0), float_literal(7613.087446))
    0.5e0 -12.0e0 7613.0874460000005e0
    """
    shortest = repr(float(number))
    away = abs(Fraction(shortest) - Fraction(number))
    text = shortest if away <= Fraction(ulp(number)) * Fraction("0.49") else f"{number:.17g}"
    return text if "e" in text else f"{text}e0"


def _refuse_null(text: str) -> None:
    if "\0" in text:
        raise ValueError(f"SQL text cannot hold the null character of {text!r}: remove it.")
