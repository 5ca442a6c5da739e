"""Reading typed columns: the same table from every container, and errors that name the column."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from latticework.rules.cells import as_kind, level_of
from latticework.rules.columns import Column, Table, categorical_columns, read_table

NAN = float("nan")
CELLS = {
    "age": [63.0, None, 41.0, 41.0],
    "colour": ["red", "blue", None, "red"],
    "smokes": [True, False, None, True],
}
EXPECTED = {
    "age": ("numeric", None, [63.0, NAN, 41.0, 41.0]),
    "colour": ("categorical", ("blue", "red"), [1, 0, -1, 1]),
    "smokes": ("boolean", (False, True), [1, 0, -1, 1]),
}


def pandas_frame(**types):
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in CELLS.items()})
    return frame.astype(types)


CONTAINERS = {
    "pandas objects": pandas_frame(),
    "pandas default": pandas_frame(age=float, colour="str", smokes="boolean"),
    "pandas nullable": pandas_frame(age="Int64", colour="string", smokes="boolean"),
    "pandas arrow": pandas_frame(
        age="int64[pyarrow]", colour=pd.ArrowDtype(pa.string()), smokes="bool[pyarrow]"
    ),
    "pandas category": pandas_frame(
        age="Float64", colour=pd.CategoricalDtype(["unused", "red", "blue"])
    ),
    "polars": pl.DataFrame(CELLS),
    "polars decimal": pl.DataFrame(CELLS).with_columns(pl.col("age").cast(pl.Decimal(10, 2))),
    "polars categorical": pl.DataFrame(CELLS).with_columns(
        pl.col("colour").cast(pl.Categorical), pl.col("age").cast(pl.Int8)
    ),
    "polars enum": pl.DataFrame(CELLS).with_columns(
        pl.col("colour").cast(pl.Enum(["unused", "red", "blue"]))
    ),
    "pyarrow": pa.table(CELLS),
    "pyarrow chunks": pa.concat_tables([pa.table(CELLS).slice(0, 1), pa.table(CELLS).slice(1)]),
    "pyarrow dictionary": pa.table(
        {**CELLS, "colour": pa.array(CELLS["colour"]).dictionary_encode()}
    ),
    "pyarrow dictionary chunks": pa.table(
        {
            **CELLS,
            "colour": pa.chunked_array(
                [
                    pa.array(["red"]).dictionary_encode(),
                    pa.array(["blue", None, "red"]).dictionary_encode(),
                ]
            ),
        }
    ),
    "numpy objects": np.array(list(zip(*CELLS.values(), strict=True)), dtype=object),
    "rows": [list(row) for row in zip(*CELLS.values(), strict=True)],
}


def assert_columns(table: Table, expected: dict) -> None:
    assert table.names == tuple(expected)
    for name, (kind, levels, values) in expected.items():
        column = table[name]
        assert (column.kind, column.levels) == (kind, levels)
        assert column.values.dtype == (np.float64 if kind == "numeric" else np.int32)
        assert_array_equal(column.values, values)
        assert_array_equal(column.missing, [v == -1 or v != v for v in values])


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_table(container):
    X = CONTAINERS[container]
    names = None if hasattr(X, "columns") else list(EXPECTED)
    table = read_table(X, names=names)
    assert table.n_rows == 4
    assert_columns(table, EXPECTED)


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_can_be_read_again_as_fitted(container):
    """A slice without some levels, and columns that are all missing there, keep their kinds."""
    X = CONTAINERS[container]
    rows = X.slice(2, 1) if isinstance(X, pa.Table) else X[2:3]
    kinds = [kind for kind, _, _ in EXPECTED.values()]
    table = read_table(rows, names=list(EXPECTED), kinds=kinds)
    assert [column.kind for column in table.columns] == kinds
    assert_array_equal([column.missing[0] for column in table.columns], [False, True, True])


def test_ordered_categories_keep_their_declared_order():
    order = ["low", "mid", "high"]
    frame = pd.DataFrame({"bp": pd.Categorical(["high", None, "low"], order, ordered=True)})
    arrow = pa.table(
        {"bp": pa.DictionaryArray.from_arrays(pa.array([2, None, 0]), order, ordered=True)}
    )
    for X in (frame, arrow):
        assert_columns(read_table(X), {"bp": ("ordered", tuple(order), [2, -1, 0])})


def test_ordered_column_read_from_strings_has_sorted_levels():
    column = read_table([["low"], ["high"]], kinds=["ordered"])["x0"]
    assert (column.kind, column.levels) == ("ordered", ("high", "low"))


def test_numeric_categories_are_plain_and_sorted():
    frame = pd.DataFrame({"a": pd.Categorical([10, 2, None]), "b": pd.Categorical([1.5, 2.0, 2.0])})
    table = read_table(frame)
    assert_columns(
        table,
        {"a": ("categorical", (2, 10), [1, 0, -1]), "b": ("categorical", (1.5, 2), [0, 1, 1])},
    )
    assert [type(level) for level in table["b"].levels] == [float, int]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(3, 2),
        np.arange(6, dtype=np.uint8).reshape(3, 2),
        np.arange(6, dtype=np.float32).reshape(3, 2),
        np.asfortranarray(np.arange(6.0).reshape(3, 2)),
        np.arange(6).reshape(3, 2).astype(object),
        [[Decimal(0), 1], [2, 3.0], [np.int8(4), np.float32(5)]],
    ],
    ids=["int", "uint8", "float32", "fortran", "object", "rows"],
)
def test_numbers_of_any_type_are_float64(array):
    table = read_table(array)
    assert_columns(
        table, {"x0": ("numeric", None, [0.0, 2, 4]), "x1": ("numeric", None, [1.0, 3, 5])}
    )


def test_plain_float_matrix_is_not_copied():
    X = np.random.default_rng(0).normal(size=(5, 2))
    assert all(np.shares_memory(column.values, X) for column in read_table(X).columns)


def test_numpy_strings_and_booleans():
    assert_columns(
        read_table(np.array([["b"], ["a"]])), {"x0": ("categorical", ("a", "b"), [1, 0])}
    )
    assert_columns(
        read_table(np.array([[True], [True]])), {"x0": ("boolean", (False, True), [1, 1])}
    )
    strings = np.array([["b"], ["a"]], dtype=np.dtypes.StringDType())
    assert read_table(strings)["x0"].levels == ("a", "b")


def test_objects_of_booleans_and_strings_are_categorical():
    column = read_table([[True], ["unknown"], [None], [False]])["x0"]
    assert column.levels == (False, True, "unknown")
    assert_array_equal(column.values, [1, 2, -1, 0])


def test_all_missing_columns_are_numeric():
    for X in (
        pa.table({"x0": pa.nulls(2)}),
        pl.DataFrame({"x0": [None, None]}),
        pd.DataFrame({"x0": [None, pd.NA]}),
        pd.DataFrame({"x0": pd.array([None, None], dtype="Int64")}),
        [[None], [NAN]],
    ):
        assert_columns(read_table(X), {"x0": ("numeric", None, [NAN, NAN])})


def test_polars_nan_and_null_are_both_missing():
    assert read_table(pl.DataFrame({"a": [1.0, None, NAN]}))["a"].missing.tolist() == [0, 1, 1]


def test_whole_number_names_of_a_frame_are_no_names():
    frame = pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=[1, 0])
    table = read_table(frame)
    assert table.names == ("x0", "x1")
    assert_array_equal(table["x0"].values, [0, 2, 4])


# ---------------------------------------------------------------------------- names at predict


def test_frames_are_searched_by_name_and_arrays_by_position():
    frame = pd.DataFrame({"b": [1.0], "extra": [0.0], "a": [2.0]})
    assert_array_equal([c.values[0] for c in read_table(frame, names=["a", "b"]).columns], [2, 1])
    table = read_table([[1.0, 2.0]], names=["a", "b"])
    assert_array_equal([c.values[0] for c in table.columns], [1, 2])


def test_frame_for_a_model_without_names_is_read_by_position():
    frame = pd.DataFrame({"b": [1.0], "a": [2.0]})
    table = read_table(frame, names=["x0", "x1"])
    assert table.names == ("x0", "x1")
    assert_array_equal(table["x0"].values, [1])
    with pytest.raises(ValueError, match="X has 2 features, but the model is expecting 3 features"):
        read_table(frame, names=["x0", "x1", "x2"])


def test_missing_columns_are_named():
    with pytest.raises(ValueError, match=r"lacks the columns 'c', 'd' .* it has 'a', 'b'"):
        read_table(pd.DataFrame({"a": [1], "b": [2]}), names=["a", "c", "d"])


def test_other_width_of_an_array():
    with pytest.raises(ValueError, match="X has 3 features, but the model is expecting 4 features"):
        read_table(np.zeros((2, 3)), names=list("abcd"))


def test_unknown_column_of_a_table():
    with pytest.raises(KeyError, match="no column 'z'"):
        read_table([[1.0]])["z"]


# -------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize("chosen", [["x1"], [1], [-1], [False, True], np.array([False, True])])
def test_categorical_features(chosen):
    table = read_table([[1.0, 2.0], [3.0, NAN], [4.0, 1.5]], categorical_features=chosen)
    assert [column.kind for column in table.columns] == ["numeric", "categorical"]
    assert table["x1"].levels == (1.5, 2)
    assert_array_equal(table["x1"].values, [1, -1, 0])


def test_ordered_column_chosen_as_categorical_loses_its_order_and_unused_levels():
    frame = pd.DataFrame({"a": pd.Categorical(["z", "b"], ["z", "q", "b"], ordered=True)})
    column = read_table(frame, categorical_features=["a"])["a"]
    assert (column.kind, column.levels, column.values.tolist()) == (
        "categorical",
        ("b", "z"),
        [1, 0],
    )


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (["z"], "categorical_features mentions the column 'z'"),
        ([2], "categorical_features mentions the column 2"),
        ([1.5], "categorical_features mentions the column 1.5"),
        ([True], "mask of 1 columns, X has 2"),
        ("x0", "must be 'from_dtype' or a list"),
        (None, "must be 'from_dtype' or a list"),
    ],
)
def test_bad_categorical_features(chosen, message):
    with pytest.raises(ValueError, match=message):
        categorical_columns(chosen, ["x0", "x1"])


def test_kinds_convert_exactly():
    column = Column("size", "categorical", np.array([1, -1, 0], dtype=np.int32), (1.5, 2))
    assert_array_equal(as_kind(column, "numeric").values, [2.0, NAN, 1.5])
    truths = read_table([[True], [False]], kinds=["numeric"])["x0"]
    assert_array_equal(truths.values, [1.0, 0.0])


def test_bad_kinds():
    with pytest.raises(ValueError, match="kind 'date' of column 'x0' is not one of"):
        read_table([[1.0]], kinds=["date"])
    with pytest.raises(ValueError, match="2 kinds were given for 1 columns"):
        read_table([[1.0]], kinds=["numeric", "numeric"])


def test_strings_in_a_numeric_column_at_predict():
    for X in (pd.DataFrame({"age": ["51"]}), pl.DataFrame({"age": ["51"]}), [["51"]]):
        with pytest.raises(ValueError, match=r"column 'age' was numeric .* the string '51'"):
            read_table(X, names=["age"], kinds=["numeric"])


# ----------------------------------------------------------------------------------- refusals

INFINITE = [
    np.array([[1.0, np.inf]]),
    np.array([[1.0, -np.inf]], dtype=object),
    np.array([[1.0, -np.inf]], dtype=np.float32),
    pd.DataFrame({"x0": [1.0], "x1": [np.inf]}),
    pd.DataFrame({"x0": [1.0], "x1": pd.Categorical([np.inf])}),
    pl.DataFrame({"x0": [1.0], "x1": [np.inf]}),
]


@pytest.mark.parametrize("X", INFINITE, ids=lambda X: type(X).__module__.split(".")[0])
def test_infinite_cells(X):
    with pytest.raises(ValueError, match=r"Input X contains infinity .* in column 'x1'"):
        read_table(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros((0, 3)), ValueError, r"Found array with 0 sample\(s\)"),
        (
            np.zeros((3, 0)),
            ValueError,
            r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required\.",
        ),
        (pd.DataFrame({"a": []}), ValueError, r"Found array with 0 sample\(s\)"),
        (pl.DataFrame(), ValueError, r"Found array with 0 sample\(s\)"),
        (np.zeros(3), ValueError, r"Expected 2D array, got 1D array instead[^~]*Reshape your data"),
        (pd.Series([1, 2]), ValueError, "Expected 2D array, got 1D array instead"),
        (pl.Series([1, 2]), ValueError, "Expected 2D array, got 1D array instead"),
        (3.0, ValueError, "Expected 2D array, got scalar array instead"),
        (np.zeros((2, 2, 2)), ValueError, "Found array with dim 3"),
        (np.array([[1j]]), ValueError, "Complex data not supported: column 'x0'"),
        (np.array([[1j]], dtype=object), ValueError, "Complex data not supported: column 'x0'"),
        (sparse.csr_array(np.eye(2)), TypeError, "Sparse data was passed.*conditions='as-is'"),
        (pl.LazyFrame({"a": [1]}), TypeError, r"lazy frame .*X\.collect\(\)"),
        (
            np.array([[{"foo": "bar"}]]),
            TypeError,
            "column 'x0' holds .* argument must be a string or a real number",
        ),
        ([[[1, 2]], [[3]]], TypeError, "column 'x0' holds .* of type list"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), TypeError, "column 'x0' holds datetime64"),
        (np.array([[b"a"]]), TypeError, "column 'x0' holds .*bytes to text"),
        (
            [[datetime.date(2020, 1, 1)]],
            TypeError,
            "column 'x0' holds datetime.date.*convert dates",
        ),
        (
            pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}),
            TypeError,
            "column 'when' holds Datetime.*days since a reference",
        ),
        (pl.DataFrame({"t": [datetime.timedelta(1)]}), TypeError, "column 't' holds Duration"),
        (pl.DataFrame({"t": [[1, 2]]}), TypeError, "column 't' holds List"),
        (
            pd.DataFrame({"a": pd.cut([1.0, 2.0], 2)}),
            TypeError,
            "column 'a' has a category Interval.*convert them to strings",
        ),
        ([["a"], [1]], ValueError, "column 'x0' mixes numbers and strings"),
        ([[True], [2]], ValueError, "column 'x0' mixes numbers and booleans"),
        (
            pd.DataFrame({"a": pd.Categorical(["x", 1])}),
            ValueError,
            "column 'a' mixes numbers and strings",
        ),
        (
            pd.DataFrame(np.zeros((1, 3)), columns=["a", "b", "a"]),
            ValueError,
            r"share the names \['a'\]",
        ),
        (
            pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
            ValueError,
            r"share the names \['a'\]",
        ),
    ],
)
def test_refused_tables(X, error, message):
    with pytest.raises(error, match=message):
        read_table(X)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1, 2**53 + 1]]),
        np.array([[1, 2**63]], dtype=np.uint64),
        pd.DataFrame({"x0": [1], "x1": pd.array([-(2**53) - 1], dtype="Int64")}),
        pd.DataFrame({"x0": [1], "x1": [2**60]}),
        pl.DataFrame({"x0": [1], "x1": [2**60]}),
        [[1, 2**60]],
    ],
)
def test_integers_that_floats_cannot_tell_apart(X):
    with pytest.raises(ValueError, match=r"column 'x1' holds integers beyond 2\*\*53"):
        read_table(X)


def test_levels_are_plain_scalars():
    levels = [
        level_of("a", v) for v in (np.str_("x"), np.bool_(True), np.int8(3), 2.0, np.float32(0.5))
    ]
    assert levels == ["x", True, 3, 2, 0.5]
    assert [type(level) for level in levels] == [str, bool, int, int, float]
