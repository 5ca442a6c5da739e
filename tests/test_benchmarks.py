"""The benchmark harness measures what it says; the rivals themselves are not needed here."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks import larger, table2
from benchmarks.data import Dataset, load
from benchmarks.encoding import category_codes, mixed_array, one_hot
from benchmarks.rivals import METHODS, method
from benchmarks.runner import Store, mean_std, measure, run
from benchmarks.scaling import PLANTED, overlap, synthetic


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sets as the data folder holds them, one of them in two parts."""
    random = np.random.default_rng(0)
    rows = 120
    frame = pd.DataFrame(
        {
            "size": random.normal(size=rows).round(3),
            "colour": random.choice(["blue", "red", "green"], rows),
            "grade": random.choice(["low", "high"], rows),
        }
    )
    frame["target"] = np.where(frame["size"] + (frame["colour"] == "red") > 0.3, "yes", "no")
    frame.loc[:4, "size"] = np.nan
    columns = {
        "size": {"kind": "numeric"},
        "colour": {"kind": "nominal", "levels": ["red", "green", "blue"]},
        "grade": {"kind": "ordinal", "levels": ["low", "high"]},
    }
    names = ("toy", "monks3_train", "monks3_test")
    for name in names:
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    schema = {name: {"columns": columns} for name in names}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    return tmp_path


def test_sets_come_with_their_kinds(folder: Path) -> None:
    data = load("toy", folder)
    assert data.task == "classification"
    assert data.kinds == {"size": "numeric", "colour": "nominal", "grade": "ordinal"}
    assert list(data.X["grade"].cat.categories) == ["low", "high"]
    assert data.X["grade"].cat.ordered
    assert not data.X["colour"].cat.ordered
    assert len(data.complete_rows().y) == len(data.y) - 5
    assert data.as_nominal(0).kinds["size"] == "nominal"


def test_a_set_that_is_nowhere_names_the_remedy(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        load("absent", folder)
    with pytest.raises(ValueError, match="--data DIR"):
        load("absent")


def test_splits_are_those_of_the_protocol(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Namespace(data=str(folder), sets=["toy"], quick=False, seed_base=1000)
    found = list(table2.splits(options))
    assert [seed for _, seed, _ in found] == list(range(1000, 1010))
    assert {int(mask.sum()) for _, _, mask in found} == {11}  # a tenth of 115 complete rows
    assert len({mask.tobytes() for _, _, mask in found}) == 10
    options.sets = ["monks3"]
    ((data, _, mask),) = table2.splits(options)
    assert mask.all()
    assert data.test is not None
    options.sets = ["toy"]
    assert [int(mask.sum()) for *_, mask in larger.splits(options)] == [84] * 3


def test_method_names() -> None:
    built = method("latticework20:concavity=0.5,loss='hinge'")(3, 1)
    assert (built.max_rules, built.seed) == (20, 3)
    assert built.parameters == {"concavity": 0.5, "loss": "hinge"}
    assert method("l1logit")(0, 1).max_rules is None
    for name in ("nothing", "ebm50", "l1logit5", "rulefit:50"):
        with pytest.raises(SystemExit, match=r"unknown|limit|name=value"):
            method(name)
    assert all(method(name)(0, 1).package for name in METHODS)


def test_encodings_keep_levels_and_missing_cells() -> None:
    X = pd.DataFrame(
        {
            "number": [1.0, np.nan, 3.0, 4.0],
            "two": pd.Categorical(["a", "b", None, "a"]),
            "three": pd.Categorical(["u", "v", "w", "u"]),
            "ranked": pd.Categorical(["low", "high", "low", "high"], ["low", "high"], ordered=True),
        }
    )
    codes, nominal = category_codes(X)
    assert nominal == [1, 2]
    np.testing.assert_array_equal(codes[:, 1], [0, 1, np.nan, 0])
    np.testing.assert_array_equal(codes[:, 3], [0, 1, 0, 1])
    mixed = mixed_array(X)
    assert mixed[0].tolist() == [1.0, "a", "u", "low"]
    assert pd.isna(mixed[1, 0])
    assert pd.isna(mixed[2, 1])
    encoded = one_hot(X).fit_transform(X)
    assert not np.isnan(encoded).any()
    assert encoded.shape == (4, 3 + 3 + 1 + 1)  # "two" has a missing level, "ranked" has two


def test_results_are_kept_measured_once_and_reported(folder: Path) -> None:
    options = Namespace(
        methods=["l1logit", "ebm:no_such_parameter=1"], n_jobs=1, redo=False, seed_base=0
    )
    data = load("toy", folder).complete_rows()
    data = Dataset("liver", data.X, data.y, data.task, data.kinds)
    mask = np.arange(len(data.y)) % 2 == 0
    store = Store(folder / "results.jsonl")
    run(options, iter([(data, 0, mask)]), store)
    row = store.rows["l1logit", "liver", 0]
    assert row["f1"] > 0.5
    assert row["length"] == 1.0
    assert "error" in store.rows["ebm:no_such_parameter=1", "liver", 0]

    again = Store(store.file)
    assert again.rows == store.rows
    options.methods = ["l1logit"]
    run(options, iter([(data, 0, mask)]), again)
    assert Store(store.file).rows == store.rows

    assert "| l1logit | 1 |" in table2.report(store.frame(), options)
    rows = store.frame().assign(set="diabetes")
    assert "| diabetes |" in larger.report(rows, options)


def test_scores_are_those_of_the_positive_class() -> None:
    random = np.random.default_rng(1)
    X = pd.DataFrame({"a": random.normal(size=300), "b": random.normal(size=300)})
    y = np.where(X["a"] > 0, "positive", "negative")
    row = measure("l1logit", (X[:200], y[:200]), (X[200:], y[200:]), 0, 1)
    assert row["auc"] > 0.95
    assert row["accuracy"] > 0.9
    assert row["log_loss"] < 0.5


def test_mean_and_deviation() -> None:
    assert mean_std(pd.Series([1.0, 2.0, 3.0]), 1) == "2.0 ± 1.0"
    assert mean_std(pd.Series([1.0])) == "1.000"
    assert mean_std(pd.Series([np.nan])) == ""


def test_planted_rules_are_told_from_others() -> None:
    X, y = synthetic(3000, 10)
    assert 0.2 < y.mean() < 0.8

    class Exact:
        def transform(self, X: pd.DataFrame) -> np.ndarray:
            return np.column_stack([rule(X) for rule, _ in PLANTED[:4]])

    found = overlap(Exact(), X)
    assert found[:4] == [1.0] * 4
    assert found[4] < 0.9
