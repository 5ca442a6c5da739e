"""Equal rows as one row of their total weight, in an order that does not depend on theirs.

A weight of three and a row that is there three times are then one problem, not two that differ by
rounding, and so are the rows in any other order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Multipliers of the splitmix64 generator: they scatter the bits of 64-bit integers.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def equal_rows(
    codes: Any, others: Sequence[NDArray[Any]]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """A row of every kind, and the kind of each row.

    Parameters
    ----------
    codes : ndarray of shape (n, m), or csr_array of shape (n, m) that stores its ones only
    others : sequence of ndarray of shape (n, ...)
        Numbers that must be equal too; without NaN.

    Returns
    -------
    first : ndarray of shape (k,)
        Position of one row of each of the k kinds.
    kind : ndarray of shape (n,)
        Position of each row's kind in ``first``.

    Examples
    --------
    >>> first, kind = equal_rows(np.array([[2, 0], [1, 1], [2, 0]]), [np.array([0.5, 0.5, 0.5])])
    >>> sorted(first.tolist()), bool(kind[0] == kind[2] != kind[1])
    ([0, 1], True)
    """
    matrices = [np.asarray(other, np.float64).reshape(codes.shape[0], -1) for other in others]
    digest = _digest_of_codes(codes)
    for matrix in matrices:
        for column in matrix.T:
            digest = _scattered(digest * _STEP + _scattered((column + 0.0).view(np.uint64)))
    order = np.argsort(digest, kind="stable")
    again = 1 + np.flatnonzero(digest[order[1:]] == digest[order[:-1]])
    is_new = np.ones(len(order), bool)
    is_new[again] = _differ(codes, matrices, order[again], order[again - 1])
    kind = np.empty(len(order), np.intp)
    kind[order] = np.cumsum(is_new) - 1
    return order[is_new], kind


def _scattered(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers whose bits all depend on all bits of the given ones; different stay different."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    return numbers ^ (numbers >> np.uint64(31))


def _digest_of_codes(codes: Any) -> NDArray[np.uint64]:
    """Numbers (n,) that are equal for equal rows, and hardly ever for others."""
    n_rows, n_columns = codes.shape
    factors = _scattered(np.arange(1, n_columns + 1, dtype=np.uint64) * _STEP)
    if sparse.issparse(codes):
        sums = np.concatenate([[np.uint64(0)], np.cumsum(factors[codes.indices])])
        return sums[codes.indptr[1:]] - sums[codes.indptr[:-1]]
    digest = np.zeros(n_rows, np.uint64)
    for factor, column in zip(factors, codes.T, strict=True):
        digest += factor * column.astype(np.uint64)
    return digest


def _differ(
    codes: Any,
    matrices: Sequence[NDArray[np.float64]],
    left: NDArray[np.intp],
    right: NDArray[np.intp],
) -> NDArray[np.bool_]:
    """Whether pairs of rows differ anywhere."""
    if sparse.issparse(codes):
        unequal = sparse.csr_array(codes[left] != codes[right])
        differ = np.diff(unequal.indptr) > 0
    else:
        differ = np.any(codes[left] != codes[right], axis=1)
    for matrix in matrices:
        differ |= np.any(matrix[left] != matrix[right], axis=1)
    return np.asarray(differ)
