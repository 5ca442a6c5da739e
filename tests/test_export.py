"""Exports say what the model says: SQL and Python give its scores, JSON gives it back."""

from __future__ import annotations

import ast
import json
import math
import re
import sqlite3
from html.parser import HTMLParser
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latticework.rules.conditions import Condition
from latticework.rules.ensemble import RuleEnsemble
from latticework.rules.export.json import JSONModelError
from latticework.rules.export.latex import escaped
from latticework.rules.export.sql import float_literal, grouped_sum
from latticework.rules.rule import Rule
from latticework.rules.simplify import ContradictionError, simplify
from latticework.rules.statistics import rule_statistics
from latticework.rules.terms import LinearTerm

# Names and levels that a careless exporter trips over.
AGE, TEXT, FLAG, GRADE, SIZE = 'age "yrs"; --', "it's <b>", "class", "row", "größe"
LEVELS = ["it's", 'say "hi"', "", "naïve 中", "NULL", "50"]
GRADES = ("low", "it's mid", "high")
KINDS = {
    AGE: "numeric",
    TEXT: "categorical",
    FLAG: "boolean",
    GRADE: "ordered",
    SIZE: "categorical",
}
SQL_TYPES = {AGE: "DOUBLE", TEXT: "VARCHAR", FLAG: "BOOLEAN", GRADE: "VARCHAR", SIZE: "INTEGER"}


def rows_of(n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Rows with missing cells and with levels that no rule mentions."""
    columns = {
        AGE: [round(x, 1) for x in rng.normal(50, 20, n).tolist()],
        TEXT: rng.choice([*LEVELS, "unseen", "it''s"], n).tolist(),
        FLAG: rng.choice([True, False], n).tolist(),
        GRADE: rng.choice([*GRADES, "unseen"], n).tolist(),
        SIZE: rng.integers(0, 5, n).tolist(),
    }
    holes = {name: rng.random(n) < 0.15 for name in columns}
    return [
        {name: None if holes[name][i] else cells[i] for name, cells in columns.items()}
        for i in range(n)
    ]


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows).astype({TEXT: object, FLAG: object, GRADE: object, SIZE: "Int64"})
    return frame


def random_condition(rng: np.random.Generator) -> Condition:
    feature = str(rng.choice(list(KINDS)))
    if rng.random() < 0.15:
        return Condition(feature, "is missing")
    if feature == AGE:
        return Condition(AGE, str(rng.choice(["<=", ">"])), round(float(rng.normal(50, 20)), 1))
    if feature == GRADE:
        return Condition(GRADE, str(rng.choice(["<=", ">"])), str(rng.choice(GRADES[:2])), GRADES)
    operator = str(rng.choice(["==", "!="]))
    if feature == FLAG:
        if rng.random() < 0.3:
            return Condition(FLAG, "is true")
        return Condition(FLAG, operator, bool(rng.integers(2)))
    if feature == TEXT:
        return Condition(TEXT, operator, str(rng.choice(LEVELS)))
    return Condition(SIZE, operator, int(rng.integers(0, 4)))


def random_conjunction(rng: np.random.Generator) -> tuple[Condition, ...]:
    while True:
        try:
            return simplify([random_condition(rng) for _ in range(rng.integers(0, 5))])
        except ContradictionError:
            continue


def random_ensemble(
    rng: np.random.Generator, n_outputs: int = 1, n_rules: int = 25, **changes: Any
) -> RuleEnsemble:
    weights = rng.normal(size=(n_rules, n_outputs)) * (rng.random((n_rules, n_outputs)) < 0.8)
    description: dict[str, Any] = {
        "feature_names": list(KINDS),
        "feature_kinds": list(KINDS.values()),
        "output": "binary",
        "link": "logit",
        "classes": ["well", "ill"],
        "linear_terms": [LinearTerm(AGE, -3.25, 12.7, 20.5, 81.0, rng.normal(size=n_outputs))],
    }
    if n_outputs > 1:
        description |= {"output": "regression", "link": "identity", "classes": None}
        description |= {"outputs": [f'the "{t}"' for t in range(n_outputs)]}
    description |= changes
    conjunctions = [random_conjunction(rng) for _ in range(n_rules)]
    return RuleEnsemble.from_parts(conjunctions, weights, rng.normal(size=n_outputs), **description)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def run_sql(engine: str, rows: list[dict[str, Any]], query: str, table: str) -> tuple[list, list]:
    """Column names and rows that a query gives on a table made of these rows."""
    connection: Any = sqlite3.connect(":memory:") if engine == "sqlite" else duckdb.connect()
    with connection:
        types = ", ".join(f"{quoted(name)} {SQL_TYPES[name]}" for name in rows[0])
        connection.execute(f"CREATE TABLE {quoted(table)} ({types})")
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(
            f"INSERT INTO {quoted(table)} VALUES ({marks})", [list(row.values()) for row in rows]
        )
        cursor = connection.execute(query)
        found = [column[0] for column in cursor.description], cursor.fetchall()
    connection.close()
    return found


ENGINES = pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
TABLE = 'patients "2024"'


# ----------------------------------------------------------------------------------------- SQL


class TestSQL:
    @ENGINES
    @pytest.mark.parametrize("n_outputs", [1, 3])
    @pytest.mark.parametrize("seed", range(3))
    def test_gives_the_scores(self, engine: str, n_outputs: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows, ensemble = rows_of(300, rng), random_ensemble(rng, n_outputs)
        names, found = run_sql(engine, rows, ensemble.to_sql(TABLE), TABLE)
        scores = np.array([row[-n_outputs:] for row in found], dtype=float)
        expected = ensemble.decision_function(frame_of(rows)).reshape(-1, n_outputs)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)
        assert names[: len(KINDS)] == list(KINDS)
        outputs = [f"score_{name}" for name in ensemble.outputs] if n_outputs > 1 else ["score"]
        assert names[len(KINDS) :] == outputs
        assert [list(row[: len(KINDS)]) for row in found] == [list(row.values()) for row in rows]

    @ENGINES
    def test_ensembles_without_rules(self, engine: str) -> None:
        rng = np.random.default_rng(0)
        rows = rows_of(4, rng)
        for n_outputs in (1, 2):
            empty = random_ensemble(rng, n_outputs, n_rules=0, linear_terms=())
            _, found = run_sql(engine, rows, empty.to_sql(TABLE), TABLE)
            assert [row[-n_outputs:] for row in found] == [empty.intercept] * 4

    @ENGINES
    def test_thousands_of_rules_do_not_overwhelm_the_parser(self, engine: str) -> None:
        rng = np.random.default_rng(1)
        rows, ensemble = rows_of(5, rng), random_ensemble(rng, n_rules=2500)
        _, found = run_sql(engine, rows, ensemble.to_sql(TABLE), TABLE)
        expected = ensemble.decision_function(frame_of(rows))
        np.testing.assert_allclose([row[-1] for row in found], expected, rtol=0, atol=1e-9)

    @ENGINES
    def test_thresholds_are_exact(self, engine: str) -> None:
        """A cell on the threshold and its neighbours fall on the model's side, to the last bit."""
        rng = np.random.default_rng(2)
        # SQLite 3.40 misreads the shortest form of the first four.
        hard = [1498.298406, 7613.087446, -50.11654985490323, 2.24827395644958e-06]
        spread = rng.normal(size=400) * 10.0 ** rng.integers(-12, 13, 400)
        decimals = rng.uniform(0, 1e4, 400).round(4)
        thresholds = [*hard, *spread.tolist(), *decimals.tolist(), 0.0, 1e16, 2.0**60]
        if engine == "duckdb":
            thresholds += [5e-324, 1e-300, 1.7976931348623157e308]
        for threshold in thresholds:
            assert float(float_literal(threshold)) == threshold
        cells = [math.nextafter(t, s * math.inf) for t in thresholds for s in (-1, 1)]
        cells = [c for c in [*thresholds, *cells] if np.isfinite(c)]
        # One rule per threshold; the score counts the thresholds below or at the cell.
        ensemble = RuleEnsemble.from_parts(
            [[Condition(AGE, ">", t)] for t in thresholds], np.ones(len(thresholds)), 0.0,
            feature_names=[AGE], feature_kinds=["numeric"], output="regression", link="identity",
        )  # fmt: skip
        rows = [{AGE: cell} for cell in cells]
        _, found = run_sql(engine, rows, ensemble.to_sql(TABLE), TABLE)
        expected = ensemble.predict(np.array(cells)[:, None])
        assert [row[-1] for row in found] == expected.tolist()

    def test_narrow_columns_are_compared_as_doubles(self) -> None:
        cells = np.array([0.1, 0.3, 16777217.0, 5.0])
        frame = pd.DataFrame({"x": cells.astype(np.float32), "i": np.array([1, 2, 3, 4], np.int8)})
        tests = [("x", 0.1), ("x", 0.3), ("x", 16777217.0), ("x", 5.0), ("i", 2.5), ("i", 300.0)]
        ensemble = RuleEnsemble.from_parts(
            [[Condition(name, "<=", value)] for name, value in tests], 2.0 ** np.arange(6), 0.0,
            feature_names=["x", "i"], feature_kinds=["numeric"] * 2, output="regression",
            link="identity",
        )  # fmt: skip
        found = duckdb.sql(ensemble.to_sql("frame")).fetchall()
        assert [row[-1] for row in found] == ensemble.predict(frame).tolist()

    def test_stored_nan(self) -> None:
        rng = np.random.default_rng(3)
        ensemble = random_ensemble(rng)
        rows = rows_of(200, rng)
        stored = [{**row, AGE: math.nan if row[AGE] is None else row[AGE]} for row in rows]
        expected = ensemble.decision_function(frame_of(rows))
        _, found = run_sql("duckdb", stored, ensemble.to_sql(TABLE, stored_nan=True), TABLE)
        np.testing.assert_allclose([row[-1] for row in found], expected, rtol=0, atol=1e-9)
        _, found = run_sql("duckdb", stored, ensemble.to_sql(TABLE), TABLE)
        assert not np.allclose([row[-1] for row in found], expected)  # DuckDB's NaN exceeds all

    def test_frames_that_duckdb_reads_itself(self) -> None:
        rng = np.random.default_rng(4)
        ensemble, frame = random_ensemble(rng), frame_of(rows_of(100, rng))
        table = pa.Table.from_pandas(frame)
        assert table.num_rows == 100
        for name in ("frame", "table"):
            found = duckdb.sql(ensemble.to_sql(name)).fetchall()
            np.testing.assert_allclose(
                [row[-1] for row in found], ensemble.decision_function(frame), rtol=0, atol=1e-9
            )

    def test_levels_that_are_no_strings(self) -> None:
        frame = pd.DataFrame({"f": [0.1, 1.0, None], "b": pd.array([True, False, None], "boolean")})
        kinds = ["categorical", "categorical"]
        ensemble = RuleEnsemble.from_parts(
            [[Condition("f", "==", 0.1)], [Condition("f", "!=", 1)], [Condition("b", "==", True)]],
            [1.0, 2.0, 4.0], 0.0, feature_names=["f", "b"], feature_kinds=kinds,
            output="regression", link="identity",
        )  # fmt: skip
        found = duckdb.sql(ensemble.to_sql("frame")).fetchall()
        assert [row[-1] for row in found] == ensemble.predict(frame).tolist() == [7.0, 0.0, 0.0]

    def test_a_missing_column_is_an_error_and_not_a_string(self) -> None:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t1 (other REAL)")
        ensemble = random_ensemble(np.random.default_rng(0))
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            connection.execute(ensemble.to_sql("t1"))
        connection.close()

    def test_qualified_tables(self) -> None:
        query = random_ensemble(np.random.default_rng(0)).to_sql(("main", "the table"))
        assert query.endswith('FROM "main"."the table" AS t')

    def test_null_characters_are_refused(self) -> None:
        with pytest.raises(ValueError, match="null character"):
            random_ensemble(np.random.default_rng(0)).to_sql("a\0b")

    @pytest.mark.parametrize("n_terms", [1, 30, 31, 900, 901, 30_000])
    def test_sums_are_shallow(self, n_terms: int) -> None:
        text = grouped_sum(["1"] * n_terms)
        assert text.count("1") == n_terms
        depth = deepest = 0
        for character in text:
            depth += {"(": 1, ")": -1}.get(character, 0)
            deepest = max(deepest, depth)
        assert deepest <= 3
        groups = re.sub(r"\s", "", text).replace("(", "").split(")")
        assert max(group.lstrip("+").count("+") for group in groups) < 31


# -------------------------------------------------------------------------------------- Python


def run_python(source: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(source, "exported", "exec"), namespace)
    return namespace["decision_function"]


class TestPython:
    @pytest.mark.parametrize("n_outputs", [1, 3])
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("missing", [None, math.nan])
    def test_gives_the_scores(self, n_outputs: int, seed: int, missing: Any) -> None:
        rng = np.random.default_rng(seed)
        rows, ensemble = rows_of(200, rng), random_ensemble(rng, n_outputs)
        function = run_python(ensemble.to_python())
        holed = [{k: missing if v is None else v for k, v in row.items()} for row in rows]
        found = np.array([function(row) for row in holed])
        expected = ensemble.decision_function(frame_of(rows))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)

    def test_is_readable(self) -> None:
        ensemble = RuleEnsemble.from_parts(
            [
                [Condition("age", ">", 30.0), Condition("age", "<=", 50.5)],
                [Condition("nan", ">", 1)],
            ],
            [1.5, 2.0], -1.0, feature_names=["age", "nan"], feature_kinds=["numeric"] * 2,
            output="regression", link="identity",
        )  # fmt: skip
        source = ensemble.to_python()
        assert "    if 30 < age <= 50.5:\n        score += 1.5\n" in source
        assert "x0 = nan if row['nan'] is None else row['nan']" in source
        assert run_python(source)({"age": 40, "nan": 2}) == 2.5
        with pytest.raises(KeyError, match="nan"):
            run_python(source)({"age": 40})

    def test_imports_nothing_but_math(self) -> None:
        tree = ast.parse(random_ensemble(np.random.default_rng(0)).to_python())
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        assert [ast.unparse(node) for node in imports] == ["from math import nan"]

    def test_is_deterministic(self) -> None:
        assert random_ensemble(np.random.default_rng(0)).to_python() == (
            random_ensemble(np.random.default_rng(0)).to_python()
        )

    @given(st.text(max_size=12), st.text(max_size=12))
    def test_names_and_levels_stay_data(self, name: str, level: str) -> None:
        ensemble = RuleEnsemble.from_parts(
            [[Condition(name, "==", level)]], [1.0], 0.0, feature_names=[name],
            feature_kinds=["categorical"], output="regression", link="identity",
        )  # fmt: skip
        function = run_python(ensemble.to_python())
        assert (function({name: level}), function({name: level + "'"})) == (1.0, 0.0)

    @ENGINES
    @given(name=st.text(min_size=1, max_size=12), level=st.text(max_size=12))
    def test_names_and_levels_stay_data_in_sql(self, engine: str, name: str, level: str) -> None:
        if any("\0" in text or not text.isprintable() for text in (name, level)):
            return
        ensemble = RuleEnsemble.from_parts(
            [[Condition(name, "==", level)]], [1.0], 0.0, feature_names=[name],
            feature_kinds=["categorical"], output="regression", link="identity",
        )  # fmt: skip
        connection: Any = sqlite3.connect(":memory:") if engine == "sqlite" else duckdb.connect()
        connection.execute(f"CREATE TABLE a ({quoted(name)} VARCHAR)")
        connection.executemany("INSERT INTO a VALUES (?)", [[level], [level + "'"], [None]])
        found = connection.execute(ensemble.to_sql("a")).fetchall()
        connection.close()
        assert [row[-1] for row in found] == [1.0, 0.0, 0.0]

    def test_thousands_of_rules(self) -> None:
        rng = np.random.default_rng(1)
        rows, ensemble = rows_of(3, rng), random_ensemble(rng, n_rules=3000)
        function = run_python(ensemble.to_python())
        expected = ensemble.decision_function(frame_of(rows))
        np.testing.assert_allclose([function(row) for row in rows], expected, rtol=0, atol=1e-9)


# ---------------------------------------------------------------------------------------- JSON


def with_statistics(rng: np.random.Generator, n_outputs: int, **changes: Any) -> RuleEnsemble:
    ensemble = random_ensemble(rng, n_outputs, **changes)
    frame = frame_of(rows_of(80, rng))
    y = (
        rng.normal(size=(80, n_outputs))
        if ensemble.output == "regression"
        else rng.integers(2, size=80)
    )
    held = ensemble.indicators(frame)
    found = rule_statistics(held, y, ensemble.weights, ensemble.output)
    rules = [
        Rule(rule.conditions, rule.weights, **found.of_rule(r)) for r, rule in enumerate(ensemble)
    ]
    return RuleEnsemble(rules, ensemble.intercept, **description_of(ensemble))


def description_of(ensemble: RuleEnsemble) -> dict[str, Any]:
    names = (
        "feature_names", "feature_kinds", "output", "link", "classes", "outputs", "linear_terms"
    )  # fmt: skip
    return {name: getattr(ensemble, name) for name in names}


ALL_KINDS = [
    (1, {}),
    (1, {"link": None, "classes": [False, True]}),
    (1, {"classes": [0, 1.5]}),
    (3, {"output": "multiclass", "link": "softmax", "classes": [3, "3", True], "outputs": None}),
    (2, {"output": "multilabel", "link": "logit", "classes": [(0, 1), ("n", "y")]}),
    (2, {}),
    (1, {"output": "regression", "link": "log", "classes": None, "outputs": ["count"]}),
]


class TestJSON:
    @pytest.mark.parametrize(("n_outputs", "changes"), ALL_KINDS, ids=str)
    def test_round_trip(self, n_outputs: int, changes: dict[str, Any]) -> None:
        rng = np.random.default_rng(0)
        if changes.get("output") in ("multiclass", "multilabel"):
            ensemble = random_ensemble(rng, n_outputs, **changes)
        else:
            ensemble = with_statistics(rng, n_outputs, **changes)
        text = ensemble.to_json()
        again = RuleEnsemble.from_json(text)
        assert again == ensemble
        assert again.to_json() == text
        assert RuleEnsemble.from_json(text.encode()) == ensemble
        types = [type(label) for label in ensemble.classes or ()]
        assert [type(label) for label in again.classes or ()] == types
        frame = frame_of(rows_of(50, rng))
        assert (again.predict(frame) == ensemble.predict(frame)).all()
        assert (again.decision_function(frame) == ensemble.decision_function(frame)).all()

    def test_levels_keep_their_type(self) -> None:
        values: list[Any] = [1, 1.5, True, "1", "True", "中"]
        ensemble = RuleEnsemble.from_parts(
            [[Condition("x", "==", value)] for value in values], np.ones(6), 0.0,
            feature_names=["x"], feature_kinds=["categorical"], output="regression",
            link="identity",
        )  # fmt: skip
        again = RuleEnsemble.from_json(ensemble.to_json())
        assert [(type(r.conditions[0].value), r.conditions[0].value) for r in again] == [
            (type(value), value) for value in values
        ]

    @given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
    def test_floats_are_exact(self, numbers: list[float]) -> None:
        ensemble = RuleEnsemble.from_parts(
            [[Condition("x", ">", number)] for number in numbers], numbers, numbers[0],
            feature_names=["x"], feature_kinds=["numeric"], output="regression", link="identity",
        )  # fmt: skip
        again = RuleEnsemble.from_json(ensemble.to_json())
        assert again == ensemble
        assert [rule.weight.hex() for rule in again] == [number.hex() for number in numbers]

    def test_one_line_per_rule(self) -> None:
        ensemble = random_ensemble(np.random.default_rng(0), n_rules=7)
        lines = ensemble.to_json().splitlines()
        assert sum(line.startswith('    {"conditions"') for line in lines) == 7

    def test_labels_without_a_json_form_are_refused(self) -> None:
        for classes in (["a", np.datetime64("2020-01-01")], [0.0, np.nan]):
            ensemble = random_ensemble(np.random.default_rng(0), classes=classes)
            with pytest.raises(TypeError, match="convert the classes"):
                ensemble.to_json()

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (["format"], "pickle", "no rule ensemble"),
            (["version"], 2, "install a newer latticework"),
            (["version"], "1", "version must be a positive integer"),
            (["version"], True, "version must be a positive integer"),
            (["version"], 0, "version must be a positive integer"),
            (["surprise"], 1, "unknown member 'surprise'"),
            (["intercept"], ..., "the model lacks 'intercept'"),
            (["intercept"], 0.5, "intercept of the model must be a list of finite numbers"),
            (["intercept"], [], "intercept of the model"),
            (["intercept"], [1.0, 2.0], "two classes and one intercept"),
            (["intercept"], [10**400], "intercept of the model"),
            (["output"], 3, "output of the model must be a string"),
            (["output"], "ranking", "output must be one of"),
            (["link"], "probit", "link of a binary"),
            (["link"], 1, "link of the model must be a string or null"),
            (["classes"], ["a", ["b"]], "classes of the model"),
            (["classes"], None, "needs classes"),
            (["outputs"], [1], "outputs of the model must be a list of strings"),
            (["features"], {}, "features of the model must be a list"),
            (["features", 0], "age", r"features\[0\] must be an object"),
            (["features", 0, "kind"], "date", "kind of feature"),
            (["features", 0, "name"], None, r"name of features\[0\] must be a string"),
            (["rules"], None, "rules of the model must be a list"),
            (["rules", 1], [], r"rules\[1\] must be an object"),
            (["rules", 1, "weights"], ["1"], r"weights of rules\[1\] must be a list of finite"),
            (["rules", 1, "weights"], [True], r"weights of rules\[1\]"),
            (["rules", 1, "weights"], [1.0, 2.0], "2 weights"),
            (["rules", 1, "support"], "big", r"support of rules\[1\] must be a finite number"),
            (["rules", 1, "count"], 1.5, r"count of rules\[1\] must be an integer"),
            (["rules", 1, "code"], "import os", "unknown member 'code'"),
            (["rules", 1, "conditions"], "x > 1", r"conditions of rules\[1\] must be a list"),
            (["rules", 0, "conditions", 0, "operator"], "in", "operator of rules"),
            (["rules", 0, "conditions", 0, "operator"], [], "operator of rules"),
            (["rules", 0, "conditions", 0, "operator"], "is missing", "left out"),
            (["rules", 0, "conditions", 0, "feature"], "other", "not among the feature_names"),
            (["rules", 0, "conditions", 0, "value"], "high", "value of rules"),
            (["rules", 0, "conditions", 0, "value"], None, "value of rules"),
            (["rules", 0, "conditions", 0, "value"], {"$ref": 1}, "value of rules"),
            (["rules", 0, "conditions", 0, "order"], [1, 2], "a level of its order"),
            (["rules", 0, "conditions", 0, "order"], [1, 1.0], "each level once"),
            (["rules", 0, "conditions", 0, "order"], "abc", "must be levels"),
            (["rules", 0, "conditions", 1, "value"], 5.0, r"rules\[0\]: no cell"),
            (["linear_terms", 0, "scale"], 0, "scale > 0"),
            (["linear_terms", 0, "mean"], None, r"mean of linear_terms\[0\]"),
            (["linear_terms", 0, "weights"], [], r"weights of linear_terms\[0\]"),
        ],
    )
    def test_malformed_models_are_refused(self, path: list[Any], value: Any, message: str) -> None:
        ensemble = RuleEnsemble(
            [
                Rule([Condition("age", ">", 30), Condition("age", "<=", 50)], 1.0, support=0.5),
                Rule([Condition("age", "is missing")], 2.0, count=3),
            ],
            0.0, feature_names=["age"], feature_kinds=["numeric"], output="binary", link="logit",
            classes=[0, 1], linear_terms=[LinearTerm("age", 0, 1, 0, 1, 1.0)],
        )  # fmt: skip
        document = json.loads(ensemble.to_json())
        place = document
        for key in path[:-1]:
            place = place[key]
        if value is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        if path[-1] == "value" and value == 5.0:
            assert place["operator"] == "<="
        with pytest.raises(JSONModelError, match=message) as caught:
            RuleEnsemble.from_json(json.dumps(document))
        assert len(str(caught.value)) < 400

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "not JSON"),
            ("{", "not JSON"),
            ("[]", "no rule ensemble"),
            ("NaN", "NaN is not a number"),
            ('{"format": "latticework.RuleEnsemble", "version": Infinity}', "Infinity"),
            ("[" * 100_000, "nested too deeply"),
            (b"\xff\xfe\xfa", "not JSON"),
        ],
        ids=["empty", "open", "list", "nan", "infinity", "deep", "bytes"],
    )
    def test_what_is_no_model_is_refused(self, text: str | bytes, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            RuleEnsemble.from_json(text)

    def test_numbers_too_large_are_refused(self) -> None:
        text = random_ensemble(np.random.default_rng(0)).to_json()
        text = re.sub(r'"intercept": \[[^]]*\]', '"intercept": [1e999]', text)
        with pytest.raises(JSONModelError, match="finite"):
            RuleEnsemble.from_json(text)


# ------------------------------------------------------------------------- what people read


def small_ensemble(**changes: Any) -> RuleEnsemble:
    old, high = Condition("age", ">", 30), Condition("bp", "==", "high")
    rules = [
        Rule(
            [old, Condition("age", "<=", 50.5), high],
            1.3123, support=0.0625, count=25, precision=0.87, lift=1.7,
        ),
        Rule([Condition("bp", "is missing")], -0.04, support=0.3, count=9, precision=1.0, lift=2.0),
        Rule([Condition("bp", "!=", "low")], 0.5),
    ]  # fmt: skip
    description: dict[str, Any] = {
        "feature_names": ["age", "bp"],
        "feature_kinds": ["numeric", "categorical"],
        "output": "binary",
        "link": "logit",
        "classes": ["well", "ill"],
    }
    return RuleEnsemble(rules, -2.3, **(description | changes))


class TestText:
    def test_binary(self) -> None:
        assert small_ensemble().to_text() == (
            "Score of ill (against well) = sum of the weights of all lines that hold\n"
            "\n"
            "weight  rule                             support  precision  votes for\n"
            " +1.31  30 < age <= 50.5 AND bp == high     6.2%      87.0%  ill\n"
            " -0.04  bp is missing                      30.0%     100.0%  well\n"
            " +0.50  bp != low\n"
            " -2.30  intercept\n"
            "\n"
            "probability of ill = 1 / (1 + exp(-score))"
        )

    def test_order_and_digits(self) -> None:
        lines = small_ensemble().to_text(sort_by="importance", digits=2).splitlines()[3:6]
        assert [line.split()[0] for line in lines] == ["+1.3", "-0.0", "+0.5"]
        with pytest.raises(ValueError, match="sort_by"):
            small_ensemble().to_text(sort_by="weight")
        with pytest.raises(ValueError, match="digits"):
            small_ensemble().to_text(digits=0)

    def test_several_classes(self) -> None:
        ensemble = RuleEnsemble(
            [
                Rule([Condition("x", ">", 0.1 + 0.2)], [1, 0, -2], support=0.5, precision=0.75),
                Rule([Condition("x", "<=", 0)], [0, -1, 0], support=0.25, precision=0.9),
            ],
            [0.1, -0.1, 0], feature_names=["x"], feature_kinds=["numeric"], output="multiclass",
            link="softmax", classes=["setosa", "b", "c"],
        )  # fmt: skip
        assert ensemble.to_text().splitlines()[2:6] == [
            "setosa      b      c  rule                     support  precision  votes for",
            " +1.00      0  -2.00  x > 0.30000000000000004    50.0%      75.0%  setosa",
            "     0  -1.00      0  x <= 0                     25.0%      90.0%  not b",
            " +0.10  -0.10      0  intercept",
        ]

    @pytest.mark.parametrize(
        ("changes", "note"),
        [
            ({"link": None}, "prediction = ill where score > 0"),
            ({"output": "regression", "link": "log", "classes": None}, "prediction = exp(score)"),
            ({"output": "regression", "link": "identity", "classes": None}, "prediction = score"),
        ],
    )
    def test_what_follows_from_the_score(self, changes: dict[str, Any], note: str) -> None:
        assert small_ensemble(**changes).to_text().endswith(note)

    @pytest.mark.parametrize(
        ("output", "link", "note"),
        [
            ("multiclass", "softmax", "sum of exp(score) over all classes"),
            ("multiclass", "logit", "divided by their sum"),
            ("multiclass", None, "class with the largest score"),
            ("multilabel", "logit", "probability of a label"),
            ("multilabel", None, "where its score > 0"),
        ],
    )
    def test_what_follows_from_several_scores(self, output: str, link: str, note: str) -> None:
        classes = [(0, 1), (0, 1)] if output == "multilabel" else ["a", "b"]
        ensemble = RuleEnsemble(
            [], [0, 0], feature_names=["x"], feature_kinds=["numeric"], output=output, link=link,
            classes=classes,
        )  # fmt: skip
        assert note in ensemble.to_text().splitlines()[-1]

    def test_means_of_targets(self) -> None:
        rules = [Rule([Condition("x", ">", 1)], [0, 2], mean=12345.6), Rule([], [1, 0], mean=0.5)]
        ensemble = RuleEnsemble(
            rules, [0, 0], feature_names=["x"], feature_kinds=["numeric"], output="regression",
            link="identity", outputs=["price", "rent"],
        )  # fmt: skip
        assert ensemble.to_text().splitlines()[2:5] == [
            "price   rent  rule       support    mean  of target",
            "    0  +2.00  x > 1                12346  rent",
            "+1.00      0  always              0.5000  price",
        ]

    def test_linear_terms(self) -> None:
        text = small_ensemble(
            linear_terms=[LinearTerm("age", -38.58123, 13.7, 18, 90, 0.25)]
        ).to_text()
        assert " +0.25  (age + 38.58) / 13.7, age kept within 18 to 90\n" in text
        assert "a formula counts its weight times its value" in text

    def test_wide_characters_are_aligned(self) -> None:
        ensemble = small_ensemble(classes=["well", "ill"])
        rules = [Rule([Condition("bp", "==", "中文")], 1, support=0.5), ensemble[1]]
        lines = RuleEnsemble(rules, 0, **description_of(ensemble)).to_text().splitlines()
        assert lines[3].index("50.0%") + 2 == lines[4].index("30.0%")

    def test_empty(self) -> None:
        lines = small_ensemble()[:0].to_text().splitlines()
        assert lines[2:4] == ["weight  rule       support  precision", " -2.30  intercept"]


class TestMarkdown:
    def test_table(self) -> None:
        lines = small_ensemble().to_markdown().splitlines()
        assert lines[2:5] == [
            "| weight | rule | support | precision | votes for |",
            "| ---: | :--- | ---: | ---: | :--- |",
            "| +1.31 | `30 < age <= 50.5` and `bp == high` | 6.2% | 87.0% | ill |",
        ]

    def test_names_are_no_markup(self) -> None:
        rules = [Rule([Condition("a|b`c", "==", "`*x*")], 1.0, precision=0.5)]
        text = RuleEnsemble(
            rules, 0, feature_names=["a|b`c"], feature_kinds=["categorical"], output="binary",
            link="logit", classes=["<script>", "a_b|[c](d)"],
        ).to_markdown()  # fmt: skip
        assert r"``a\|b`c == `*x*``" in text
        assert r"a\_b\|\[c\](d)" in text
        assert "<script>" not in text
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}


class TestLaTeX:
    def test_table(self) -> None:
        lines = small_ensemble().to_latex().splitlines()
        assert lines[1:6] == [
            r"\begin{tabular}{rlrrl}",
            r"\toprule",
            r"weight & rule & support & precision & votes for \\",
            r"\midrule",
            r"$+1.31$ & 30 $<$ age $\le$ 50.5 \textsc{and} bp $=$ high & 6.2\% & 87.0\% & ill \\",
        ]
        assert lines[-1] == r"\end{tabular}"

    @given(st.text())
    def test_nothing_special_is_left(self, text: str) -> None:
        commands = r"\\text[a-z]+\{\}|\\[&%$#_{}]|\{[\[\]]\}|\{\}"
        assert not re.search(r"[\\&%$#_{}~^<>|\"\[\]]", re.sub(commands, "", escaped(text)))

    def test_all_rows_have_all_cells(self) -> None:
        text = random_ensemble(np.random.default_rng(0), n_rules=40).to_latex()
        rows = [line for line in text.splitlines() if line.startswith("$")]
        assert len(rows) == 42
        assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {3}


class Collector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


class TestHTML:
    def test_nothing_of_the_data_becomes_markup(self) -> None:
        evil = "<script>alert('x')</script>\"'&amp;"
        ensemble = RuleEnsemble(
            [Rule([Condition(evil, "==", evil)], [1.0, -1.0], support=0.5, precision=0.5)],
            [0, 0], feature_names=[evil], feature_kinds=["categorical"], output="multiclass",
            link="softmax", classes=[evil, "b"],
            linear_terms=(),
        )  # fmt: skip
        page = Collector()
        page.feed(ensemble._repr_html_())
        assert not page.open
        assert {tag for tag, _ in page.tags} <= {
            "style", "table", "caption", "thead", "tbody", "tr", "th", "td", "span"
        }  # fmt: skip
        assert page.text.count(evil) == 4
        attributes = {name for _, attrs in page.tags for name, _ in attrs}
        assert attributes <= {"class", "style", "colspan"}

    def test_shows_what_the_text_shows(self) -> None:
        page = Collector()
        page.feed(small_ensemble()._repr_html_())
        assert not page.open
        for part in ("30 < age ≤ 50.5", "bp = high", "bp ≠ low", "+1.31", "87.0%", "intercept"):
            assert part in page.text
        assert "http" not in small_ensemble()._repr_html_()


class TestFrame:
    COLUMNS = ("rule", "weight", "length", "support", "precision", "lift", "importance")

    @pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
    def test_columns(self, backend: str) -> None:
        frame = small_ensemble().to_frame(backend)
        names = frame.column_names if backend == "pyarrow" else list(frame.columns)
        assert tuple(names) == self.COLUMNS
        rows = pl.from_arrow(frame) if backend == "pyarrow" else pl.DataFrame(frame)
        assert rows["rule"].to_list() == [str(rule) for rule in small_ensemble()]
        assert rows["length"].to_list() == [3, 1, 1]
        assert rows["weight"].to_list() == [1.3123, -0.04, 0.5]
        assert np.isnan(rows["support"].to_numpy()[2])

    def test_several_outputs_and_regression(self) -> None:
        rng = np.random.default_rng(0)
        frame = with_statistics(rng, 2).to_frame()
        assert list(frame.columns) == [
            "rule", 'weight[the "0"]', 'weight[the "1"]', "length", "support", "mean", "lift",
            "importance",
        ]  # fmt: skip

    def test_no_rules(self) -> None:
        assert small_ensemble()[:0].to_frame().shape == (0, 7)
        assert small_ensemble()[:0].to_frame("polars").shape == (0, 7)

    def test_unknown_backend(self) -> None:
        with pytest.raises(ValueError, match="backend must be one of"):
            small_ensemble().to_frame("excel")
