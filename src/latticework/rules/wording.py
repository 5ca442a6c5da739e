"""How conditions read: tokens that each export dresses in its own way.

``30 < age <= 50`` is one clause made of two conditions.  A clause is a list of tokens; text joins
them with spaces, LaTeX and HTML replace the operators and escape the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from json import dumps
from typing import TYPE_CHECKING

from latticework.rules.conditions import (
    GREATER,
    IS_MISSING,
    IS_TRUE,
    LESS_EQUAL,
    Condition,
    format_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FEATURE, OPERATOR, VALUE = "feature", "operator", "value"
ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a clause.

    Parameters
    ----------
    role : {"feature", "operator", "value"}
        What the word is.
    text : str
        How it reads.
    """

    role: str
    text: str


def visible(text: str) -> str:
    """A name or level as it is, or quoted when line breaks and the like would garble the line.

    Examples
    --------
    >>> visible("blood pressure"), visible("two\\nlines")
    ('blood pressure', '"two\\\\nlines"')
    """
    return text if text.isprintable() and text else dumps(text)


def clauses(conditions: Sequence[Condition]) -> list[list[Token]]:
    """Conditions as clauses, in order; ``x > a`` followed by ``x <= b`` becomes one interval.

    Examples
    --------
    >>> [clause] = clauses([Condition("age", ">", 30), Condition("age", "<=", 50)])
    >>> " ".join(token.text for token in clause)
    '30 < age <= 50'
    """
    return [clause for group in _by_feature(conditions) for clause in _group_clauses(group)]


def _by_feature(conditions: Sequence[Condition]) -> Iterator[list[Condition]]:
    for _, group in groupby(conditions, key=lambda condition: condition.feature):
        yield list(group)


def _group_clauses(group: list[Condition]) -> Iterator[list[Token]]:
    """Clauses of adjacent conditions on one feature."""
    while group:
        if is_interval(group[:2]):
            yield _interval(*group[:2])
            group = group[2:]
        else:
            yield _clause(group[0])
            group = group[1:]


def is_interval(pair: Sequence[Condition]) -> bool:
    """Whether two conditions are the two ends ``>`` and ``<=`` of one scale."""
    return [c.operator for c in pair] == [GREATER, LESS_EQUAL] and pair[0].order == pair[1].order


def _interval(above: Condition, below: Condition) -> list[Token]:
    return [
        Token(VALUE, visible(format_value(above.value))),
        Token(OPERATOR, "<"),
        Token(FEATURE, visible(above.feature)),
        Token(OPERATOR, LESS_EQUAL),
        Token(VALUE, visible(format_value(below.value))),
    ]


def _clause(condition: Condition) -> list[Token]:
    tokens = [Token(FEATURE, visible(condition.feature))]
    if condition.operator == IS_TRUE:
        return tokens  # the name alone is the statement
    tokens.append(Token(OPERATOR, condition.operator))
    if condition.operator != IS_MISSING:
        tokens.append(Token(VALUE, visible(format_value(condition.value))))
    return tokens


def conjunction_text(conditions: Sequence[Condition]) -> str:
    """Conditions as one line of text.

    Examples
    --------
    >>> conjunction_text([Condition("age", ">", 50), Condition("bp", "==", "high")])
    'age > 50 AND bp == high'
    """
    texts = [" ".join(token.text for token in clause) for clause in clauses(conditions)]
    return " AND ".join(texts) if texts else ALWAYS


def distinct_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names, with `` (2)``, `` (3)`` added to those that came before.

    Examples
    --------
    >>> distinct_names(["a", "b", "a"])
    ('a', 'b', 'a (2)')
    """
    distinct: dict[str, None] = {}
    for name in names:
        candidate, times = name, 1
        while candidate in distinct:
            times += 1
            candidate = f"{name} ({times})"
        distinct[candidate] = None
    return tuple(distinct)
