"""The rules at hand: their columns, and the weighted Gram matrices among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latticework._kernels import coordinate_descent as kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latticework.solvers.problem import LatticeProblem

_BLOCK = 16_384  # rows per block of a Gram matrix: a block of columns stays in the cache
# With no more rows than these, Gram matrices are exact: the order of the rows changes nothing.
_FEW_ROWS = 2048


class WorkingSet:
    """Columns that the restricted problem may use; the search adds to them.

    Columns 0 .. q-1 are the linear terms, the rest are rules.  Rules that select the same rows
    are one column, and so are rules that select complementary rows, as the intercept is free:
    the shortest of them is kept.  Where weights are restricted to one side, only rules with the
    same restriction and the same rows are.

    Attributes
    ----------
    conjunctions : list of tuple of int
        Of the rules, in the order of their columns.
    scale : ndarray of shape (size,)
        D of each column.
    sign : ndarray of shape (size,), int8
    """

    def __init__(self, problem: LatticeProblem) -> None:
        self.problem = problem
        self.conjunctions: list[tuple[int, ...]] = []
        self._bits = np.empty((64, problem.n_rows), np.uint8)
        self._column_of: dict[bytes, int] = {}
        self._known: set[tuple[int, ...]] = set()
        q = problem.n_dense
        self.scale = np.ones(q) if problem.dense_scale is None else problem.dense_scale.copy()
        self.sign = (
            np.zeros(q, np.int8) if problem.dense_signs is None else problem.dense_signs.copy()
        )

    @property
    def n_dense(self) -> int:
        return self.problem.n_dense

    @property
    def size(self) -> int:
        return self.n_dense + len(self.conjunctions)

    @property
    def bits(self) -> NDArray[np.uint8]:
        """Indicators of the rules (k, n)."""
        return self._bits[: len(self.conjunctions)]

    def add(self, conjunctions: Sequence[tuple[int, ...]]) -> int:
        """Add rules; return how many of them were new columns."""
        added = 0
        lattice = self.problem.lattice
        for conjunction in conjunctions:
            if conjunction in self._known:
                continue
            self._known.add(conjunction)
            column = lattice.indicator(conjunction)
            digest = self._digest(column, self.problem.lattice.sign(conjunction))
            twin = self._column_of.get(digest)
            if twin is None:
                self._column_of[digest] = len(self.conjunctions)
                self._append(conjunction, column)
                added += 1
            elif len(conjunction) < len(self.conjunctions[twin]):
                self._replace(twin, conjunction, column)
                added += 1
        return added

    def _digest(self, column: NDArray[np.uint8], sign: int) -> bytes:
        """Equal for columns that are one."""
        if self.problem.lattice.signs is None and column[0]:
            column = 1 - column
        return np.packbits(column).tobytes() + np.int8(sign).tobytes()

    def _replace(self, twin: int, conjunction: tuple[int, ...], column: NDArray[np.uint8]) -> None:
        """Let a shorter conjunction stand for the same column."""
        if np.array_equal(self._bits[twin], column):
            self.conjunctions[twin] = conjunction
            self.scale[self.n_dense + twin] = self.problem.lattice.scale(len(conjunction))
        else:  # the complement: a column of its own, for the coefficients' signs differ
            digest = self._digest(column, self.problem.lattice.sign(conjunction))
            self._column_of[digest] = len(self.conjunctions)
            self._append(conjunction, column)

    def _append(self, conjunction: tuple[int, ...], column: NDArray[np.uint8]) -> None:
        k = len(self.conjunctions)
        if k == len(self._bits):
            larger = np.empty((2 * k, self.problem.n_rows), np.uint8)
            larger[:k] = self._bits
            self._bits = larger
        self._bits[k] = column
        self.conjunctions.append(conjunction)
        self.scale = np.append(self.scale, self.problem.lattice.scale(len(conjunction)))
        self.sign = np.append(self.sign, np.int8(self.problem.lattice.sign(conjunction)))

    def correlate(self, residual: NDArray, which: NDArray | None = None) -> NDArray[np.float64]:
        """Inner products of columns with residuals.

        Parameters
        ----------
        residual : ndarray of shape (T, n)
        which : ndarray of shape (k,), optional
            Columns; all by default.

        Returns
        -------
        ndarray of shape (k, T)
        """
        which = np.arange(self.size) if which is None else np.asarray(which)
        out = np.empty((len(which), len(residual)))
        is_rule = which >= self.n_dense
        rules = np.empty((int(is_rule.sum()), len(residual)))
        kernels.correlate(self.bits, which[is_rule] - self.n_dense, residual, rules)
        out[is_rule] = rules
        if not is_rule.all() and self.problem.dense is not None:
            out[~is_rule] = self.problem.dense[which[~is_rule]] @ residual.T
        return out

    def predict(self, coef: NDArray, which: NDArray, out: NDArray) -> NDArray:
        """Add the predictions of some columns, with coefficients (k, T), to ``out`` (T, n)."""
        is_rule = which >= self.n_dense
        kernels.add_columns(
            self.bits, which[is_rule] - self.n_dense, np.ascontiguousarray(coef[is_rule]), out
        )
        if not is_rule.all() and self.problem.dense is not None:
            out += coef[~is_rule].T @ self.problem.dense[which[~is_rule]]
        return out

    def columns(self, which: NDArray, rows: slice) -> NDArray[np.floating]:
        """Some columns over a block of rows, after a column of ones: (1 + k, rows)."""
        n = len(range(*rows.indices(self.problem.n_rows)))
        dtype = np.float64 if self.problem.n_rows <= _FEW_ROWS else np.float32
        out = np.empty((1 + len(which), n), dtype)
        out[0] = 1.0
        for a, w in enumerate(which):
            if w >= self.n_dense:
                out[1 + a] = self._bits[w - self.n_dense, rows]
            elif self.problem.dense is not None:
                out[1 + a] = self.problem.dense[w, rows]
        return out


class GramCache:
    """Weighted Gram matrices of columns of a working set, kept while the weights hardly change.

    The matrices only steer the steps of Newton's method; the gradients are exact, so that a
    stale or single-precision matrix costs a step, not accuracy.
    """

    def __init__(self, working_set: WorkingSet, staleness: float = 0.1) -> None:
        self.working_set = working_set
        self.staleness = staleness
        self._members: dict[int, int] = {}
        self._gram = np.empty((0, 0, 0))
        self._weights = np.empty((0, 0))

    def get(self, which: NDArray, weights: NDArray, fresh: bool = False) -> NDArray[np.float64]:
        """Gram matrices (T, 1 + k, 1 + k) of a constant column and the columns ``which``.

        Parameters
        ----------
        which : ndarray of shape (k,)
        weights : ndarray of shape (T, n)
            Curvatures; (1, n) where all tasks share them.
        fresh : bool
            Whether the matrices must be those of these very weights.
        """
        missing = [int(w) for w in which if int(w) not in self._members]
        allowed = 0.0 if fresh else self.staleness
        try:
            if self._is_stale(weights, allowed) or len(self._members) > 2 * len(which) + 100:
                self._rebuild(which, weights)
            elif missing:
                self._extend(missing)
        except BaseException:  # an interrupt: matrices and members no longer belong together
            self._weights = np.empty((0, 0))
            raise
        place = np.array([0] + [1 + self._members[int(w)] for w in which])
        return self._gram[:, place[:, None], place[None, :]]

    def _is_stale(self, weights: NDArray, allowed: float) -> bool:
        if self._weights.shape != weights.shape:
            return True
        moved = np.abs(weights - self._weights).sum()
        return bool(moved > allowed * np.abs(self._weights).sum())

    def _rebuild(self, which: NDArray, weights: NDArray) -> None:
        self._weights = weights.copy()
        self._members = {int(w): a for a, w in enumerate(which)}
        order = np.asarray(which, dtype=np.int64)
        self._gram = self._products(order, order)

    def _extend(self, missing: list[int]) -> None:
        old = np.array(list(self._members), dtype=np.int64)
        k = len(old)
        for w in missing:
            self._members[w] = len(self._members)
        everything = np.array(list(self._members), dtype=np.int64)
        cross = self._products(np.array(missing, dtype=np.int64), everything)
        gram = np.empty((len(self._gram), len(everything) + 1, len(everything) + 1))
        gram[:, : k + 1, : k + 1] = self._gram
        gram[:, k + 1 :, :] = cross[:, 1:]
        gram[:, :, k + 1 :] = cross[:, 1:].transpose(0, 2, 1)
        self._gram = gram

    def _products(self, left: NDArray, right: NDArray) -> NDArray[np.float64]:
        """Weighted products between two lists of columns, each after the constant one."""
        n = self.working_set.problem.n_rows
        same = left is right
        out = np.zeros((len(self._weights), len(left) + 1, len(right) + 1))
        for start in range(0, n, _BLOCK):
            rows = slice(start, min(n, start + _BLOCK))
            b = self.working_set.columns(right, rows)
            a = b if same else self.working_set.columns(left, rows)
            for t, weights in enumerate(self._weights):
                out[t] += (a * weights[rows].astype(a.dtype)) @ b.T
        return out
