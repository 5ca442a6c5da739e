"""``latticework learn``: tasks, options, what is printed, and that it is the Python API's model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.commands import HEADER, Command, filled, labelled, people, write_csv

from latticework import RuleClassifier, RuleClassifierCV, RuleEnsemble, RuleRegressorCV

QUICK = ("--alpha", "0.02")


def frame(file: Path) -> tuple[pd.DataFrame, pd.Series]:
    """The people as pandas reads them, and what they bought."""
    data = pd.read_csv(file)
    return data.drop(columns="bought"), data["bought"]


def saved(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8")))


# ----------------------------------------------------------------------------- the same model


def test_the_model_is_the_python_apis(run: Command, people_csv: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    options = ("--max-rules", 3, "--folds", 3, "--seed", 5)
    assert run("learn", people_csv, "-t", "bought", "-m", file, *options).code == 0
    model = RuleClassifierCV(max_rules=3, cv=3, random_state=5).fit(*frame(people_csv))
    assert saved(file) == json.loads(model.rules_.to_json())
    assert 1 <= len(saved(file)["rules"]) <= 3


def test_a_regression_is_the_python_apis(run: Command, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    data = pd.DataFrame(random.normal(size=(120, 3)).round(3), columns=["a", "b", "c"])
    data["y"] = (2.0 * (data["a"] > 0.0) + random.normal(size=120) / 4.0).round(4)
    data.to_csv(tmp_path / "data.csv", index=False)
    file = tmp_path / "model.json"
    options = ("--max-rules", 2, "--folds", 3)
    outcome = run("learn", tmp_path / "data.csv", "-t", "y", "-m", file, *options)
    why = f"regression, because 'y' holds {data['y'].nunique()} different numbers"
    assert why in outcome.flat()
    model = RuleRegressorCV(max_rules=2, cv=3, scoring="r2", random_state=0)
    expected = json.loads(model.fit(data[["a", "b", "c"]], data["y"]).rules_.to_json())
    assert saved(file) == {**expected, "outputs": ["y"]}
    assert f"cross-validation: R2 {model.best_score_:.4g}" in outcome.flat()


@pytest.mark.parametrize("ending", ["parquet", "csv.gz", "tsv", "pq"])
def test_every_kind_of_file_gives_the_same_model(
    run: Command, people_csv: Path, tmp_path: Path, ending: str
) -> None:
    data = pd.read_csv(people_csv)
    other = tmp_path / f"people.{ending}"
    if ending in ("parquet", "pq"):
        data.to_parquet(other)
    else:
        data.to_csv(other, index=False, sep="\t" if ending == "tsv" else ",")
    for source in (people_csv, other):
        outcome = run("learn", source, "-t", "bought", "-m", tmp_path / "m.json", *QUICK)
        assert "240 rows, 4 columns beside the target (2 numeric, 1 categorical, 1 boolean)" in (
            outcome.flat()
        )
        if source == people_csv:
            expected = saved(tmp_path / "m.json")
    assert saved(tmp_path / "m.json") == expected


# ----------------------------------------------------------------------------------- the task


def numbered(*targets: float) -> list[list[str]]:
    """Rows of HEADER with these targets, over and over."""
    return [[*row[:-1], f"{targets[k % len(targets)]:g}"] for k, row in enumerate(people(60))]


@pytest.mark.parametrize(
    ("targets", "task"),
    [
        ((0, 1), "classification"),
        ((1.5, 2.5), "classification"),
        (tuple(range(10)), "classification"),
        (tuple(range(11)), "regression"),
        ((0.5, 1.5, 2.0), "regression"),
    ],
)
def test_the_task_follows_the_target(
    run: Command, tmp_path: Path, targets: tuple[float, ...], task: str
) -> None:
    file = write_csv(tmp_path / "data.csv", numbered(*targets))
    outcome = run("learn", file, "-t", "bought", "--alpha", 1)
    kind = "whole numbers" if all(t == round(t) for t in targets) else "numbers"
    why = f"{task}, because 'bought' holds {len(targets)} different {kind} (--task overrides this)"
    assert labelled(outcome)["Task"] == why


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_task_can_be_set(run: Command, tmp_path: Path, task: str) -> None:
    file = write_csv(tmp_path / "data.csv", numbered(0, 1))
    model = tmp_path / "m.json"
    outcome = run("learn", file, "-t", "bought", "--task", task, "-m", model, "--alpha", 1)
    assert labelled(outcome)["Task"] == f"{task}, as asked"
    assert saved(model)["output"] == {"classification": "binary"}.get(task, task)


def test_text_is_no_regression(run: Command, people_csv: Path) -> None:
    error = run("learn", people_csv, "-t", "bought", "--task", "regression").error()
    assert f"{people_csv}: the target 'bought' holds 'no', which is no number" in error
    assert "--task classification" in error


def test_several_classes(run: Command, people_csv: Path, tmp_path: Path) -> None:
    outcome = run("learn", people_csv, "-t", "colour", "-m", tmp_path / "m.json", *QUICK)
    parts = labelled(outcome)
    assert re.fullmatch(r'colour: blue, dark \(\d+\), gr"een \(\d+\), red \(\d+\)', parts["Target"])
    assert saved(tmp_path / "m.json")["output"] == "multiclass"
    assert "probability of a class" in outcome.out


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_hinges_of_several_classes_are_one_against_the_rest(
    run: Command, people_csv: Path, tmp_path: Path, loss: str
) -> None:
    file = tmp_path / "m.json"
    assert run("learn", people_csv, "-t", "colour", "--loss", loss, "-m", file, *QUICK).code == 0
    X, y = pd.read_csv(people_csv).drop(columns="colour"), pd.read_csv(people_csv)["colour"]
    model = RuleClassifier(alpha=0.02, loss=loss, multiclass="one-vs-rest").fit(X, y)
    assert saved(file) == json.loads(model.rules_.to_json())


# -------------------------------------------------------------------------------- the options


def test_what_is_printed(run: Command, people_csv: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    outcome = run("learn", people_csv, "-t", "bought", "-m", model, "--holdout", 0.25, *QUICK)
    parts = labelled(outcome)
    assert parts["Data"].startswith(f"{people_csv}: 240 rows, 4 columns beside the target")
    assert parts["Data"].endswith("27 missing cells")
    assert parts["Target"] == "bought: no (172), yes (68)"
    assert "rules, alpha 0.02 as asked, in " in parts["Model"]
    assert RuleEnsemble.from_json(model.read_text()).to_text(sort_by="importance") in outcome.out
    assert re.search(r"more than 0\.\d+ % below that of this model\.$", parts["Certificate"])
    assert "rows learnt from: accuracy 0." in parts["Score"]
    assert "60 rows set aside: accuracy 0." in parts["Score"]
    assert parts["Saved"] == str(model)
    assert f"latticework predict {model} new.csv" in parts["Next"]
    assert outcome.err == ""


def test_without_a_model_file_the_remedy_is_told(run: Command, people_csv: Path) -> None:
    outcome = run("learn", people_csv, "-t", "bought", *QUICK)
    assert labelled(outcome)["Saved"] == "nothing; add  --model model.json  to keep the model"
    assert "Next" not in outcome.out


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        (("--columns", "age,income"), ["age", "income"]),
        (("--drop", "age", "--drop", "colour, member"), ["income"]),
        (("--columns", "age,bought,colour", "--drop", "colour"), ["age"]),
        (("--columns", "odd, name"), ["odd, name"]),
    ],
)
def test_columns_are_chosen(
    run: Command, tmp_path: Path, options: tuple[str, ...], columns: list[str]
) -> None:
    rows = [[*row, str(k % 7)] for k, row in enumerate(people())]
    file = write_csv(tmp_path / "data.csv", rows, (*HEADER, "odd, name"))
    model = tmp_path / "m.json"
    drop = () if "--columns" in options else ("--drop", "odd, name")
    assert run("learn", file, "-t", "bought", "-m", model, *options, *drop, *QUICK).code == 0
    assert [feature["name"] for feature in saved(model)["features"]] == columns


def test_numbers_can_be_names(run: Command, people_csv: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    options = ("--columns", "age,colour", "--categorical", "age", *QUICK)
    assert run("learn", people_csv, "-t", "bought", "-m", model, *options).code == 0
    assert [feature["kind"] for feature in saved(model)["features"]] == ["categorical"] * 2


def test_options_of_the_model_reach_it(run: Command, people_csv: Path, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    options = ("--length-penalty", 0, "--max-length", 2, "--thresholds", 3, "--relax", 0.5)
    assert run("learn", people_csv, "-t", "bought", "-m", file, *options, *QUICK).code == 0
    model = RuleClassifier(
        alpha=0.02, length_penalty=0.0, max_length=2, n_thresholds=3, relax=0.5, random_state=0
    ).fit(*frame(people_csv))
    assert saved(file) == json.loads(model.rules_.to_json())
    assert max(len(rule["conditions"]) for rule in saved(file)["rules"]) == 2


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--alpha", 10), "at this alpha no rule is worth its penalty: choose a smaller --alpha"),
        (("--max-rules", 0, "--folds", 2), "as --max-rules 0 asks"),
    ],
)
def test_a_model_without_rules_says_why(
    run: Command, people_csv: Path, options: tuple[object, ...], why: str
) -> None:
    outcome = run("learn", people_csv, "-t", "bought", *options)
    assert labelled(outcome)["No rules"] == why
    assert "Model        0 rules" in outcome.out


def test_columns_that_never_change_are_no_reason_to_fail(run: Command, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "data.csv", filled("age", "3"))
    outcome = run("learn", file, "-t", "bought", "--columns", "age", *QUICK)
    assert "no column has two different values" in labelled(outcome)["No rules"]


def test_identifiers_are_pointed_out(run: Command, tmp_path: Path) -> None:
    rows = [[f"p{k}", *row] for k, row in enumerate(people(60))]
    file = write_csv(tmp_path / "data.csv", rows, ("patient id", *HEADER))
    outcome = run("learn", file, "-t", "bought", *QUICK)
    assert "column 'patient id' has 60 different values in 60 rows" in outcome.err
    assert "--drop 'patient id'" in outcome.err
    assert outcome.code == 0


def test_a_limit_of_time_is_told(run: Command, people_csv: Path, tmp_path: Path) -> None:
    options = ("-m", tmp_path / "m.json", "--time-limit", 1e-9)
    outcome = run("learn", people_csv, "-t", "bought", *options)
    assert outcome.code == 0
    assert "warning: stopped by --time-limit 1e-09: this is the best model so far" in outcome.err
    assert "after 0 of 20 folds" in outcome.err
    assert "chosen without cross-validation" in outcome.out
    assert saved(tmp_path / "m.json")["classes"] == ["no", "yes"]


# ------------------------------------------------------------------- mistakes in the options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "bougt"), "no column 'bougt', which --target names; did you mean 'bought'?"),
        (("-t", "bought", "--drop", "x"), "no column 'x', which --drop names; the file has 'age',"),
        (("-t", "bought", "--columns", "x,y"), "no columns 'x', 'y', which --columns names"),
        (("-t", "bought", "--categorical", "x"), "no column 'x', which --categorical names"),
        (("-t", "age", "--columns", "age"), "no column is left to learn from beside the target"),
        (("-t", "bought", "--holdout", "0.001"), "--holdout 0.001: 240 rows cannot be divided"),
    ],
)
def test_mistakes_name_the_option(
    run: Command, people_csv: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in run("learn", people_csv, *options).error()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the following arguments are required: --target/-t"),
        (("-t", "y", "--loss", "huber", "--task", "classification"), "--loss huber is not for"),
        (("-t", "y", "--alpha", "1", "--max-rules", "3"), "give one of them"),
        (("-t", "y", "--alpha", "1", "--folds", "3"), "drop --folds"),
        (("-t", "y", "--alpha", "0"), "'0' is not a number above 0"),
        (("-t", "y", "--alpha", "nan"), "'nan' is not a number above 0"),
        (("-t", "y", "--max-rules", "-1"), "'-1' is not a whole number of 0 or more"),
        (("-t", "y", "--folds", "1"), "'1' is not a whole number of 2 or more"),
        (("-t", "y", "--relax", "2"), "'2' is not a number from 0 to 1"),
        (("-t", "y", "--holdout", "1"), "'1' is not a number above 0 to 0.9"),
        (("-t", "y", "--jobs", "0"), "'0' is not a number of threads"),
        (("-t", "y", "--task", "guess"), "invalid choice: 'guess'"),
        (("-t", "y", "--rules", "3"), "unrecognized arguments: --rules 3"),
    ],
)
def test_mistakes_are_explained(
    run: Command, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    file = write_csv(tmp_path / "data.csv", [[str(k), "ab"[k % 2]] for k in range(9)], ("x", "y"))
    assert message in run("learn", file, *options).error()
