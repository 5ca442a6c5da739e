"""What is checked of parameters and row weights beyond the types of scikit-learn's constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from latticework.losses import Loss
from latticework.rules.columns import refuse_masked

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from latticework.estimators.base import BaseRuleEstimator

_LARGEST_C = 1e100


def check_parameters(estimator: BaseRuleEstimator) -> None:
    """Refuse parameters that contradict each other, have no effect or cannot be computed with."""
    _refuse_booleans(estimator)
    _check_forms(estimator)
    loss = estimator.loss
    if isinstance(loss, Loss) and loss.task != estimator._loss_task:
        raise ValueError(
            f"loss={loss!r} is for {loss.task} targets, and {type(estimator).__name__} "
            f"needs a loss for {estimator._loss_task} ones (softmax is chosen by multiclass)."
        )
    categorical = estimator.categorical_features
    named = categorical is not None and not isinstance(categorical, str)
    conditions = estimator.conditions
    if named and not (isinstance(conditions, str) and conditions == "auto"):
        raise ValueError(
            "categorical_features has no effect with these conditions: give it to the "
            "Propositionalizer, or set conditions='auto'."
        )
    if estimator.n_jobs == 0:
        raise ValueError(
            "n_jobs=0 has no meaning: give the number of threads, -1 for all cores, or None."
        )
    if estimator.rho != 1:
        raise NotImplementedError(
            f"rho={estimator.rho} is not available yet: only rho=1 (exact sparsity over all "
            "conjunctions) is. Set rho=1."
        )


def _refuse_booleans(estimator: BaseRuleEstimator) -> None:
    """True is an integer to Python, but no alpha and no number of anything."""
    for name, value in estimator.get_params(deep=False).items():
        allowed = estimator._parameter_constraints.get(name, ["boolean"])
        may_be = any(isinstance(one, str) and one in ("boolean", "verbose") for one in allowed)
        if isinstance(value, (bool, np.bool_)) and not may_be:
            raise ValueError(f"{name}={value} must not be a boolean: give a number or None.")


def _check_forms(estimator: BaseRuleEstimator) -> None:
    alpha, cost = estimator.alpha, estimator.C
    if alpha is not None and cost is not None:
        raise ValueError(
            f"alpha={alpha} and C={cost} are two forms of one parameter: give one of "
            "them and leave the other None."
        )
    if cost is not None and not 1.0 / _LARGEST_C <= cost <= _LARGEST_C:
        raise ValueError(
            f"C={cost:g} is beyond what 64-bit floats can add up: give a C between "
            f"{1.0 / _LARGEST_C:g} and {_LARGEST_C:g}, or alpha."
        )


def row_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Weights (n,) of the rows; 1 where none are given.

    Raises
    ------
    ValueError, TypeError
        For anything but finite numbers >= 0, one for each row.
    """
    if sample_weight is not None:
        refuse_masked(sample_weight, "sample_weight")
        if not _are_numbers(np.asarray(sample_weight)):
            raise ValueError("sample_weight must hold numbers, one for each row.")
    return _check_sample_weight(
        sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True
    )


def _are_numbers(cells: NDArray[Any]) -> bool:
    """Whether cells are numbers, and not merely text that can be read as some."""
    if cells.dtype != object:
        return cells.dtype.kind in "biuf"
    if any(isinstance(cell, (str, bytes)) for cell in cells.flat):
        return False
    try:
        cells.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
