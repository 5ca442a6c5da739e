"""Tables of rules and of explanations, in the library that the user works with."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from latticework.rules.statistics import REGRESSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latticework.rules.ensemble import RuleEnsemble

BACKENDS = ("pandas", "polars", "pyarrow")


def rules_frame(ensemble: RuleEnsemble, backend: str) -> Any:
    """One row per rule; the columns are documented at ``RuleEnsemble.to_frame``."""
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}.")
    rules = ensemble.rules
    headers = [f"weight[{name}]" for name in ensemble.outputs]
    quality = "mean" if ensemble.output == REGRESSION else "precision"
    columns: dict[str, Any] = {"rule": np.array([str(rule) for rule in rules], dtype=object)}
    columns |= dict(
        zip(headers if len(headers) > 1 else ["weight"], ensemble.weights.T, strict=True)
    )
    columns["length"] = np.array([len(rule) for rule in rules], dtype=np.int64)
    for name in ("support", quality, "lift"):
        columns[name] = np.array([getattr(rule, name) for rule in rules], dtype=np.float64)
    columns["importance"] = ensemble.importances
    return _frame(columns, backend)


def explanation_frame(
    X: Any, parts: NDArray[np.float64], terms: Sequence[str], outputs: Sequence[str]
) -> Any:
    """Contributions of shape (n, k, T) as a frame of the library that X is of, or pandas."""
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    backend = frame.implementation.value if isinstance(frame, nw.DataFrame) else "pandas"
    values = parts.reshape(len(parts), -1)
    if backend == "pandas":
        return _pandas_explanation(X, values, terms, outputs)
    names = list(terms)
    if len(outputs) > 1:
        names = [f"{term} [{output}]" for term in terms for output in outputs]
    return _frame(dict(zip(names, values.T, strict=True)), backend)


def _pandas_explanation(
    X: Any, values: NDArray[np.float64], terms: Sequence[str], outputs: Sequence[str]
) -> Any:
    pandas = _library("pandas")
    columns: Any = list(terms)
    if len(outputs) > 1:
        columns = pandas.MultiIndex.from_product([terms, outputs], names=["term", "output"])
    index = X.index if isinstance(X, pandas.DataFrame) else None
    return pandas.DataFrame(values, columns=columns, index=index)


def _frame(columns: dict[str, Any], backend: str) -> Any:
    library = _library(backend)
    contiguous = {name: np.ascontiguousarray(values) for name, values in columns.items()}
    contiguous = {
        name: values.tolist() if values.dtype == object else values
        for name, values in contiguous.items()
    }
    return nw.from_dict(contiguous, backend=library).to_native()


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"this table is a {name} frame, and {name} is not installed: run 'pip install {name}'"
            + (", or pass X as a frame of the library you use." if name == "pandas" else ".")
        ) from error
