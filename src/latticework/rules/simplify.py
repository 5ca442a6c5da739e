"""Conjunctions in canonical form: nothing redundant, nothing twice, nothing impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latticework.rules.conditions import (
    EQUAL,
    GREATER,
    IS_MISSING,
    IS_TRUE,
    LESS_EQUAL,
    NOT_EQUAL,
    OPERATORS,
    Condition,
)
from latticework.rules.evaluate import LevelKey, level_key, satisfies

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ContradictionError(ValueError):
    """A conjunction that no row can satisfy."""


def simplify(
    conditions: Iterable[Condition], features: Sequence[str] | None = None
) -> tuple[Condition, ...]:
    """The canonical form of a conjunction: the fewest conditions with the same rows.

    Per feature, the tightest ``<=`` and ``>`` stay; an ``==`` makes the other conditions that it
    implies go; ``!=`` of a level outside the thresholds goes.

    Parameters
    ----------
    conditions : iterable of Condition
        What must hold together.
    features : sequence of str, optional
        Order of the features.  By default the order in which they first appear.

    Returns
    -------
    tuple of Condition
        Grouped by feature; within a feature ``>``, then ``<=``, then the rest.

    Raises
    ------
    ContradictionError
        When no cell of some feature can satisfy all conditions on it.

    Examples
    --------
    >>> for condition in simplify([
    ...     Condition("x", "<=", 5), Condition("colour", "!=", "red"), Condition("x", ">", 1),
    ...     Condition("colour", "==", "blue"), Condition("x", "<=", 3),
    ... ]):
    ...     print(condition.feature, condition.operator, condition.value)
    x > 1
    x <= 3
    colour == blue
    """
    groups: dict[str, list[Condition]] = {}
    for condition in conditions:
        groups.setdefault(condition.feature, []).append(condition)
    if features is not None:
        position = {name: i for i, name in enumerate(features)}
        groups = dict(sorted(groups.items(), key=lambda group: position[group[0]]))
    return tuple(condition for group in groups.values() for condition in _simplify_column(group))


def is_contradictory(conditions: Iterable[Condition]) -> bool:
    """Whether no row can satisfy all conditions.

    Examples
    --------
    >>> is_contradictory([Condition("x", "<=", 1), Condition("x", ">", 1)])
    True
    """
    try:
        simplify(conditions)
    except ContradictionError:
        return True
    return False


def _simplify_column(group: list[Condition]) -> list[Condition]:
    """The canonical conditions on one feature."""
    distinct = list({_key(condition): condition for condition in group}.values())
    operators = {condition.operator for condition in distinct}
    if IS_MISSING in operators:
        if len(distinct) > 1:
            raise _contradiction(distinct)
        return distinct
    equal = [condition for condition in distinct if condition.operator == EQUAL]
    if equal:
        return [_implying_all(equal[0], distinct)]
    kept = _tightest_thresholds(distinct)
    excluded = [condition for condition in distinct if condition.operator == NOT_EQUAL]
    # A level that fails a threshold needs no exclusion.
    kept += [c for c in excluded if all(satisfies(c.value, threshold) for threshold in kept)]
    kept += [condition for condition in distinct if condition.operator == IS_TRUE]
    _refuse_empty_order(kept, distinct)
    return sorted(kept, key=_position)


def _implying_all(equal: Condition, conditions: list[Condition]) -> Condition:
    """The ``==`` that makes the other conditions on its feature superfluous, or impossible."""
    if all(satisfies(equal.value, condition) for condition in conditions):
        return equal
    raise _contradiction(conditions)


def _tightest_thresholds(conditions: list[Condition]) -> list[Condition]:
    """At most one ``>`` and one ``<=`` for each scale (numbers, or one order of levels)."""
    kept = []
    for order in dict.fromkeys(
        _scale(c) for c in conditions if c.operator in (LESS_EQUAL, GREATER)
    ):
        on_scale = [c for c in conditions if _scale(c) == order]
        above = [c for c in on_scale if c.operator == GREATER]
        below = [c for c in on_scale if c.operator == LESS_EQUAL]
        if above:
            kept.append(max(above, key=_rank))
        if below:
            kept.append(min(below, key=_rank))
        if above and below and _rank(kept[-2]) >= _rank(kept[-1]):
            raise _contradiction(kept[-2:])
    return kept


def _scale(condition: Condition) -> tuple[LevelKey, ...] | None:
    return None if condition.order is None else tuple(map(level_key, condition.order))


def _rank(condition: Condition) -> float:
    """Position of a threshold on its scale."""
    if condition.order is None:
        return float(condition.value)  # type: ignore[arg-type]
    return [level_key(level) for level in condition.order].index(level_key(condition.value))


def _refuse_empty_order(kept: list[Condition], conditions: list[Condition]) -> None:
    """Raise when the thresholds and exclusions on ordered levels leave no level over."""
    for order in {c.order for c in kept if c.order is not None}:
        if not any(all(satisfies(level, c) for c in kept) for level in order):
            raise _contradiction(conditions)


def _position(condition: Condition) -> tuple[int, LevelKey]:
    """Sorting key within a feature: ``>`` first, so that an interval reads from left to right."""
    if condition.operator == GREATER:
        return -1, ("", 0)
    return OPERATORS.index(condition.operator), level_key(condition.value)


def _key(condition: Condition) -> tuple[object, ...]:
    return condition.operator, level_key(condition.value), _scale(condition)


def _contradiction(conditions: list[Condition]) -> ContradictionError:
    tests = " and ".join(f"{c.operator} {c.value!r}".removesuffix(" None") for c in conditions)
    return ContradictionError(
        f"no cell of {conditions[0].feature!r} can be {tests}: drop one of these conditions."
    )
