"""Tables that the command line reads: odd ones are read right, wrong ones are explained."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet
from tests.commands import HEADER, Command, Outcome, changed, filled, people, write_csv

LEARN = ("-t", "bought", "--alpha", "0.02")


def learn(run: Command, file: Path, *options: object, stdin: bytes | None = None) -> Outcome:
    return run("learn", "-" if stdin is not None else file, *LEARN, *options, stdin=stdin)


def learnt(run: Command, file: Path, *options: object, stdin: bytes | None = None) -> str:
    """The model that is learnt from a file, with nothing said on standard error."""
    model = file.with_name("learnt.json")
    outcome = learn(run, file, "-m", model, *options, stdin=stdin)
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    return model.read_text(encoding="utf-8")


# --------------------------------------------------------------------------- files that are odd


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("semicolons", {"delimiter": ";"}),
        ("tabs", {"delimiter": "\t"}),
        ("a byte order mark", {"encoding": "utf-8-sig"}),
        ("lines of Windows", {"newline": "\r\n"}),
        ("spaces in the header", {"header": [f" {name} " for name in HEADER]}),
        ("blank lines", {"newline": "\n\n"}),
        ("spaces in the cells", {"rows": [[f" {cell} " for cell in row] for row in people()]}),
    ],
)
def test_forms_of_csv_make_no_difference(
    run: Command, people_csv: Path, name: str, options: dict[str, object]
) -> None:
    expected = learnt(run, people_csv)
    file = people_csv.with_name(f"{name}.csv")
    write_csv(file, **options)  # type: ignore[arg-type]
    assert learnt(run, file) == expected


def test_standard_input(run: Command, people_csv: Path) -> None:
    expected = learnt(run, people_csv)
    assert learnt(run, people_csv, stdin=people_csv.read_bytes()) == expected
    missing = learn(run, people_csv, stdin=b"a,b\n1,2\n").error()
    assert "standard input: there is no column 'bought'" in missing


@pytest.mark.parametrize("mark", ["NA", "n/a", "NaN", "null", "?"])
def test_marks_of_missing_cells(run: Command, people_csv: Path, mark: str) -> None:
    expected = learnt(run, people_csv)
    rows = [[cell or mark for cell in row] for row in people()]
    file = write_csv(people_csv.with_name("marks.csv"), rows)
    assert learnt(run, file, *(["--missing", "?"] if mark == "?" else [])) == expected


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_missing_marks_in_parquet(run: Command, people_csv: Path, kind: str) -> None:
    frame = pd.read_csv(people_csv)
    frame["colour"] = frame["colour"].where(frame.index % 5 > 0)
    file = people_csv.with_name("gaps.parquet")
    frame.to_parquet(file)
    expected = learnt(run, file)
    table = pyarrow.Table.from_pandas(frame.fillna({"colour": "?"}))
    typed = pyarrow.dictionary("int32", "string") if kind == "dictionary" else kind
    place = table.column_names.index("colour")
    parquet.write_table(
        table.set_column(place, "colour", table["colour"].cast(typed)), file, store_schema=True
    )
    assert learnt(run, file, "--missing", "?") == expected
    assert learnt(run, file) != expected


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (changed("income", "?"), "because of '?' in 1 cells; if that means missing, add  --miss"),
        (filled("income", "1,5"), "its numbers have decimal commas: write them with decimal"),
    ],
)
def test_numbers_read_as_text_are_pointed_out(
    run: Command, tmp_path: Path, rows: list[list[str]], message: str
) -> None:
    outcome = learn(run, write_csv(tmp_path / "data.csv", rows))
    assert outcome.code == 0
    assert "column 'income' is read as text, not as numbers, because " in outcome.err
    assert message in outcome.err


def test_text_columns_get_no_note(run: Command, people_csv: Path) -> None:
    assert learn(run, people_csv).err == ""


# -------------------------------------------------------------------------- files that are wrong


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": the file is empty; a line of column names must come first"),
        (b"\n\r\n \n", ": the file is empty; a line of column names must come first"),
        (b"age,bought\n", ": the file has column names, but no rows"),
        (b"age,bought\n1,a\n2\n3,b\n", ", line 3: 1 cell, but the header names 2 columns"),
        (b"age,bought\n1,a\n\n2,b,c\n", ", line 4: 3 cells, but the header names 2 columns"),
        (b"age;bought\n1;a\n2;b;c\n", "put quotes around cells that hold semicolons"),
        (b'age,bought\n1,a\n"2,b\n3,a\n', ", lines 3 to 4: 1 cell, but the header names 2"),
        (b'age,bought\n"1,a\n2,b\n', "close the quotation mark that opens there"),
        (b"age,x,age,bought\n1,2,3,a\n", ": several columns are called 'age'; give every column"),
        (b"age,bought\n1,a\n2,a\n", ": the target 'bought' is 'a' in every row"),
        (b"age,bought\n1,a\n2,b\n3,c\n", ": the target 'bought' is different in every row"),
        (b"age,bought\n1,a\n2,\n3,b\n", ": the target 'bought' has 1 missing cell among 3 (the fi"),
        (b"age,bought\n1,NA\n2,\n3,b\n", "(the first in row 1 after the header)"),
        (b"age,bougth\n1,a\n2,b\n", ": there is no column 'bought', which --target names; did you"),
        (b"age,bought\n1,\xe9\n2,b\n", "iconv -f windows-1252 -t utf-8 "),
        ("age,bought\n1,a\n".encode("utf-16"), ": this is UTF-16 text. Convert it:\n  iconv -f ut"),
        (b"PK\x03\x04...", ": this is an Excel workbook or another zip archive: save it as CSV"),
        (b"PAR1....", ": this is a Parquet file: let its name end in .parquet"),
        (gzip.compress(b"a,b\n", mtime=0), "compressed with gzip: let its name end in .csv.gz"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(
    run: Command, tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(content)
    error = learn(run, file).error()
    assert error.startswith(f"error: {file}")
    assert message in error


@pytest.mark.parametrize("name", ["data.parquet", "data.csv.gz"])
def test_files_that_are_not_what_they_are_called(run: Command, people_csv: Path, name: str) -> None:
    file = people_csv.with_name(name)
    file.write_bytes(people_csv.read_bytes())
    error = learn(run, file).error()
    assert f"{file}: this is not readable as {'Parquet' if 'parquet' in name else 'CSV'}" in error


def test_a_file_that_was_cut_off(run: Command, people_csv: Path) -> None:
    file = people_csv.with_name("cut.csv.gz")
    file.write_bytes(gzip.compress(people_csv.read_bytes())[:-50])
    assert f"{file}: this is not readable as CSV" in learn(run, file).error()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_misspelt_file_is_guessed(run: Command, tmp_path: Path, ending: str) -> None:
    write_csv(tmp_path / f"people.{ending}")
    error = learn(run, tmp_path / f"peple.{ending}").error()
    right = str(tmp_path / f"people.{ending}")
    assert f"peple.{ending}: there is no such file; did you mean {right!r}?" in error


def test_files_that_are_not_there(run: Command, people_csv: Path) -> None:
    folder = people_csv.parent
    assert "; the folder holds 'people.csv'" in learn(run, folder / "hospital.csv").error()
    assert "nor the folder it should be in" in learn(run, folder / "a" / "b.csv").error()
    assert f"{folder}: this is a folder; name a file in it" in learn(run, folder).error()
    people_csv.unlink()
    assert "; the folder holds no table" in learn(run, folder / "b.csv").error()


# ------------------------------------------------------------------------------ kinds of columns


def test_targets_that_are_missing_in_parquet(run: Command, tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": np.arange(9.0), "bought": [0.0, 1.0, np.nan] * 3})
    file = tmp_path / "data.parquet"
    frame.to_parquet(file)
    assert "the target 'bought' has 3 missing cells among 9" in learn(run, file).error()


def test_an_index_of_pandas_is_no_column(run: Command, tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1, 2] * 8, "bought": [True, False] * 8})
    frame.index = pd.Index(np.arange(16) * 2 % 7)
    file = tmp_path / "data.parquet"
    frame.to_parquet(file)
    features = json.loads(learnt(run, file))["features"]
    assert features == [{"name": "age", "kind": "numeric"}]


def test_columns_without_a_name_get_one(run: Command, tmp_path: Path) -> None:
    rows = [[str(k), *row] for k, row in enumerate(people(60))]
    features = json.loads(learnt(run, write_csv(tmp_path / "data.csv", rows, ("", *HEADER))))
    assert features["features"][0] == {"name": "unnamed_1", "kind": "numeric"}


@pytest.mark.parametrize("column", ["age", "bought"])
def test_whole_numbers_too_large_for_floats_are_refused(
    run: Command, tmp_path: Path, column: str
) -> None:
    rows = [[*row[:-1], str(k % 3)] for k, row in enumerate(people(20))]
    rows[7][HEADER.index(column)] = str(2**53 + 1)
    error = learn(run, write_csv(tmp_path / "data.csv", rows)).error()
    assert f"{tmp_path / 'data.csv'}: " in error
    assert repr(column) in error


@pytest.mark.parametrize("column", ["age", "bought"])
def test_columns_of_lists_are_refused(run: Command, tmp_path: Path, column: str) -> None:
    frame = pd.DataFrame({"age": [1, 2] * 8, "bought": ["a", "b"] * 8})
    frame[column] = [[1], [2]] * 8
    file = tmp_path / "data.parquet"
    frame.to_parquet(file)
    error = learn(run, file).error()
    assert str(file) in error
    assert repr(column) in error
