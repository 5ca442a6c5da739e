"""A weighted set of rules: the model that every rule learner of this library produces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from latticework.rules.answers import labels_of, probabilities_of
from latticework.rules.description import (
    check_description,
    check_terms,
    output_names,
    plain_labels,
)
from latticework.rules.evaluate import held_blocks
from latticework.rules.export.frames import explanation_frame, rules_frame
from latticework.rules.export.html import ensemble_html
from latticework.rules.export.json import ensemble_from_json, ensemble_to_json
from latticework.rules.export.latex import ensemble_latex
from latticework.rules.export.markdown import ensemble_markdown
from latticework.rules.export.python import ensemble_python
from latticework.rules.export.sql import ensemble_sql
from latticework.rules.export.text import ensemble_text
from latticework.rules.reading import read_features
from latticework.rules.rule import Rule, finite
from latticework.rules.scores import common_grid, inverse_link, on_grid
from latticework.rules.statistics import REGRESSION
from latticework.rules.wording import distinct_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from latticework.rules.columns import Table
    from latticework.rules.conditions import Condition
    from latticework.rules.statistics import RuleStatistics
    from latticework.rules.terms import LinearTerm


@dataclass(frozen=True, repr=False)
class RuleEnsemble(Sequence[Rule]):
    """Rules, an intercept and perhaps linear terms, whose sum is the score of a row.

    ``score_t(x) = intercept_t + sum of weights_t of the rules that hold of x + linear terms``,
    for each of T outputs t.  It is a sequence of :class:`Rule`: ``ensemble[0]`` is a rule,
    ``ensemble[:5]`` an ensemble of the first five with the same intercept.

    Parameters
    ----------
    rules : sequence of Rule
        R rules with T weights each.
    intercept : float or sequence of T floats
        The score where no rule holds.
    feature_names, feature_kinds : sequence of m str
        The features that data are read with, and their kinds: "numeric", "categorical",
        "ordered" or "boolean".
    output : {"binary", "multiclass", "multilabel", "regression"}
        What the scores are of: the second class (T = 1), each class, each label, each target.
    link : {"identity", "log", "logit", "softmax"} or None
        How scores become means or probabilities; None (hinge losses) for not at all.
        ``"logit"`` on a "multiclass" output is one-vs-rest, normalised.
    classes : sequence of labels, optional
        The classes; for "multilabel" one pair of them per label.  Not for regression.
    outputs : sequence of T str, optional
        Names of the outputs; by default those of the classes, or ``y`` and ``y0, y1, ...``.
    linear_terms : sequence of LinearTerm, optional
        At most one for each numeric feature.

    Examples
    --------
    >>> from latticework.rules.conditions import Condition
    >>> old, high = Condition("age", ">", 50), Condition("bp", "==", "high")
    >>> ensemble = RuleEnsemble(
    ...     [Rule([old, high], 1.5), Rule([high], 0.25)],
    ...     intercept=-1.0,
    ...     feature_names=["age", "bp"],
    ...     feature_kinds=["numeric", "categorical"],
    ...     output="binary",
    ...     link="logit",
    ...     classes=["healthy", "ill"],
    ... )
    >>> X = [[63, "high"], [63, "low"], [None, "high"]]
    >>> ensemble.decision_function(X)
    array([ 0.75, -1.  , -0.75])
    >>> ensemble.predict(X)
    array(['ill', 'healthy', 'healthy'], dtype='<U7')
    >>> ensemble[:1].decision_function(X)
    array([ 0.5, -1. , -1. ])
    """

    rules: tuple[Rule, ...]
    intercept: tuple[float, ...]
    feature_names: tuple[str, ...]
    feature_kinds: tuple[str, ...]
    output: str
    link: str | None
    classes: tuple[Any, ...] | None
    outputs: tuple[str, ...]
    linear_terms: tuple[LinearTerm, ...]

    def __init__(
        self,
        rules: Iterable[Rule],
        intercept: ArrayLike,
        *,
        feature_names: Iterable[str],
        feature_kinds: Iterable[str],
        output: str,
        link: str | None,
        classes: Iterable[Any] | None = None,
        outputs: Iterable[str] | None = None,
        linear_terms: Iterable[LinearTerm] = (),
    ) -> None:
        names = tuple(str(name) for name in feature_names)
        intercepts = np.atleast_1d(np.asarray(intercept, dtype=np.float64)).tolist()
        values: dict[str, Any] = {
            "intercept": finite(intercepts, "intercept of an ensemble"),
            "feature_names": names,
            "feature_kinds": tuple(str(kind) for kind in feature_kinds),
            "output": output,
            "link": link,
            "classes": None if classes is None else tuple(map(plain_labels, classes)),
            "linear_terms": tuple(linear_terms),
        }
        values["outputs"] = output_names(outputs, output, values["classes"], len(intercepts))
        check_description(values)
        rules = tuple(rules)
        check_terms(rules, values)
        values["rules"] = tuple(rule.with_features_in_order(names) for rule in rules)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_parts(
        cls,
        conditions: Sequence[Sequence[Condition]],
        weights: ArrayLike,
        intercept: ArrayLike,
        *,
        statistics: RuleStatistics | None = None,
        **description: Any,
    ) -> RuleEnsemble:
        """An ensemble from the arrays of a solver.

        Parameters
        ----------
        conditions : sequence of R sequences of Condition
            The conjunctions.
        weights : array-like of shape (R,) or (R, T)
            Their weights.
        intercept : array-like of shape () or (T,)
            The intercepts.
        statistics : RuleStatistics, optional
            From :func:`latticework.rules.statistics.rule_statistics`.
        **description
            ``feature_names``, ``feature_kinds``, ``output``, ``link``, and optionally
            ``classes``, ``outputs``, ``linear_terms``, as in the constructor.

        Returns
        -------
        RuleEnsemble
        """
        rows = np.asarray(weights, dtype=np.float64).reshape(len(conditions), np.size(intercept))
        rules = [
            Rule(conjunction, rows[r], **({} if statistics is None else statistics.of_rule(r)))
            for r, conjunction in enumerate(conditions)
        ]
        return cls(rules, intercept, **description)

    # --------------------------------------------------------------------------- the sequence

    def __len__(self) -> int:
        """Number of rules."""
        return len(self.rules)

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> RuleEnsemble: ...
    def __getitem__(self, index: int | slice) -> Rule | RuleEnsemble:
        """One rule, or the ensemble of some, with the same intercept and linear terms."""
        if isinstance(index, slice):
            return replace(self, rules=self.rules[index])
        return self.rules[index]

    def __bool__(self) -> bool:
        """True: an intercept alone is a model too."""
        return True

    def __repr__(self) -> str:
        parts = [_counted(len(self), "rule")]
        if self.linear_terms:
            parts.append(_counted(len(self.linear_terms), "linear term"))
        return f"<RuleEnsemble of {' and '.join(parts)}, {self.output}>"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return ensemble_html(self)

    # --------------------------------------------------------------------------- descriptions

    @property
    def n_outputs(self) -> int:
        """Number of scores T."""
        return len(self.intercept)

    @property
    def rule_names(self) -> tuple[str, ...]:
        """The rules as text, one name each; what the columns of ``transform`` are called."""
        return distinct_names(map(str, self.rules))

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the rules, shape (R, T)."""
        weights = np.array([rule.weights for rule in self.rules], dtype=np.float64)
        weights = weights.reshape(len(self), self.n_outputs)
        weights.setflags(write=False)
        return weights

    @property
    def importances(self) -> NDArray[np.float64]:
        """Importance of each rule, shape (R,); NaN for rules without a support."""
        return np.array([rule.importance for rule in self.rules], dtype=np.float64)

    @cached_property
    def used_features(self) -> frozenset[str]:
        """Names of the features that some rule or linear term reads."""
        of_rules = {name for rule in self.rules for name in rule.features}
        return frozenset(of_rules | {term.feature for term in self.linear_terms})

    def with_feature_names(self, names: Sequence[str]) -> RuleEnsemble:
        """The same ensemble with other names of its m features, in their order."""
        other = dict(zip(self.feature_names, map(str, names), strict=True))

        def renamed(rule: Rule) -> Rule:
            conditions = (replace(c, feature=other[c.feature]) for c in rule.conditions)
            return replace(rule, conditions=tuple(conditions))

        return replace(
            self,
            rules=tuple(map(renamed, self.rules)),
            linear_terms=tuple(replace(t, feature=other[t.feature]) for t in self.linear_terms),
            feature_names=tuple(other.values()),
        )

    # ----------------------------------------------------------------------------- evaluation

    def read(self, X: Any) -> Table:
        """The columns of X that the rules use, read once for several of the methods below."""
        return read_features(X, self.feature_names, self.feature_kinds, self.used_features)

    def indicators(self, X: Any) -> NDArray[np.bool_]:
        """Which rules hold of which rows.

        Parameters
        ----------
        X : frame, array-like, scipy sparse or Table of shape (n, m)
            The rows.  A frame needs only the columns that the rules use.

        Returns
        -------
        ndarray of shape (n, R), bool
        """
        table = self.read(X)
        held = np.empty((table.n_rows, len(self)), dtype=bool)
        for rows, block in self._held_blocks(table):
            held[rows] = block
        return held

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the rows: (n,) for a single output, otherwise (n, T)."""
        scores = self._scores(self.read(X))
        return scores[:, 0] if self.n_outputs == 1 else scores

    def predict_mean(self, X: Any) -> NDArray[np.float64]:
        """Regression: the mean response, (n,) or (n, T)."""
        if self.output != REGRESSION:
            raise AttributeError("predict_mean is for regression: use predict_proba.")
        means = inverse_link(self._scores(self.read(X)), self.link, self.output)
        return means[:, 0] if self.n_outputs == 1 else means

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, (n, K); multilabel: of each label, (n, T)."""
        if self.output == REGRESSION:
            raise AttributeError("predict_proba is for classification: use predict_mean.")
        return probabilities_of(self._scores(self.read(X)), self.link, self.output)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels, (n,); label indicators, (n, T); or the mean response."""
        if self.output == REGRESSION:
            return self.predict_mean(X)
        scores = self._scores(self.read(X))
        return labels_of(scores, self.output, self.classes or ())

    def explain(self, X: Any) -> Any:
        """What each rule, each linear term and the intercept contribute to each score.

        Parameters
        ----------
        X : frame, array-like or scipy sparse of shape (n, m)
            The rows.

        Returns
        -------
        frame of n rows
            One column per rule, then per linear term, then ``intercept``.  With several outputs
            one column per (term, output): pandas gets column labels of two levels, other
            libraries names like ``age > 50 [setosa]``.  The columns (of one output) sum to
            :meth:`decision_function` exactly, in any order of summation.  The frame is of the
            library that X is of, of pandas otherwise; a pandas index is kept.
        """
        table = self.read(X)
        rule_weights, intercept, _ = self._exact
        n_terms = len(self) + len(self.linear_terms) + 1
        parts = np.empty((table.n_rows, n_terms, self.n_outputs))
        for rows, held in self._held_blocks(table):
            parts[rows, : len(self)] = held[:, :, None] * rule_weights + 0.0  # no minus zeros
        for k, contribution in enumerate(self._linear_contributions(table), start=len(self)):
            parts[:, k] = contribution
        parts[:, -1] = intercept
        terms = [*map(str, self.rules), *map(str, self.linear_terms), "intercept"]
        return explanation_frame(X, parts, distinct_names(terms), self.outputs)

    @cached_property
    def _exact(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Weights (R, T) and intercept (T,) on the grid (T,) where sums are exact."""
        intercept = np.array(self.intercept)
        linear = [term.largest * np.abs(term.weights) for term in self.linear_terms]
        grid = common_grid(np.abs(np.vstack([self.weights, intercept, *linear])))
        return on_grid(self.weights, grid), on_grid(intercept, grid), grid

    def _held_blocks(self, table: Table) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        return held_blocks([rule.conditions for rule in self.rules], table)

    def _scores(self, table: Table) -> NDArray[np.float64]:
        """Scores of shape (n, T): the sum of the contributions of ``explain``."""
        rule_weights, intercept, _ = self._exact
        scores = np.tile(intercept, (table.n_rows, 1))
        for rows, held in self._held_blocks(table):
            scores[rows] += held.astype(np.float64) @ rule_weights
        for contribution in self._linear_contributions(table):
            scores += contribution
        return scores

    def _linear_contributions(self, table: Table) -> Iterable[NDArray[np.float64]]:
        """Contribution of each linear term, shape (n, T), on the grid."""
        grid = self._exact[2]
        for term in self.linear_terms:
            x = term.standardised(table[term.feature].values)
            yield on_grid(x[:, None] * np.array(term.weights), grid)

    # -------------------------------------------------------------------------------- exports

    def to_frame(self, backend: str = "pandas") -> Any:
        """The table of the rules.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            Library of the frame.

        Returns
        -------
        frame of R rows
            ========== ===========================================================================
            rule       the conditions as text
            weight     what the rule adds to the score; one column ``weight[output]`` per output
                       when there are several
            length     number of conditions
            support    weighted fraction of the training rows where the rule holds
            precision  classification: weighted fraction of these rows for which its vote is right
                       (:class:`Rule` says what it votes for)
            mean       regression, in place of precision: weighted mean of the target over them
            lift       precision over its value on all rows; regression: mean minus the overall one
            importance size of the weights times ``sqrt(support * (1 - support))``
            ========== ===========================================================================
        """
        return rules_frame(self, backend)

    def to_text(self, *, digits: int = 3, sort_by: str | None = None) -> str:
        """The model as aligned text.

        Parameters
        ----------
        digits : int
            Significant digits of the largest weight; thresholds are never rounded.
        sort_by : {"importance"} or None
            Most important rules first, or the ensemble's own order.
        """
        return ensemble_text(self, digits=digits, sort_by=sort_by)

    def to_markdown(self, *, digits: int = 3, sort_by: str | None = None) -> str:
        """The model as a Markdown table; parameters as in :meth:`to_text`."""
        return ensemble_markdown(self, digits=digits, sort_by=sort_by)

    def to_latex(self, *, digits: int = 3, sort_by: str | None = None) -> str:
        """The model as a LaTeX table (package booktabs); parameters as in :meth:`to_text`."""
        return ensemble_latex(self, digits=digits, sort_by=sort_by)

    def to_sql(self, table: str | Sequence[str], *, stored_nan: bool = False) -> str:
        """One SELECT in standard SQL: all columns of a table, then the scores.

        Parameters
        ----------
        table : str or sequence of str
            Name of the table, or its parts, as in ``("schema", "table")``.
        stored_nan : bool
            Missing cells are expected to be NULL.  Where the numeric columns may hold NaN as a
            value (DuckDB and PostgreSQL keep the two apart), True treats it as missing too, at
            the price of a longer query.

        Returns
        -------
        str
            The last column, ``score``, is the decision function; with several outputs the last
            T columns, ``score_<output>``, are.
        """
        return ensemble_sql(self, table, stored_nan=stored_nan)

    def to_python(self) -> str:
        """Source of a function ``decision_function(row)`` that needs nothing but Python.

        ``row`` maps column names to values, None or NaN where missing; the result is a float, or
        a list of T floats.
        """
        return ensemble_python(self)

    def to_json(self) -> str:
        """The model as JSON, which :meth:`from_json` reads back to an equal one."""
        return ensemble_to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> RuleEnsemble:
        """The model that :meth:`to_json` wrote; data are checked, no code is run.

        Raises
        ------
        ValueError
            When the text is no such model, or of a newer version; the message says where.
        """
        return ensemble_from_json(cls, text)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
