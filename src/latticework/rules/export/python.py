"""Rules as the source of a Python function that needs nothing but Python."""

from __future__ import annotations

import builtins
import keyword
from typing import TYPE_CHECKING

from latticework.rules.cells import NUMERIC
from latticework.rules.conditions import IS_MISSING, IS_TRUE, Condition, Value
from latticework.rules.evaluate import satisfies
from latticework.rules.wording import is_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latticework.rules.ensemble import RuleEnsemble
    from latticework.rules.rule import Rule
    from latticework.rules.terms import LinearTerm

# Names that the function itself uses, or that a reader would misread.
_RESERVED = {*keyword.kwlist, *dir(builtins), "decision_function", "nan", "row", "score", "scores"}


def ensemble_python(ensemble: RuleEnsemble) -> str:
    """The ensemble as source code, described at ``RuleEnsemble.to_python``."""
    kinds = dict(zip(ensemble.feature_names, ensemble.feature_kinds, strict=True))
    used = [name for name in ensemble.feature_names if name in ensemble.used_features]
    variables = _variables(used)
    single = ensemble.n_outputs == 1
    intercept = repr(ensemble.intercept[0] if single else list(ensemble.intercept))
    lines = [
        "from math import nan",
        "",
        "",
        f"def decision_function(row: dict) -> {'float' if single else 'list[float]'}:",
        f'    """{_docstring(ensemble)}"""',
        *(_reading(variables[name], name, kinds[name]) for name in used),
        f"    {'score' if single else 'scores'} = {intercept}",
    ]
    for rule in ensemble.rules:
        lines += _rule(rule, variables, kinds)
    for term in ensemble.linear_terms:
        lines += _linear(term, variables[term.feature])
    return "\n".join([*lines, f"    return {'score' if single else 'scores'}", ""])


def _docstring(ensemble: RuleEnsemble) -> str:
    what = "Score" if ensemble.n_outputs == 1 else f"{ensemble.n_outputs} scores"
    return f"{what} of a row, a dict from column to value; missing cells are None or NaN."


def _variables(features: Sequence[str]) -> Mapping[str, str]:
    """A variable for each feature: its name where that is plain, otherwise ``x0, x1, ...``."""
    variables: dict[str, str] = {}
    taken = {*features, *_RESERVED}
    number = 0
    for name in features:
        plain = name.isascii() and name.isidentifier() and name not in _RESERVED
        while not plain and f"x{number}" in taken:
            number += 1
        variables[name] = name if plain else f"x{number}"
        taken.add(variables[name])
    return variables


def _reading(variable: str, feature: str, kind: str) -> str:
    """Missing numbers become NaN, which fails every comparison; other missing cells None."""
    cell = f"row[{feature!r}]"
    if kind == NUMERIC:
        return f"    {variable} = nan if {cell} is None else {cell}"
    return f"    {variable} = {cell} if {cell} == {cell} else None"


def _rule(rule: Rule, variables: Mapping[str, str], kinds: Mapping[str, str]) -> list[str]:
    tests, conditions = [], list(rule.conditions)
    while conditions:
        feature = conditions[0].feature
        taken = 2 if _is_numeric_interval(conditions[:2]) else 1
        tests.append(_test(conditions[:taken], variables[feature], kinds[feature]))
        conditions = conditions[taken:]
    return [f"    if {' and '.join(tests) or 'True'}:", *_additions(rule.weights, "{}")]


def _additions(weights: Sequence[float], product: str) -> list[str]:
    """Statements that add a multiple of each weight to its score."""
    if len(weights) == 1:
        return [f"        score += {product.format(repr(weights[0]))}"]
    added = [
        f"        scores[{t}] += {product.format(repr(weight))}"
        for t, weight in enumerate(weights)
        if weight
    ]
    return added or ["        pass"]


def _is_numeric_interval(pair: Sequence[Condition]) -> bool:
    same = len({condition.feature for condition in pair}) == 1
    return same and is_interval(pair) and pair[0].order is None


def _test(conditions: Sequence[Condition], variable: str, kind: str) -> str:
    condition = conditions[0]
    if len(conditions) == 2:
        return f"{_literal(condition.value)} < {variable} <= {_literal(conditions[1].value)}"
    if condition.operator == IS_MISSING:
        return f"{variable} != {variable}" if kind == NUMERIC else f"{variable} is None"
    if condition.operator == IS_TRUE:
        return f"{variable} == 1"
    if condition.order is not None:
        levels = [_literal(level) for level in condition.order if satisfies(level, condition)]
        return f"{variable} in [{', '.join(levels)}]"
    test = f"{variable} {condition.operator} {_literal(condition.value)}"
    if condition.operator != "!=":
        return test
    present = f"{variable} == {variable}" if kind == NUMERIC else f"{variable} is not None"
    return f"{present} and {test}"


def _linear(term: LinearTerm, variable: str) -> list[str]:
    clipped = f"min(max({variable}, {term.low!r}), {term.high!r})"
    deviation = f"({clipped} - {_parenthesised(term.mean)}) / {term.scale!r}"
    return [f"    if {variable} == {variable}:", *_additions(term.weights, f"{{}} * {deviation}")]


def _parenthesised(number: float) -> str:
    return f"({number!r})" if number < 0 else repr(number)


def _literal(value: Value) -> str:
    """Source of a level or threshold: exact, and never more than a literal."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return repr(int(value))
    return repr(value)
