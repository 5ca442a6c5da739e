"""What is to be predicted: classes or numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latticework.cli.errors import CommandError
from latticework.rules.cells import CATEGORICAL, NUMERIC, as_kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latticework.cli.sheets import Sheet
    from latticework.rules.cells import Column

CLASSIFICATION, REGRESSION = "classification", "regression"
# Whole numbers with at most so many different values are taken for classes.
_MOST_NUMBERED_CLASSES = 10


def task_of(sheet: Sheet, target: Column, asked: str) -> tuple[str, str]:
    """Classification or regression, and why."""
    n_missing = int(target.missing.sum())
    if n_missing:
        first = int(target.missing.argmax()) + 1
        raise CommandError(
            f"{sheet.path}: the target {target.name!r} has {n_missing:,} missing "
            f"{'cell' if n_missing == 1 else 'cells'} among {sheet.n_rows:,} (the first in row "
            f"{first:,} after the header): fill in or remove such rows"
        )
    if target.levels is not None:
        if asked == REGRESSION:
            raise CommandError(
                f"{sheet.path}: the target {target.name!r} holds {target.levels[0]!r}, which is "
                "no number: convert it, or use --task classification"
            )
        reason = f"{target.name!r} holds {'truth values' if target.kind == 'boolean' else 'text'}"
        return CLASSIFICATION, "as asked" if asked != "auto" else reason
    if asked != "auto":
        return asked, "as asked"
    distinct = np.unique(target.values)
    whole = bool(np.all(distinct == np.round(distinct)))
    few = len(distinct) <= (_MOST_NUMBERED_CLASSES if whole else 2)
    kind = "whole numbers" if whole else "numbers"
    reason = f"{target.name!r} holds {len(distinct):,} different {kind}"
    return (CLASSIFICATION if few else REGRESSION), reason


def labels_of(sheet: Sheet, target: Column, task: str) -> NDArray[Any]:
    """The target as an array: numbers, or labels."""
    if task == REGRESSION:
        return target.values
    column = as_kind(target, CATEGORICAL) if target.kind == NUMERIC else target
    assert column.levels is not None
    codes = column.values
    present = np.unique(codes)
    if len(present) < 2:
        raise CommandError(
            f"{sheet.path}: the target {target.name!r} is {column.levels[codes[0]]!r} in every "
            "row: there is nothing to tell apart; add rows of another class"
        )
    if len(present) == sheet.n_rows:
        raise CommandError(
            f"{sheet.path}: the target {target.name!r} is different in every row, so no class "
            "can be learnt; name another column, or use --task regression if it is a number"
        )
    return np.array(column.levels)[codes]
