"""Columns as the rivals want them: one-hot, integer codes, mixed arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder


def is_categorical(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column)


def one_hot(X: pd.DataFrame) -> ColumnTransformer:
    """Unfitted encoder: indicators of levels (one for two levels), medians for missing numbers."""
    categorical = [name for name in X if is_categorical(X[name])]
    numeric = [name for name in X if not is_categorical(X[name])]
    levels = OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [("levels", levels, categorical), ("numbers", SimpleImputer(strategy="median"), numeric)]
    )


def category_codes(X: pd.DataFrame) -> tuple[np.ndarray, list[int]]:
    """Matrix with level numbers in place of unordered levels, and where these columns stand."""
    columns, nominal = [], []
    for k, name in enumerate(X):
        column = X[name]
        if is_categorical(column):
            codes = column.astype("category").cat.codes.to_numpy(dtype=np.float32)
            columns.append(np.where(codes < 0, np.float32(np.nan), codes))
            if not column.cat.ordered:
                nominal.append(k)
        else:
            columns.append(column.to_numpy(dtype=np.float32))
    return np.column_stack(columns), nominal


def mixed_array(X: pd.DataFrame) -> np.ndarray:
    """Object array of floats and strings, missing cells as NaN; floats where all are numbers."""
    if not any(is_categorical(X[name]) for name in X):
        return X.to_numpy(dtype=float)
    columns = [
        X[name].astype(object).where(X[name].notna(), np.nan)
        if is_categorical(X[name])
        else X[name].astype(float).astype(object)
        for name in X
    ]
    return pd.concat(columns, axis=1).to_numpy(dtype=object)
