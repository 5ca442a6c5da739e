"""One rule: a conjunction of conditions, its weights, and what it does on the training rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from latticework.rules.columns import Table, read_table
from latticework.rules.conditions import Condition
from latticework.rules.evaluate import row_test
from latticework.rules.simplify import simplify
from latticework.rules.wording import conjunction_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Rule:
    """A weighted conjunction, such as ``+1.3 if age > 50 AND bp == high``.

    The conditions are brought into canonical form: nothing redundant, nothing twice, grouped by
    feature.  Two rules are equal when they have the same conditions, in any order, the same
    weights and the same statistics.

    Parameters
    ----------
    conditions : sequence of Condition
        What must hold together.  Without conditions the rule holds always.
    weights : float or sequence of T floats
        What the rule adds to each of the T scores where it holds.
    support : float, optional
        Weighted fraction of the training rows where the rule holds.
    count : int, optional
        Number of these rows, unweighted.
    precision : float, optional
        Classification: weighted fraction of these rows for which the rule's vote is right.  A
        rule votes for the class to which it gives its largest weight; when no weight is
        positive, against the class of the most negative one.  None where no row is covered.
    mean : float, optional
        Regression: weighted mean of the target over these rows; with several targets, of the one
        with the largest absolute weight.
    lift : float, optional
        Classification: precision over the fraction of all training rows for which the same vote
        would be right.  Regression: ``mean`` minus the mean of all training rows.

    Examples
    --------
    >>> rule = Rule([Condition("age", ">", 50), Condition("bp", "==", "high")], 1.3)
    >>> str(rule), len(rule), rule.weight
    ('age > 50 AND bp == high', 2, 1.3)
    >>> rule.indicator([[63, "high"], [41, "high"]], names=["age", "bp"])
    array([ True, False])
    """

    conditions: tuple[Condition, ...]
    weights: tuple[float, ...]
    support: float | None = None
    count: int | None = None
    precision: float | None = None
    mean: float | None = None
    lift: float | None = None

    def __init__(
        self,
        conditions: Sequence[Condition],
        weights: float | Sequence[float] | NDArray[np.float64],
        *,
        support: float | None = None,
        count: int | None = None,
        precision: float | None = None,
        mean: float | None = None,
        lift: float | None = None,
        features: Sequence[str] | None = None,
    ) -> None:
        weights = tuple(np.atleast_1d(np.asarray(weights, dtype=np.float64)).tolist())
        values = (
            simplify(map(_plain, conditions), features),
            finite(weights, "weights of a rule"),
            _optional_float(support),
            None if count is None else int(count),
            _optional_float(precision),
            _optional_float(mean),
            _optional_float(lift),
        )
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    @property
    def weight(self) -> float:
        """The weight of a rule with a single output."""
        if len(self.weights) != 1:
            raise AttributeError(
                f"this rule has {len(self.weights)} weights, one per output: read rule.weights."
            )
        return self.weights[0]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the conditions test, each once."""
        return tuple(dict.fromkeys(condition.feature for condition in self.conditions))

    @property
    def importance(self) -> float | None:
        """Size of the weights times ``sqrt(support * (1 - support))``.

        This is the standard deviation of the rule's contribution over the training rows; with
        several outputs the weights' Euclidean norm counts.  None without a support.
        """
        if self.support is None:
            return None
        return float(np.linalg.norm(self.weights) * np.sqrt(self.support * (1.0 - self.support)))

    def __len__(self) -> int:
        """Number of conditions."""
        return len(self.conditions)

    def __bool__(self) -> bool:
        """True: a rule without conditions is a rule too."""
        return True

    def __str__(self) -> str:
        return conjunction_text(self.conditions)

    def __repr__(self) -> str:
        weights = self.weights[0] if len(self.weights) == 1 else self.weights
        return f"Rule({str(self)!r}, {weights!r})"

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Rule) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[Any, ...]:
        statistics = (self.support, self.count, self.precision, self.mean, self.lift)
        return frozenset(self.conditions), self.weights, *statistics

    def indicator(self, X: Any, names: Sequence[str] | None = None) -> NDArray[np.bool_]:
        """Rows where the rule holds.

        Parameters
        ----------
        X : Table, frame or array-like of shape (n, m)
            The rows.  A :class:`RuleEnsemble` knows the kinds of its columns and reads foreign
            data more strictly: prefer its ``indicators`` for new data.
        names : sequence of str, optional
            Names of the columns of an array.

        Returns
        -------
        ndarray of shape (n,), bool
        """
        table = X if isinstance(X, Table) else read_table(X, names=names)
        holds = np.ones(table.n_rows, dtype=bool)
        for condition in self.conditions:
            holds &= row_test(condition, table[condition.feature])(slice(None))
        return holds

    def with_features_in_order(self, features: Sequence[str]) -> Rule:
        """The same rule with its conditions in the order of these features."""
        return Rule(**{**vars(self), "features": features})

    def to_dict(self) -> dict[str, Any]:
        """Plain data: strings, numbers, booleans, lists and dictionaries."""
        plain = {name: value for name, value in vars(self).items() if value is not None}
        plain["conditions"] = [_condition_to_dict(condition) for condition in self.conditions]
        plain["weights"] = list(self.weights)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Rule:
        """The rule that :meth:`to_dict` described.

        Examples
        --------
        >>> rule = Rule([Condition("age", ">", 50)], 1.3, support=0.25)
        >>> Rule.from_dict(rule.to_dict()) == rule
        True
        """
        conditions = [
            Condition(**{**entry, "order": tuple(entry["order"]) if "order" in entry else None})
            for entry in plain["conditions"]
        ]
        return cls(**{**plain, "conditions": conditions})


def _plain(condition: Condition) -> Condition:
    """The condition with Python's scalars in place of numpy's, whose text is not a literal."""
    value, order = condition.value, condition.order
    scalars = [level for level in (value, *(order or ())) if isinstance(level, np.generic)]
    if not scalars:
        return condition
    levels = None if order is None else tuple(map(plain_scalar, order))
    return Condition(condition.feature, condition.operator, plain_scalar(value), levels)


def plain_scalar(value: Any) -> Any:
    """A numpy scalar as the Python scalar that it holds; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _condition_to_dict(condition: Condition) -> dict[str, Any]:
    plain = {name: value for name, value in asdict(condition).items() if value is not None}
    if "order" in plain:
        plain["order"] = list(plain["order"])
    return plain


def _optional_float(number: float | None) -> float | None:
    """A statistic as a plain float; NaN, the mean of no rows, becomes None."""
    return None if number is None or np.isnan(number) else float(number)


def finite(numbers: Sequence[float], what: str) -> tuple[float, ...]:
    """Plain floats; raises ValueError when one of them is NaN or infinite."""
    numbers = tuple(map(float, numbers))
    if not np.isfinite(numbers).all():
        raise ValueError(f"the {what} must be finite numbers, got {numbers}.")
    return numbers
