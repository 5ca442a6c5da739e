"""Columns to boolean conditions: the scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from latticework.rules.as_is import sparse_truths, truth_codes
from latticework.rules.cells import BOOLEAN, NUMERIC, Column, as_kind
from latticework.rules.coding import (
    LARGEST_N_CODES,
    CodedCondition,
    Coder,
    LevelCoder,
    NumericCoder,
    code_rows,
    condition_table,
    level_coder,
    occurs_beside_others,
)
from latticework.rules.columns import (
    Table,
    as_tabular,
    column_name,
    default_names,
    read_table,
)
from latticework.rules.conditions import IS_TRUE, Condition
from latticework.rules.thresholds import STRATEGIES, given_thresholds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


class Propositionalizer(TransformerMixin, BaseEstimator):
    """Turn the columns of a table into boolean conditions on them.

    Numeric columns give ``<=`` and ``>`` at each of a few thresholds; categorical and boolean
    columns give ``==`` and ``!=`` for each level (``==`` only when there are just two); ordered
    categories give ``<=`` and ``>`` between levels; columns with missing training cells give
    ``is missing`` as well.  No condition holds for all training rows,
    unless by a threshold that the user gives.

    Missing cells satisfy no condition but ``is missing``.  Levels unseen at fit satisfy ``!=``
    only, and none of the conditions of an ordered column.

    Parameters
    ----------
    n_thresholds : int, default=8
        The largest number of thresholds of a numeric column.
    thresholds : "quantile" or dict, default="quantile"
        ``"quantile"``: at the quantiles of the training values, weighted by ``sample_weight``,
        with values that hold more mass than one quantile step set apart on both sides.  All
        gaps between distinct values are used where ``n_thresholds`` allows.  Each threshold is
        a short decimal between two neighbouring training values.  A dict gives the thresholds
        of some columns, ``{name or position: numbers}``; the others use the quantiles.
    conditions : {"auto", "as-is"}, default="auto"
        ``"as-is"``: every column is a condition already, true or false (1 or 0), without missing
        cells, possibly in a scipy sparse matrix; no negations are added.
    categorical_features : "from_dtype" or list of str, int or bool, default="from_dtype"
        Names, positions or a mask of columns to treat as categorical whatever their type.
        Strings, unordered categoricals and booleans are categorical anyway.

    Attributes
    ----------
    conditions_ : list of Condition
        The p conditions: column by column; ``<=``, then ``>``, or ``==``, then ``!=``; then
        ``is missing``.
    table_ : ConditionTable
        The same conditions as intervals of the codes that :meth:`encode` gives.
    kinds_ : tuple of {"numeric", "categorical", "ordered", "boolean"}
        How each column was read.
    thresholds_ : dict of str to ndarray
        The thresholds of the numeric columns.
    n_features_in_ : int
        Number of columns m.
    feature_names_in_ : ndarray of shape (m,)
        Names of the columns, when all are strings.

    Examples
    --------
    >>> from latticework.rules.propositionalize import Propositionalizer
    >>> X = [[25, "red"], [40, "blue"], [55, "red"], [None, "red"]]
    >>> propositions = Propositionalizer(n_thresholds=1).fit(X)
    >>> print(*propositions.conditions_, sep=", ")
    x0 <= 50, x0 > 50, x0 is missing, x1 == blue, x1 == red
    >>> propositions.transform([[60, "red"], [None, "green"]])
    array([[False,  True, False, False,  True],
           [False, False,  True, False, False]])
    """

    def __init__(
        self,
        n_thresholds: int = 8,
        *,
        thresholds: Any = "quantile",
        conditions: str = "auto",
        categorical_features: Any = "from_dtype",
    ) -> None:
        self.n_thresholds = n_thresholds
        self.thresholds = thresholds
        self.conditions = conditions
        self.categorical_features = categorical_features

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the conditions.

        Parameters
        ----------
        X : array-like, frame or scipy sparse of shape (n, m)
            The training table; a :class:`Table` is taken as it was read.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            Whole-number weights give the same conditions as repeated rows; rows of weight zero
            are ignored.

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._checked(X, reset=True)
        if self.conditions == "as-is":
            return self._fit_as_is(X, sample_weight)
        table = (
            X
            if isinstance(X, Table)
            else read_table(X, categorical_features=self.categorical_features)
        )
        weights, kept = _weights(sample_weight, table.n_rows)
        given = self._given_thresholds(table)
        coders = tuple(
            self._numeric_coder(column, weights, kept, given.get(column.name))
            if column.kind == NUMERIC
            else level_coder(column, kept)
            for column in table.columns
        )
        n_codes = [_n_codes(coder) for coder in coders]
        self.kinds_ = tuple(column.kind for column in table.columns)
        self.thresholds_ = {c.name: c.thresholds for c in coders if isinstance(c, NumericCoder)}
        self._names, self._coders = table.names, coders
        self._set_table([coder.conditions() for coder in coders], n_codes)
        return self

    def transform(self, X: Any) -> NDArray[np.bool_] | sparse.csr_array:
        """Which rows satisfy which conditions.

        Returns
        -------
        ndarray of shape (n, p), bool
            With ``conditions="as-is"`` and a sparse X: a boolean csr_array of this shape.
        """
        if sparse.issparse(X) and self.conditions == "as-is":
            return self.encode_sparse(X)
        codes = self.encode(X)
        if self.conditions == "as-is":
            return codes.view(np.bool_)
        return self.table_.indicators(codes)

    def encode(self, X: Any) -> NDArray[np.uint8] | NDArray[np.uint16]:
        """The codes that ``table_`` speaks of.

        Parameters
        ----------
        X : array-like, frame, Table or scipy sparse of shape (n, m)

        Returns
        -------
        ndarray of shape (n, m), uint8 or uint16
            C-contiguous; uint16 when a column has more than 256 codes.

        Examples
        --------
        >>> propositions = Propositionalizer(n_thresholds=1).fit([[25.0], [40.0], [55.0]])
        >>> propositions.encode([[25.0], [60.0], [float("nan")]]).ravel()
        array([0, 1, 2], dtype=uint8)
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if self.conditions == "as-is":
            return truth_codes(X, self._names)
        table = X if isinstance(X, Table) else read_table(X, names=self._names, kinds=self.kinds_)
        readers = [
            coder.reader(as_kind(column, kind))
            for coder, column, kind in zip(self._coders, table.columns, self.kinds_, strict=True)
        ]
        dtype = np.uint8 if self.table_.n_codes.max() <= 256 else np.uint16
        return code_rows(readers, table.n_rows, dtype)

    def refuse_other_types(self, table: Table) -> None:
        """Raise ValueError where strings have become numbers since the fit, or numbers strings.

        Parameters
        ----------
        table : Table
            Read with the names and kinds of the fit.
        """
        for coder, column in zip(self._coders, table.columns, strict=True):
            if isinstance(coder, LevelCoder):
                coder.refuse_other_types(column.levels or ())

    def encode_sparse(self, X: Any) -> sparse.csr_array:
        """The codes of an as-is table as a sparse matrix that stores its ones only.

        Returns
        -------
        csr_array of shape (n, m), bool
        """
        check_is_fitted(self)
        if self.conditions != "as-is":
            raise ValueError(
                "only tables that are conditions already have sparse codes: use "
                "Propositionalizer(conditions='as-is'), or encode."
            )
        X = self._checked(X, reset=False)
        return sparse_truths(X if sparse.issparse(X) else truth_codes(X, self._names), self._names)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The conditions in words.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names for the columns of a model that was fitted without; else the names at fit.

        Returns
        -------
        ndarray of shape (p,), str
        """
        check_is_fitted(self)
        conditions = self.conditions_
        if input_features is not None:
            names = [str(name) for name in np.asarray(input_features, dtype=object)]
            if len(names) != self.n_features_in_:
                raise ValueError(
                    "input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(names)}"
                )
            if hasattr(self, "feature_names_in_") and names != [*self.feature_names_in_]:
                raise ValueError("input_features is not equal to feature_names_in_")
            conditions = [
                replace(condition, feature=names[column])
                for condition, column in zip(conditions, self.table_.column, strict=True)
            ]
        return np.array([str(condition) for condition in conditions], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        as_is = self.conditions == "as-is"
        tags.input_tags.sparse = as_is
        tags.input_tags.allow_nan = not as_is
        tags.input_tags.string = not as_is
        tags.transformer_tags.preserves_dtype = []
        return tags

    # ------------------------------------------------------------------------------- internals

    def _check_parameters(self) -> None:
        n = self.n_thresholds
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n_thresholds must be an integer of at least 1, got {n!r}.")
        if self.conditions not in ("auto", "as-is"):
            raise ValueError(f"conditions must be 'auto' or 'as-is', got {self.conditions!r}.")
        if not isinstance(self.thresholds, Mapping) and (
            not isinstance(self.thresholds, str) or self.thresholds not in STRATEGIES
        ):
            choices = ", ".join(map(repr, STRATEGIES))
            raise ValueError(
                f"thresholds must be one of {choices}, or a dict that gives the thresholds of "
                f"columns, {{name or position: numbers}}; got {self.thresholds!r}."
            )

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X as :func:`as_tabular` gives it, its names and number of columns set or checked."""
        X = as_tabular(X)
        if not isinstance(X, Table):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self.n_features_in_ = len(X.columns)
            self.__dict__.pop("feature_names_in_", None)
        elif X.names != self._names:
            raise ValueError(
                f"the table has the columns {X.names}, but the model was fitted with {self._names}."
            )
        return X

    def _fit_as_is(self, X: Any, sample_weight: ArrayLike | None) -> Self:
        if isinstance(X, Table):
            names = X.names
        else:
            names = tuple(getattr(self, "feature_names_in_", default_names(self.n_features_in_)))
        n_rows = (
            sparse_truths(X, names).shape[0] if sparse.issparse(X) else len(truth_codes(X, names))
        )
        _weights(sample_weight, n_rows)
        self._names, self._coders = names, ()
        self.kinds_, self.thresholds_ = (BOOLEAN,) * len(names), {}
        conditions = [[CodedCondition(Condition(name, IS_TRUE), 1, 1)] for name in names]
        self._set_table(conditions, [2] * len(names))
        return self

    def _set_table(
        self, conditions: Sequence[Sequence[CodedCondition]], n_codes: Sequence[int]
    ) -> None:
        self.table_ = condition_table(conditions, n_codes)
        self.conditions_ = list(self.table_.conditions)

    def _given_thresholds(self, table: Table) -> dict[str, NDArray[np.float64]]:
        """The user's thresholds by column name."""
        if not isinstance(self.thresholds, Mapping):
            return {}
        given = {}
        for key, numbers in self.thresholds.items():
            name = column_name(key, table.names, "thresholds")
            if table[name].kind != NUMERIC:
                raise ValueError(
                    f"thresholds are given for column {name!r}, which is {table[name].kind}: "
                    "only numeric columns have thresholds."
                )
            given[name] = given_thresholds(name, numbers)
        return given

    def _numeric_coder(
        self,
        column: Column,
        weights: NDArray[np.float64] | None,
        kept: NDArray[np.bool_] | None,
        given: NDArray[np.float64] | None,
    ) -> NumericCoder:
        values = column.values if kept is None else column.values[kept]
        if given is None:
            name = "quantile" if isinstance(self.thresholds, Mapping) else self.thresholds
            given = STRATEGIES[name](values, weights, int(self.n_thresholds))
        return NumericCoder(column.name, given, occurs_beside_others(np.isnan(values)))


def _weights(
    sample_weight: ArrayLike | None, n_rows: int
) -> tuple[NDArray[np.float64] | None, NDArray[np.bool_] | None]:
    """Weights of the rows that count, and which rows these are; None for all, and all equal."""
    if sample_weight is None:
        return None, None
    weights = _check_sample_weight(
        sample_weight, np.empty(n_rows), dtype=np.float64, ensure_non_negative=True
    )
    kept = weights > 0
    return (weights, None) if kept.all() else (weights[kept], kept)


def _n_codes(coder: Coder) -> int:
    if coder.n_codes > LARGEST_N_CODES:
        raise ValueError(
            f"column {coder.name!r} needs {coder.n_codes} codes, at most {LARGEST_N_CODES} are "
            "possible: drop it if it is an identifier, or group its levels."
        )
    return coder.n_codes
