"""What an ensemble says of itself beside its rules: outputs, classes, link, features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latticework.rules.cells import KINDS, NUMERIC
from latticework.rules.rule import Rule, plain_scalar
from latticework.rules.scores import IDENTITY, LOG, LOGIT, SOFTMAX
from latticework.rules.statistics import BINARY, MULTICLASS, MULTILABEL, OUTPUTS, REGRESSION
from latticework.rules.wording import distinct_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray


LINKS: dict[str, tuple[str | None, ...]] = {
    BINARY: (LOGIT, None),
    MULTICLASS: (SOFTMAX, LOGIT, None),
    MULTILABEL: (LOGIT, None),
    REGRESSION: (IDENTITY, LOG),
}


def plain_labels(label: Any) -> Any:
    """A class label, or a tuple of them, as plain Python scalars."""
    if isinstance(label, (tuple, list, np.ndarray)):
        return tuple(map(plain_labels, label))
    return plain_scalar(label)


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Labels as an array that keeps them apart: of objects when their types differ.

    Examples
    --------
    >>> label_array([0, 1]), label_array(["1", 1])
    (array([0, 1]), array(['1', 1], dtype=object))
    """
    if len(set(map(type, labels))) == 1 and isinstance(labels[0], (str, bool, int, float)):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def output_names(
    outputs: Iterable[str] | None, output: str, classes: Sequence[Any] | None, n_outputs: int
) -> tuple[str, ...]:
    """The given names of the outputs, or those of the classes, or ``y``."""
    if outputs is not None:
        return tuple(map(str, outputs))
    if output == BINARY and classes:
        return (str(classes[-1]),)
    if output == MULTICLASS and classes:
        return distinct_names(map(str, classes))
    return ("y",) if n_outputs == 1 else tuple(f"y{t}" for t in range(n_outputs))


def check_description(values: Mapping[str, Any]) -> None:
    """Raise ValueError when the parts of an ensemble's description do not fit together."""
    output, classes, n_outputs = values["output"], values["classes"], len(values["intercept"])
    if output not in OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, got {output!r}.")
    if values["link"] not in LINKS[output]:
        allowed = ", ".join(map(repr, LINKS[output]))
        raise ValueError(f"link of a {output} ensemble must be {allowed}, got {values['link']!r}.")
    _check_classes(output, classes, n_outputs)
    names = values["outputs"]
    if len(names) != n_outputs or len(set(names)) != n_outputs:
        raise ValueError(f"outputs must be {n_outputs} distinct names, one per score, got {names}.")
    features, kinds = values["feature_names"], values["feature_kinds"]
    if len(set(features)) != len(features) or len(kinds) != len(features):
        raise ValueError(
            f"feature_names must be distinct and feature_kinds as many, got {features} and {kinds}."
        )
    for name, kind in zip(features, kinds, strict=True):
        if kind not in KINDS:
            raise ValueError(
                f"kind of feature {name!r} must be one of {', '.join(KINDS)}, got {kind!r}."
            )


def _check_classes(output: str, classes: tuple[Any, ...] | None, n_outputs: int) -> None:
    if output == REGRESSION:
        problem = "no classes" if classes is not None else ""
    elif classes is None or (output == MULTILABEL) != all(isinstance(c, tuple) for c in classes):
        problem = "one pair of classes per label" if output == MULTILABEL else "classes"
    elif output == BINARY:
        problem = "" if len(classes) == 2 and n_outputs == 1 else "two classes and one intercept"
    else:
        problem = "" if len(classes) == n_outputs else "one intercept per class"
        if output == MULTILABEL and any(len(pair) != 2 for pair in classes):
            problem = "one pair of classes per label"
    if problem:
        raise ValueError(
            f"a {output} ensemble needs {problem}, got classes={classes} and {n_outputs} "
            "intercepts."
        )


def check_terms(rules: Sequence[Rule], values: Mapping[str, Any]) -> None:
    """Raise ValueError when rules or linear terms do not fit the features and outputs."""
    kinds = dict(zip(values["feature_names"], values["feature_kinds"], strict=True))
    n_outputs, linear_terms = len(values["intercept"]), values["linear_terms"]
    for term in (*rules, *linear_terms):
        if len(term.weights) != n_outputs:
            raise ValueError(
                f"'{term}' has {len(term.weights)} weights, but there are {n_outputs} intercepts."
            )
    for rule in rules:
        absent = [name for name in rule.features if name not in kinds]
        if absent:
            raise ValueError(f"'{rule}' tests {absent}, which is not among the feature_names.")
    linear = [term.feature for term in linear_terms]
    if len(set(linear)) != len(linear):
        raise ValueError(f"several linear terms share a feature: {linear}.")
    for name in linear:
        if kinds.get(name) != NUMERIC:
            raise ValueError(
                f"the linear term of {name!r} needs a numeric feature of that name, "
                f"found {kinds.get(name, 'none')}."
            )
