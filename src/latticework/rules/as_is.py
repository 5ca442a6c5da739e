"""Tables that are conditions already: zeros and ones, dense or sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from latticework.rules.columns import Column, Table, read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def truth_codes(X: Any, names: Sequence[str]) -> NDArray[np.uint8]:
    """Codes 0 and 1 of a table of booleans, or of numbers that are all 0 or 1.

    Parameters
    ----------
    X : array-like, frame, Table or scipy sparse of shape (n, m)
    names : sequence of str
        Names of the m columns.

    Returns
    -------
    ndarray of shape (n, m), uint8, C-contiguous

    Examples
    --------
    >>> truth_codes([[True, False], [False, False]], ["wet", "cold"])
    array([[1, 0],
           [0, 0]], dtype=uint8)
    >>> truth_codes([[0, 1], [1, 2]], ["wet", "cold"])
    Traceback (most recent call last):
    ...
    ValueError: with conditions='as-is' every cell must be true or false (1 or 0), but column 'cold'
    holds 2.0: pass such columns with conditions='auto'.
    """
    if sparse.issparse(X):
        return sparse_truths(X, names).toarray().astype(np.uint8)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.size and X.dtype.kind in "biuf":
        truths = np.ascontiguousarray(X == 1)
        if (truths | (X == 0)).all():
            return truths.view(np.uint8)
    # Column by column: slower, but an error can name the column.
    table = X if isinstance(X, Table) else read_table(X, names=names)
    codes = np.empty((table.n_rows, len(table.columns)), dtype=np.uint8)
    for j, column in enumerate(table.columns):
        codes[:, j] = _truths(column)
    return codes


def _truths(column: Column) -> NDArray[np.bool_]:
    if column.missing.any():
        raise ValueError(
            f"with conditions='as-is' no cell may be missing, but some of column {column.name!r} "
            "are: fill them, or pass the column with conditions='auto'."
        )
    values = column.values
    if column.levels is not None:
        for level in column.levels:
            if isinstance(level, str) or level not in (0, 1):
                _refuse(column.name, level)
        values = np.array(column.levels)[values]
    truths = values == 1
    other = ~truths & (values != 0)
    if other.any():
        _refuse(column.name, values[other][0])
    return truths


def sparse_truths(X: Any, names: Sequence[str]) -> sparse.csr_array:
    """A sparse matrix of zeros and ones as booleans that stores its ones only.

    Returns
    -------
    csr_array of shape (n, m), bool
        In canonical form: sorted indices, nothing stored twice, no stored zeros.
    """
    matrix = sparse.csr_array(X)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    data = matrix.data
    other = (data != 0) & (data != 1)
    if other.any():
        worst = int(other.argmax())
        _refuse(names[int(matrix.indices[worst])], data[worst])
    matrix = sparse.csr_array(
        (data.astype(bool), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    if not matrix.data.all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def _refuse(name: str, value: Any) -> None:
    shown = value.item() if isinstance(value, np.generic) else value
    raise ValueError(
        f"with conditions='as-is' every cell must be true or false (1 or 0), but column {name!r} "
        f"holds {shown!r}: pass such columns with conditions='auto'."
    )
