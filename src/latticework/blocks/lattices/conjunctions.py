"""The lattice of all conjunctions of p conditions, never materialised."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from latticework._kernels import lattice as kernels
from latticework.rules import conditions as ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latticework.rules.conditions import ConditionTable

_KINDS = {
    ops.LESS_EQUAL: kernels.LE,
    ops.GREATER: kernels.GT,
    ops.EQUAL: kernels.EQ,
    ops.NOT_EQUAL: kernels.NE,
    ops.IS_MISSING: kernels.MISSING,
    ops.IS_TRUE: kernels.TRUE,
}


@dataclass(frozen=True)
class ConjunctionLattice:
    """All conjunctions of the conditions of a table, over the rows of a data set.

    Parameters
    ----------
    codes : ndarray of shape (n, m), or scipy sparse array of shape (n, p)
        Integer codes, one per column; or the boolean columns themselves (``conditions="as-is"``).
    table : ConditionTable
        The p conditions.
    length_penalty : float
        a >= 0: a conjunction of k conditions has D = (1 + a)^k.
    max_length : int or None
        Largest number of conditions of a conjunction; None for no limit.
    signs : ndarray of shape (p,) or None
        -1, 0 or 1 per condition: the weights of conjunctions that hold it are at most or at least
        zero.  A conjunction of conditions with opposite signs has weight zero.
    """

    codes: NDArray[np.integer] | sparse.csr_array
    table: ConditionTable
    length_penalty: float = 1.0
    max_length: int | None = None
    signs: NDArray[np.int8] | None = field(default=None)

    @property
    def n_rows(self) -> int:
        return int(self.codes.shape[0])

    @property
    def n_conditions(self) -> int:
        return len(self.table)

    @cached_property
    def longest(self) -> int:
        """Number of conditions of the longest conjunction that can be met."""
        longest = self.n_conditions if self.max_length is None else self.max_length
        return max(1, min(longest, self.n_conditions))

    @cached_property
    def size(self) -> int:
        """Exact number of conjunctions, the empty one included."""
        p = self.n_conditions
        if self.longest >= p:
            return 2**p
        return sum(comb(p, k) for k in range(self.longest + 1))

    def scale(self, length: int) -> float:
        """D of a conjunction of ``length`` conditions: (1 + a)^length."""
        return float((1.0 + self.length_penalty) ** length)

    @cached_property
    def compiled(self) -> kernels.Lattice:
        """The arrays that the compiled search reads."""
        table = self.table
        kind = np.array([_KINDS[c.operator] for c in table.conditions], np.int8)
        key = np.where(kind == kernels.LE, table.high, table.low)
        key = np.where(kind == kernels.NE, table.hole, key).astype(np.int32)
        signs = np.zeros(len(table), np.int8) if self.signs is None else self.signs
        lengths = np.arange(self.longest + 1, dtype=np.float64)
        with np.errstate(over="ignore"):
            scale = (1.0 + self.length_penalty) ** lengths
        common: dict[str, NDArray] = {"kind": kind, "sign": signs.astype(np.int8), "scale": scale}
        if np.all(kind == kernels.TRUE) and len(table):
            return self._compiled_boolean(common)
        codes = np.ascontiguousarray(self.codes)
        return kernels.Lattice(
            codes=codes,
            by_column=np.ascontiguousarray(codes.T),
            indptr=np.empty(0, np.int64),
            indices=np.empty(0, np.int32),
            offset=np.concatenate([[0], np.cumsum(table.n_codes)]).astype(np.int32),
            column=table.column.astype(np.int32),
            key=key,
            **common,
        )

    def _compiled_boolean(self, common: dict[str, NDArray]) -> kernels.Lattice:
        """Boolean columns hold one bin each, and only the true cells are stored."""
        cells = sparse.csr_array(self.codes)[:, self.table.column]
        cells.eliminate_zeros()
        cells.sort_indices()
        p = self.n_conditions
        return kernels.Lattice(
            codes=np.empty((0, 0), np.uint8),
            by_column=np.empty((0, 0), np.uint8),
            indptr=cells.indptr.astype(np.int64),
            indices=cells.indices.astype(np.int32),
            offset=np.arange(p + 1, dtype=np.int32),
            column=np.arange(p, dtype=np.int32),
            key=np.zeros(p, np.int32),
            **common,
        )

    def sign(self, conjunction: Sequence[int]) -> int:
        """Side to which the weight of a conjunction is restricted, or 0."""
        sides = [] if self.signs is None else [int(self.signs[c]) for c in conjunction]
        return next((side for side in sides if side), 0)

    def extensions(self, conjunction: Sequence[int]) -> NDArray[np.int32]:
        """Conditions that may join a conjunction."""
        return kernels.extensions(self.compiled, np.asarray(conjunction, np.int32))

    def indicator(self, conjunction: Sequence[int]) -> NDArray[np.uint8]:
        """Rows (n,) that satisfy all conditions of a conjunction, as 0 and 1."""
        lattice = self.compiled
        return kernels.indicator(lattice, np.asarray(conjunction, np.int32), self.n_rows)
