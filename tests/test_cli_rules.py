"""``latticework rules``: every format says what the model says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from tests.commands import Command, Outcome, learn_into

from latticework import RuleEnsemble

FORMATS = ("text", "markdown", "sql", "json", "latex", "python")


def ensemble_of(file: Path) -> RuleEnsemble:
    return RuleEnsemble.from_json(file.read_text(encoding="utf-8"))


def written(run: Command, *arguments: object) -> str:
    outcome = run("rules", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out


def same_but_for_rounding(found: Any, expected: Any) -> bool:
    """Whether scores agree up to the order of a sum."""
    return bool(np.allclose(found, expected, rtol=0.0, atol=1e-12))


# ----------------------------------------------------------------------------------- each format


@pytest.mark.parametrize("name", ["text", "markdown", "latex"])
def test_tables_are_the_ensembles(run: Command, people_model: Path, name: str) -> None:
    export = getattr(ensemble_of(people_model), f"to_{name}")
    assert written(run, people_model, "--format", name) == export(sort_by="importance") + "\n"


def test_text_is_what_is_written_without_a_format(run: Command, people_model: Path) -> None:
    assert written(run, people_model) == written(run, people_model, "-f", "text")


def test_json_is_the_model(run: Command, people_model: Path) -> None:
    text = written(run, people_model, "-f", "json")
    assert json.loads(text) == json.loads(people_model.read_text(encoding="utf-8"))


@pytest.mark.parametrize("table", [None, "clinic.patients"])
def test_sql_gives_the_scores(
    run: Command, people_model: Path, people_csv: Path, table: str | None
) -> None:
    frame = pd.read_csv(people_csv)
    options = [] if table is None else ["--table", table]
    select = written(run, people_model, "-f", "sql", *options)
    with duckdb.connect() as database:
        database.register("frame", frame)
        database.execute("CREATE SCHEMA clinic")
        database.execute(f"CREATE TABLE {table or 'data'} AS SELECT * FROM frame")
        *_, scores = zip(*database.execute(select).fetchall(), strict=True)
    assert same_but_for_rounding(scores, ensemble_of(people_model).decision_function(frame))


def test_python_gives_the_scores(run: Command, people_model: Path, people_csv: Path) -> None:
    names: dict[str, Any] = {}
    exec(written(run, people_model, "-f", "python"), names)
    frame = pd.read_csv(people_csv)
    scores = [names["decision_function"](row) for row in frame.to_dict("records")]
    assert same_but_for_rounding(scores, ensemble_of(people_model).decision_function(frame))


# ------------------------------------------------------------------------------------- the output


@pytest.mark.parametrize("name", FORMATS)
def test_files_hold_what_the_screen_shows(
    run: Command, people_model: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "rules"
    assert written(run, people_model, "-f", name, "-o", file) == ""
    assert file.read_text(encoding="utf-8") == written(run, people_model, "-f", name)


@pytest.mark.parametrize("other", FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_only_rules_in_the_same_format_are_written_over(
    run: Command, people_model: Path, tmp_path: Path, name: str, other: str
) -> None:
    file = tmp_path / "rules"
    written(run, people_model, "-f", other, "-o", file)
    before = file.read_text(encoding="utf-8")
    outcome = run("rules", people_model, "-f", name, "-o", file)
    if name == other or {name, other} == {"text", "markdown"}:
        assert outcome.code == 0
    else:
        assert f"{file}: this file exists, and nothing tells" in outcome.error()
        assert file.read_text(encoding="utf-8") == before


def test_rules_of_every_kind_of_model_are_written_over(
    run: Command, people_csv: Path, tmp_path: Path
) -> None:
    for target, options in (("colour", ()), ("age", ("--task", "regression"))):
        model = learn_into(tmp_path / "m.json", people_csv, "-t", target, "--alpha", 0.1, *options)
        for name in FORMATS:
            file = tmp_path / f"rules.{name}"
            written(run, model, "-f", name, "-o", file)
            written(run, model, "-f", name, "-o", file)


# ---------------------------------------------------------------------------------------- mistakes


def refused(outcome: Outcome, message: str) -> bool:
    return message in outcome.error()


def test_mistakes_are_explained(run: Command, people_model: Path, tmp_path: Path) -> None:
    model = people_model
    assert refused(run("rules", model, "--table", "x"), "--table is for --format sql, not for")
    assert refused(run("rules", model, "-f", "sql", "--table", "a..b"), "neither 'table' nor 'sch")
    assert refused(run("rules", model, "-f", "xml"), "invalid choice: 'xml' (choose from ")
    assert refused(run("rules", model, "-o", model), "this is the file to read; name another one")
    assert refused(run("rules", model, "-o", tmp_path), "this is a folder; name a file in it")
    assert refused(run("rules", model, "-o", tmp_path / "a" / "b"), "does not exist; create it fi")
    assert refused(run("rules", model, "-o", "a.csv"), "this is the name of a table, but --format")
    assert refused(run("rules", "none.json"), "none.json: there is no such file; 'latticework lea")
    assert refused(run("rules"), "the following arguments are required: MODEL")


def test_names_that_sql_cannot_hold_are_blamed_on_the_model(
    run: Command, people_model: Path, tmp_path: Path
) -> None:
    model = json.loads(people_model.read_text(encoding="utf-8"))
    for feature in model["features"]:
        feature["name"] = feature["name"].replace("age", "a\0ge")
    for rule in model["rules"]:
        for condition in rule["conditions"]:
            condition["feature"] = condition["feature"].replace("age", "a\0ge")
    file = tmp_path / "m.json"
    file.write_text(json.dumps(model), encoding="utf-8")
    assert str(file) in run("rules", file, "-f", "sql").error()
