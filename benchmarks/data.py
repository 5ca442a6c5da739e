"""The benchmark sets, from a folder (``--data DIR``) or else from OpenML.

The folder holds one CSV per set, target last, and a ``schema.json`` that says of every column
whether it is numeric, ordinal or nominal.  Without a folder the same sets come from OpenML through
scikit-learn; rows may then stand in another order, so splits differ from those of the folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

# OpenML data ids. The target column is named where OpenML's default target is another one.
OPENML: dict[str, tuple[int, str | None]] = {
    "abalone": (183, None),
    "adult": (1590, None),
    "balance_scale": (11, None),
    "blood_transfusion": (1464, None),
    "breast_cancer": (13, None),
    "breast_cancer_w": (15, None),
    "car": (21, None),
    "cmc": (23, None),
    "credit_a": (29, None),
    "credit_g": (31, None),
    "dermatology": (35, None),
    "diabetes": (37, None),
    "ecoli": (39, None),
    "glass": (41, None),
    "haberman": (43, None),
    "heart_c": (49, None),
    "heart_statlog": (53, None),
    "ionosphere": (59, None),
    "iris": (61, None),
    "kr_vs_kp": (3, None),
    "letter": (6, None),
    "liver": (8, "selector"),
    "lymph": (10, None),
    "magic": (1120, None),
    "monks3": (335, None),
    "mushroom": (24, None),
    "segment": (36, None),
    "sonar": (40, None),
    "spambase": (44, None),
    "splice": (46, None),
    "tae": (48, None),
    "tic_tac_toe": (50, None),
    "vehicle": (54, None),
    "vote": (56, None),
    "wine": (187, None),
    "yeast": (181, None),
    "zoo": (62, None),
}
REGRESSION = {"abalone", "house_16h", "mcycle", "dna"}
MONKS_TEST_ROWS = 432  # every combination of the six attributes, once


@dataclass(frozen=True)
class Dataset:
    """One set, ready to be split.

    ``X`` has nominal columns as unordered and ordinal ones as ordered categories; ``y`` holds
    strings, or floats for regression; ``kinds`` maps a column to "numeric", "ordinal" or
    "nominal".  ``test`` is the test part of a set that comes with its own split.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    task: str
    kinds: dict[str, str] = field(repr=False)
    test: Dataset | None = field(default=None, repr=False)

    def complete_rows(self) -> Dataset:
        """The rows without a missing cell, as the gHKL paper takes them."""
        keep = self.X.notna().all(axis=1).to_numpy()
        return Dataset(self.name, self.X[keep], self.y[keep], self.task, self.kinds, self.test)

    def as_nominal(self, *columns: int) -> Dataset:
        """The same set with the columns at these positions taken as nominal."""
        X, kinds = self.X.copy(), dict(self.kinds)
        for name in X.columns[list(columns)]:
            X[name] = X[name].astype(str).astype("category")
            kinds[name] = "nominal"
        return Dataset(self.name, X, self.y, self.task, kinds, self.test)


def load(name: str, folder: str | Path | None = None) -> Dataset:
    """The set of this name, from the folder when one is given and from OpenML otherwise."""
    if name == "monks3":
        return _monks3(folder)
    return _from_openml(name) if folder is None else _from_folder(name, Path(folder))


def _from_folder(name: str, folder: Path) -> Dataset:
    files = [folder / f"{name}{ending}" for ending in (".csv", ".csv.gz")]
    found = [file for file in files if file.exists()]
    if not found:
        raise FileNotFoundError(f"no {files[0].name} or {files[1].name} in {folder}")
    frame = pd.read_csv(found[0], dtype=None if name in REGRESSION else {"target": str})
    X, y = frame.drop(columns="target"), frame["target"].to_numpy()
    if name == "dna":
        return Dataset(name, X.astype(bool), y.astype(float), "regression", {})
    schema = json.loads((folder / "schema.json").read_text())[name]
    kinds = {column: about["kind"] for column, about in schema["columns"].items()}
    for column, about in schema["columns"].items():
        if not pd.api.types.is_numeric_dtype(X[column]):
            ordered = about["kind"] == "ordinal"
            levels = about["levels"] if ordered else sorted(X[column].dropna().unique())
            X[column] = X[column].astype(pd.CategoricalDtype(levels, ordered=ordered))
    return _finished(name, X, y, kinds)


def _from_openml(name: str) -> Dataset:
    from sklearn.datasets import fetch_openml

    if name not in OPENML:
        raise ValueError(
            f"no OpenML set is known to be the same as {name!r}: pass the folder that holds it "
            "with --data DIR"
        )
    number, target = OPENML[name]
    if target is None:
        X, y = fetch_openml(data_id=number, as_frame=True, return_X_y=True)
    else:
        X, y = fetch_openml(data_id=number, as_frame=True, return_X_y=True, target_column=target)
    kinds = {
        column: "nominal" if isinstance(X[column].dtype, pd.CategoricalDtype) else "numeric"
        for column in X.columns
    }
    return _finished(name, X, np.asarray(y), kinds)


def _finished(name: str, X: pd.DataFrame, y: np.ndarray, kinds: dict[str, str]) -> Dataset:
    task = "regression" if name in REGRESSION else "classification"
    y = y.astype(float) if task == "regression" else y.astype(str).astype(object)
    return Dataset(name, X, y, task, kinds)


def _monks3(folder: str | Path | None) -> Dataset:
    """MONK-3 with its own training and test rows."""
    if folder is not None:
        train, test = (_from_folder(f"monks3_{part}", Path(folder)) for part in ("train", "test"))
    else:
        # OpenML stacks both parts; the test part is the block in which no combination repeats.
        whole = _from_openml("monks3")
        head = whole.X.iloc[:MONKS_TEST_ROWS]
        test_first = not head.duplicated().any()
        cut = MONKS_TEST_ROWS if test_first else len(whole.X) - MONKS_TEST_ROWS
        blocks = [
            Dataset("monks3", whole.X.iloc[rows], whole.y[rows], whole.task, whole.kinds)
            for rows in (slice(None, cut), slice(cut, None))
        ]
        test, train = blocks if test_first else blocks[::-1]
    return Dataset("monks3", train.X, train.y, train.task, train.kinds, test)
