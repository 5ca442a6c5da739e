"""The table that a model's rules are evaluated on: only the columns they use, read as at fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from latticework.rules.as_is import sparse_truths
from latticework.rules.columns import Column, Table, default_names, read_table

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def read_features(
    X: Any, names: Sequence[str], kinds: Sequence[str], used: Collection[str]
) -> Table:
    """Columns of X with these names and kinds, as many as are used.

    Parameters
    ----------
    X : Table, frame, array-like or scipy sparse of shape (n, m)
        A frame needs the used columns only; arrays and sparse matrices, whose columns count by
        position, need all m.  Sparse matrices hold zeros and ones.
    names, kinds : sequence of m str
        The features of the model.
    used : collection of str
        The features that its rules test.

    Returns
    -------
    Table

    Examples
    --------
    >>> table = read_features([[63, "red"]], ["age", "colour"], ["numeric", "categorical"], ["age"])
    >>> table["age"].values
    array([63.])
    """
    if isinstance(X, Table):
        return X
    if sparse.issparse(X):
        return _read_sparse(X, names, used)
    if used and _has_columns(X, used) and list(names) != default_names(len(names)):
        kept = [(name, kind) for name, kind in zip(names, kinds, strict=True) if name in used]
        return read_table(X, names=[name for name, _ in kept], kinds=[kind for _, kind in kept])
    return read_table(X, names=names, kinds=kinds)


def _has_columns(X: Any, used: Collection[str]) -> bool:
    """Whether X is a frame with all these columns (columns without names are no strings)."""
    # pyarrow's `columns` are the data, its `column_names` the names.
    labels: Any = getattr(X, "column_names", getattr(X, "columns", ()))
    present = {label for label in labels if isinstance(label, str)}
    return present.issuperset(used)


def _read_sparse(X: Any, names: Sequence[str], used: Collection[str]) -> Table:
    if X.shape[1] != len(names):
        raise ValueError(
            f"X has {X.shape[1]} features, but the model is expecting {len(names)} features as "
            "input."
        )
    matrix = sparse_truths(X, names)
    positions = [j for j, name in enumerate(names) if name in used]
    dense = matrix[:, positions].toarray().astype(np.int32)
    columns = (
        Column(names[j], "boolean", dense[:, k], (False, True)) for k, j in enumerate(positions)
    )
    return Table(tuple(columns), X.shape[0])
