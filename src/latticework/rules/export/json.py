"""Rules as JSON: data, never code.

The format carries a version.  Reading checks every field and names the one at fault; nothing is
looked up, imported or evaluated.  Python's ``json`` writes a float in the shortest form that reads
back as the same float, so that a model survives the journey to the last bit.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from latticework.rules.conditions import IS_MISSING, IS_TRUE, OPERATORS, Condition
from latticework.rules.evaluate import level_key
from latticework.rules.rule import Rule
from latticework.rules.statistics import MULTILABEL
from latticework.rules.terms import LinearTerm

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from latticework.rules.ensemble import RuleEnsemble

FORMAT = "latticework.RuleEnsemble"
VERSION = 1


class JSONModelError(ValueError):
    """A JSON text that is no rule ensemble; the message says where."""


def ensemble_to_json(ensemble: RuleEnsemble) -> str:
    """The ensemble as JSON text, one line per rule."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "output": ensemble.output,
        "link": ensemble.link,
        "classes": _jsonable_classes(ensemble.classes),
        "outputs": list(ensemble.outputs),
        "features": [
            {"name": name, "kind": kind}
            for name, kind in zip(ensemble.feature_names, ensemble.feature_kinds, strict=True)
        ],
        "intercept": list(ensemble.intercept),
        "rules": [rule.to_dict() for rule in ensemble.rules],
        "linear_terms": [term.to_dict() for term in ensemble.linear_terms],
    }
    members = (f"  {_dumped(name)}: {_dumped_by_line(value)}" for name, value in document.items())
    return "{\n" + ",\n".join(members) + "\n}\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _dumped_by_line(value: Any) -> str:
    """JSON text with a line per entry where the value is a list of objects."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return _dumped(value)
    return "[\n" + ",\n".join(f"    {_dumped(entry)}" for entry in value) + "\n  ]"


def _jsonable_classes(classes: tuple[Any, ...] | None) -> Any:
    if classes is None:
        return None
    for label in classes:
        if isinstance(label, tuple):
            _jsonable_classes(label)
        elif not _is_level(label):
            raise TypeError(
                f"class {label!r} of type {type(label).__name__} has no JSON form: convert the "
                "classes to strings, finite numbers or booleans before fitting."
            )
    return [list(label) if isinstance(label, tuple) else label for label in classes]


def ensemble_from_json(cls: type[RuleEnsemble], text: str | bytes) -> RuleEnsemble:
    """The ensemble of a JSON text; raises :class:`JSONModelError` when it describes none."""
    document = _parsed(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise JSONModelError(f'this JSON is no rule ensemble: its "format" is not "{FORMAT}".')
    version: Any = document.get("version")
    if not _is_integer(version) or version < 1:
        raise JSONModelError(f"version must be a positive integer, got {_shown(version)}.")
    if version > VERSION:
        raise JSONModelError(
            f"this model has format version {version}, and this latticework reads versions up to "
            f"{VERSION}: install a newer latticework."
        )
    fields = _Fields(document, "the model", _MODEL_FIELDS)
    intercept = fields.numbers("intercept")
    features = fields.list("features", _feature)
    try:
        return cls(
            fields.list("rules", _rule),
            intercept,
            feature_names=[name for name, _ in features],
            feature_kinds=[kind for _, kind in features],
            output=fields.get("output", _is_string, "a string"),
            link=fields.get("link", lambda v: v is None or _is_string(v), "a string or null"),
            classes=_classes(fields),
            outputs=fields.get("outputs", _is_strings, "a list of strings"),
            linear_terms=fields.list("linear_terms", _linear_term),
        )
    except JSONModelError:
        raise
    except ValueError as error:
        raise JSONModelError(f"the parts of this model do not fit together: {error}") from error


_MODEL_FIELDS = (
    "format", "version", "output", "link", "classes", "outputs", "features", "intercept", "rules",
    "linear_terms",
)  # fmt: skip
_STATISTICS = ("support", "count", "precision", "mean", "lift")


def _parsed(text: str | bytes) -> Any:
    def refuse(constant: str) -> None:
        raise JSONModelError(f"{constant} is not a number that JSON or a model may hold.")

    try:
        return json.loads(text, parse_constant=refuse)
    except JSONModelError:
        raise
    except RecursionError as error:
        raise JSONModelError("this JSON is nested too deeply to be a rule ensemble.") from error
    except ValueError as error:
        raise JSONModelError(f"this is not JSON: {error}") from error


class _Fields:
    """The members of one JSON object, checked as they are read."""

    def __init__(
        self, document: Any, where: str, required: Collection[str], optional: Collection[str] = ()
    ) -> None:
        if not isinstance(document, dict):
            raise JSONModelError(f"{where} must be an object, got {_shown(document)}.")
        for name in required:
            if name not in document:
                raise JSONModelError(f"{where} lacks {name!r}.")
        for name in document:
            if name not in required and name not in optional:
                raise JSONModelError(f"{where} has an unknown member {name!r}.")
        self.document, self.where = document, where

    def get(self, name: str, is_valid: Callable[[Any], bool], expected: str) -> Any:
        value = self.document.get(name)
        if not is_valid(value):
            raise JSONModelError(f"{name} of {self.where} must be {expected}, got {_shown(value)}.")
        return value

    def number(self, name: str) -> float:
        return float(self.get(name, _is_number, "a finite number"))

    def numbers(self, name: str) -> list[float]:
        def is_valid(value: Any) -> bool:
            return isinstance(value, list) and len(value) > 0 and all(map(_is_number, value))

        return [float(n) for n in self.get(name, is_valid, "a list of finite numbers")]

    def list(self, name: str, read: Callable[[Any, str], Any]) -> list[Any]:
        entries = self.get(name, lambda value: isinstance(value, list), "a list")
        prefix = "" if self.where == "the model" else f"{self.where}."
        return [read(entry, f"{prefix}{name}[{i}]") for i, entry in enumerate(entries)]


def _feature(document: Any, where: str) -> tuple[str, str]:
    fields = _Fields(document, where, ("name", "kind"))
    name = fields.get("name", _is_string, "a string")
    return name, fields.get("kind", _is_string, "a string")


def _rule(document: Any, where: str) -> Rule:
    fields = _Fields(document, where, ("conditions", "weights"), _STATISTICS)
    statistics: dict[str, Any] = {
        name: fields.number(name) for name in _STATISTICS if name in document and name != "count"
    }
    if "count" in document:
        statistics["count"] = fields.get("count", _is_integer, "an integer")
    conditions = fields.list("conditions", _condition)
    try:
        return Rule(conditions, fields.numbers("weights"), **statistics)
    except JSONModelError:
        raise
    except ValueError as error:
        raise JSONModelError(f"{where}: {error}") from error


def _condition(document: Any, where: str) -> Condition:
    fields = _Fields(document, where, ("feature", "operator"), ("value", "order"))
    feature = fields.get("feature", _is_string, "a string")
    operator = fields.get(
        "operator", lambda value: value in OPERATORS, f"one of {', '.join(OPERATORS)}"
    )
    if operator in (IS_MISSING, IS_TRUE):
        fields.get("value", lambda value: value is None, "left out")
        return Condition(feature, operator)
    is_order = operator in ("<=", ">") and "order" in document
    if not is_order:
        fields.get("order", lambda value: value is None, "left out")
        is_valid = _is_number if operator in ("<=", ">") else _is_level
        return Condition(feature, operator, fields.get("value", is_valid, "a level or threshold"))
    order = tuple(
        fields.get("order", lambda v: isinstance(v, list) and all(map(_is_level, v)), "levels")
    )
    keys = [level_key(level) for level in order]
    if len(set(keys)) != len(keys):
        raise JSONModelError(f"order of {where} must list each level once, got {_shown(order)}.")
    value = fields.get(
        "value", lambda v: _is_level(v) and level_key(v) in keys, "a level of its order"
    )
    return Condition(feature, operator, value, order)


def _linear_term(document: Any, where: str) -> LinearTerm:
    fields = _Fields(document, where, ("feature", "mean", "scale", "low", "high", "weights"))
    numbers = {name: fields.number(name) for name in ("mean", "scale", "low", "high")}
    feature = fields.get("feature", _is_string, "a string")
    try:
        return LinearTerm(feature, **numbers, weights=tuple(fields.numbers("weights")))
    except ValueError as error:
        raise JSONModelError(f"{where}: {error}") from error


def _classes(fields: _Fields) -> list[Any] | None:
    def is_labels(value: Any) -> bool:
        return isinstance(value, list) and all(map(_is_level, value))

    if fields.document["output"] == MULTILABEL:
        pairs = fields.get(
            "classes",
            lambda value: isinstance(value, list) and all(map(is_labels, value)),
            "a list of lists of labels",
        )
        return [tuple(pair) for pair in pairs]
    labels: list[Any] | None = fields.get(
        "classes", lambda value: value is None or is_labels(value), "a list of labels or null"
    )
    return labels


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_string, value))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max  # false for NaN


def _is_level(value: Any) -> bool:
    return isinstance(value, (str, bool)) or _is_number(value)


def _shown(value: Any) -> str:
    """A value as it goes into a message: cut short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
