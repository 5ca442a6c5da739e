"""``latticework predict``: the Python API's predictions, in order, and what can go wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.commands import HEADER, Command, changed, learn_into, people, read_csv, write_csv

from latticework import RuleEnsemble


def ensemble_of(file: Path) -> RuleEnsemble:
    return RuleEnsemble.from_json(file.read_text(encoding="utf-8"))


def numbers(rows: list[dict[str, str]], column: str) -> list[float]:
    return [float(row[column]) for row in rows]


# -------------------------------------------------------------------------- equal to the API's


def test_predictions_are_the_python_apis(
    run: Command, people_model: Path, people_csv: Path
) -> None:
    rows = read_csv(run("predict", people_model, people_csv).out)
    ensemble, frame = ensemble_of(people_model), pd.read_csv(people_csv)
    assert [row["prediction"] for row in rows] == ensemble.predict(frame).tolist()
    probabilities = ensemble.predict_proba(frame)
    assert list(rows[0]) == ["prediction", "probability_no", "probability_yes"]
    assert numbers(rows, "probability_no") == probabilities[:, 0].tolist()
    assert numbers(rows, "probability_yes") == probabilities[:, 1].tolist()


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        (("-t", "age", "--task", "regression", "--alpha", "0.5"), ["prediction"]),
        (("-t", "bought", "--loss", "hinge", "--alpha", "0.02"), ["prediction", "score"]),
        (
            ("-t", "colour", "--alpha", "0.02"),
            ["prediction", "probability_blue, dark", 'probability_gr"een', "probability_red"],
        ),
        (
            ("-t", "colour", "--loss", "hinge", "--alpha", "0.02"),
            ["prediction", "score_blue, dark", 'score_gr"een', "score_red"],
        ),
    ],
    ids=["regression", "hinge", "classes", "hinges"],
)
def test_columns_of_every_kind_of_model(
    run: Command, people_csv: Path, tmp_path: Path, options: tuple[str, ...], columns: list[str]
) -> None:
    model = learn_into(tmp_path / "m.json", people_csv, *options)
    rows = read_csv(run("predict", model, people_csv).out)
    ensemble, frame = ensemble_of(model), pd.read_csv(people_csv)
    assert list(rows[0]) == columns
    assert [row["prediction"] for row in rows] == [*map(str, ensemble.predict(frame).tolist())]
    values = [numbers(rows, column) for column in columns[1:]]
    if values:
        wanted: Any = ensemble.predict_proba if ensemble.link else ensemble.decision_function
        assert np.array_equal(np.squeeze(np.transpose(values)), wanted(frame))


def test_explanations_add_up_to_the_score(
    run: Command, people_model: Path, people_csv: Path
) -> None:
    rows = read_csv(run("predict", people_model, people_csv, "--explain").out)
    ensemble, frame = ensemble_of(people_model), pd.read_csv(people_csv)
    parts = list(rows[0])[4:]
    assert len(parts) == len(ensemble) + 1
    assert parts[-1] == "intercept"
    assert numbers(rows, "score") == ensemble.decision_function(frame).tolist()
    explained = ensemble.explain(frame)
    for part in parts:
        assert numbers(rows, part) == explained[part].tolist()


@pytest.mark.parametrize("command", ["explain", "plain"])
def test_unneeded_columns_may_be_absent(
    run: Command, people_model: Path, people_csv: Path, tmp_path: Path, command: str
) -> None:
    options = ["--explain"] if command == "explain" else []
    expected = run("predict", people_model, people_csv, *options).out
    used = ensemble_of(people_model).used_features
    assert "bought" not in used
    frame = pd.read_csv(people_csv, dtype=str, keep_default_na=False)
    frame = frame[[*sorted(used, reverse=True)]]  # in another order, too
    frame.insert(0, "unheard of", "x")
    frame.to_csv(tmp_path / "few.csv", index=False)
    assert run("predict", people_model, tmp_path / "few.csv", *options).out == expected


# ------------------------------------------------------------------------------------ the output


def test_files_and_the_screen_hold_the_same(
    run: Command, people_model: Path, people_csv: Path, tmp_path: Path
) -> None:
    screen = run("predict", people_model, people_csv)
    assert screen.err == ""
    file = tmp_path / "out.csv"
    outcome = run("predict", people_model, people_csv, "-o", file)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"240 predictions in {file}\n"
    assert file.read_text(encoding="utf-8") == screen.out
    run("predict", people_model, people_csv, "-o", tmp_path / "out.csv.gz")
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()).decode() == screen.out
    run("predict", people_model, people_csv, "-o", tmp_path / "out.tsv")
    lines = csv.reader(io.StringIO((tmp_path / "out.tsv").read_text()), delimiter="\t")
    assert [*lines] == [*csv.reader(io.StringIO(screen.out))]
    run("predict", people_model, people_csv, "-o", tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "out.parquet"),
        pd.read_csv(file),
    )


def test_parquet_and_standard_input(
    run: Command, people_model: Path, people_csv: Path, tmp_path: Path
) -> None:
    expected = run("predict", people_model, people_csv).out
    pd.read_csv(people_csv).to_parquet(tmp_path / "people.parquet")
    assert run("predict", people_model, tmp_path / "people.parquet").out == expected
    assert run("predict", people_model, "-", stdin=people_csv.read_bytes()).out == expected


def test_columns_are_copied(run: Command, people_model: Path, people_csv: Path) -> None:
    rows = read_csv(run("predict", people_model, people_csv, "--id", "age", "--id", "colour").out)
    assert list(rows[0])[:3] == ["age", "colour", "prediction"]
    assert [(row["age"], row["colour"]) for row in rows] == [(row[0], row[1]) for row in people()]


def test_copied_columns_must_not_hide_others(
    run: Command, people_model: Path, tmp_path: Path
) -> None:
    file = write_csv(tmp_path / "a.csv", header=("age", "colour", "prediction", "income", "y"))
    error = run("predict", people_model, file, "--id", "prediction").error()
    assert f"{file}: the --id column 'prediction' has the name of a column of the output" in error


# ------------------------------------------------------------------------------- odd and missing


def test_unseen_categories_and_missing_cells(
    run: Command, people_model: Path, tmp_path: Path
) -> None:
    rows = [["", "purple", "", "", ""], ["60", "", "True", "?", ""], ["60", "red", "No", "2", ""]]
    file = write_csv(tmp_path / "new.csv", rows)
    found = read_csv(run("predict", people_model, file, "--missing", "?").out)
    frame = pd.DataFrame(
        {
            "age": [np.nan, 60.0, 60.0],
            "colour": ["purple", None, "red"],
            "income": [np.nan, np.nan, 2.0],
            "member": [None, True, False],
        }
    )
    probabilities = ensemble_of(people_model).predict_proba(frame)
    assert numbers(found, "probability_yes") == probabilities[:, 1].tolist()


def test_categories_that_look_like_numbers_stay_text(run: Command, tmp_path: Path) -> None:
    wards = ["1", "2", "A"]
    rows = [[wards[k % 3], "yes" if k % 3 == 0 else "no"] for k in range(60)]
    data = write_csv(tmp_path / "wards.csv", rows, ("ward", "sick"))
    model = learn_into(tmp_path / "m.json", data, "-t", "sick", "--alpha", "0.01")
    new = write_csv(tmp_path / "new.csv", [["1"], ["2"]], ("ward",))
    found = read_csv(run("predict", model, new).out)
    assert [row["prediction"] for row in found] == ["yes", "no"]


def test_missing_columns_are_named(run: Command, people_model: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "new.csv", [["3", "4"]], ("Age", "incom"))
    error = run("predict", people_model, file).error()
    assert (
        f"{file}: there are no columns 'age', 'colour', 'income', which the model's rules" in error
    )
    assert "did you mean 'Age'?" in error
    assert "The file has 'Age', 'incom'" in error


@pytest.mark.parametrize("cell", ["unknown", "1,5"])
def test_text_where_the_model_wants_numbers(
    run: Command, people_model: Path, tmp_path: Path, cell: str
) -> None:
    file = write_csv(tmp_path / "new.csv", changed("income", "1", "2", cell))
    error = run("predict", people_model, file).error()
    assert f"{file}, row 3 after the header: column 'income' holds {cell!r}" in error
    assert f"--missing {cell}" in error
    assert run("predict", people_model, file, "--missing", cell).code == 0


@pytest.mark.parametrize("content", [b"", b"age,colour,income\n"])
def test_nothing_to_predict(
    run: Command, people_model: Path, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "new.csv"
    file.write_bytes(content)
    assert str(file) in run("predict", people_model, file).error()


# ---------------------------------------------------------------------------------- wrong models


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is not JSON"),
        (b"age,colour\n1,red\n", "this is not JSON"),
        (b"[1, 2]", "this JSON is no rule ensemble"),
        (b'{"format": "else"}', '"format" is not "latticework.RuleEnsemble"'),
        (b'{"format": "latticework.RuleEnsemble", "version": 99}', "install a newer latticework"),
        (b'{"format": "latticework.RuleEnsemble", "version": 1}', "this is not a model"),
        (b"\xff\xfe\x00", "it is not text"),
    ],
)
def test_files_that_are_no_models(
    run: Command, people_csv: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "m.json"
    file.write_bytes(content)
    error = run("predict", file, people_csv).error()
    assert error.startswith(f"error: {file}: this ")
    assert message in error


def test_model_and_data_in_the_wrong_order(
    run: Command, people_model: Path, people_csv: Path
) -> None:
    error = run("predict", people_csv, people_model).error()
    assert f"{people_csv}: this is the name of a table, not of a model" in error


def test_a_model_that_is_not_there(run: Command, people_csv: Path, tmp_path: Path) -> None:
    error = run("predict", tmp_path / "m.json", people_csv).error()
    assert "there is no such file; 'latticework learn ... --model" in error


def test_models_are_data_never_code(run: Command, people_model: Path, tmp_path: Path) -> None:
    model = json.loads(people_model.read_text(encoding="utf-8"))
    model["rules"][0]["conditions"][0]["operator"] = "__import__"
    file = tmp_path / "m.json"
    file.write_text(json.dumps(model))
    data = write_csv(tmp_path / "a.csv", people(5), HEADER)
    assert f"{file}: this is not a model" in run("predict", file, data).error()
