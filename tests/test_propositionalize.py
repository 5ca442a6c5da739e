"""Columns to conditions: which there are, what satisfies them, and their codes."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from latticework.rules.coding import BLOCK
from latticework.rules.columns import read_table
from latticework.rules.conditions import INDICATOR_BLOCK
from latticework.rules.propositionalize import Propositionalizer

NAN = float("nan")
ORDER = ["low", "mid", "high"]
TRAIN = pd.DataFrame(
    {
        "age": [20.0, 30.0, None, 40.0, 50.0],
        "colour": ["red", "blue", "green", None, "red"],
        "smokes": [True, False, True, True, False],
        "bp": pd.Categorical(["low", "high", "mid", None, "low"], ORDER, ordered=True),
        "constant": [7, 7, 7, 7, 7],
    }
)
NAMES = [
    "age <= 20", "age <= 30", "age <= 40", "age > 20", "age > 30", "age > 40", "age is missing",
    "colour == blue", "colour == green", "colour == red",
    "colour != blue", "colour != green", "colour != red", "colour is missing",
    "smokes == False", "smokes == True",
    "bp <= low", "bp <= mid", "bp > low", "bp > mid", "bp is missing",
]  # fmt: skip


# ---------------------------------------------------------------------------------- conditions


def test_conditions_in_order():
    model = Propositionalizer().fit(TRAIN)
    assert [str(condition) for condition in model.conditions_] == NAMES
    assert_array_equal(model.get_feature_names_out(), NAMES)
    assert model.kinds_ == ("numeric", "categorical", "boolean", "ordered", "numeric")
    assert_array_equal(model.table_.n_codes, [5, 5, 4, 5, 2])
    assert model.conditions_[-2].order == tuple(ORDER)
    assert model.table_.column.dtype == model.table_.hole.dtype == np.int32


def test_codes_and_who_satisfies_what():
    """Levels seen, unseen and missing; ``<=`` includes the threshold."""
    model = Propositionalizer().fit(TRAIN)
    new = pd.DataFrame(
        {
            "age": [20.0, 20.5, 99.0, None],
            "colour": ["red", "unseen", None, "blue"],
            "smokes": pd.array([True, None, False, True], dtype="boolean"),
            "bp": ["mid", "unseen", None, "high"],
            "constant": [7, 8, None, 7],
        }
    )
    assert_array_equal(
        model.encode(new),
        [[0, 2, 1, 1, 0], [1, 3, 3, 3, 0], [3, 4, 0, 4, 1], [4, 0, 1, 2, 0]],
    )
    satisfied = [
        {name for name, true in zip(NAMES, row, strict=True) if true}
        for row in model.transform(new)
    ]
    assert satisfied == [
        {"age <= 20", "age <= 30", "age <= 40", "colour == red", "colour != blue",
         "colour != green", "smokes == True", "bp <= mid", "bp > low"},
        {"age > 20", "age <= 30", "age <= 40", "colour != red", "colour != blue",
         "colour != green"},
        {"age > 20", "age > 30", "age > 40", "colour is missing", "smokes == False",
         "bp is missing"},
        {"age is missing", "colour == blue", "colour != green", "colour != red", "smokes == True",
         "bp > low", "bp > mid"},
    ]  # fmt: skip


def test_few_levels():
    two = Propositionalizer().fit([["a"], ["b"]])
    assert [*two.get_feature_names_out()] == ["x0 == a", "x0 == b"]
    assert not two.transform([["unseen"], [None]]).any()
    one_and_missing = Propositionalizer().fit([["a"], [None]])
    assert [*one_and_missing.get_feature_names_out()] == ["x0 == a", "x0 is missing"]
    number_and_missing = Propositionalizer().fit([[1.0], [None]])
    assert [*number_and_missing.get_feature_names_out()] == ["x0 is missing"]


@pytest.mark.parametrize("cells", [["a", "a"], [3.0, 3.0], [None, None], [True, True]])
def test_constant_columns_have_no_conditions(cells):
    model = Propositionalizer().fit([[cell] for cell in cells])
    assert model.conditions_ == []
    assert model.transform([[cells[0]]]).shape == (1, 0)
    assert model.encode([[cells[0]]]).shape == (1, 1)


def test_no_condition_holds_for_all_training_rows_or_none():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=60),
            "b": rng.integers(0, 3, 60),
            "c": rng.choice(["u", "v", "w", None], 60),
            "d": pd.Categorical(rng.choice([0, 2], 60), [0, 1, 2, 3], ordered=True),
        }
    )
    truths = Propositionalizer().fit(frame).transform(frame)
    assert ((truths.sum(axis=0) > 0) & (truths.sum(axis=0) < 60)).all()


def test_ordered_levels_that_do_not_occur_are_kept_in_the_order():
    frame = pd.DataFrame({"d": pd.Categorical(["a", "c"], ["a", "b", "c", "d"], ordered=True)})
    model = Propositionalizer().fit(frame)
    assert [*model.get_feature_names_out()] == ["d <= a", "d > a"]
    assert_array_equal(
        model.transform(pd.DataFrame({"d": ["b", "d"]})), [[False, True], [False, True]]
    )


def test_categorical_features():
    X = [[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]
    model = Propositionalizer(categorical_features=[0]).fit(X)
    assert model.kinds_ == ("categorical", "numeric")
    assert [*model.get_feature_names_out()][:3] == ["x0 == 1", "x0 == 2", "x0 == 3"]
    assert_array_equal(model.encode([[2.0, 5.0], [2.5, 5.0], [NAN, 5.0]])[:, 0], [1, 3, 4])
    assert_array_equal(model.encode(np.array([[2, 5]])), [[1, 0]])


# ------------------------------------------------------------------------------------- codes


def containers():
    cells = {
        "age": [20.0, 30.0, None, 40.0, 50.0],
        "colour": ["red", "blue", "green", None, "red"],
        "smokes": [True, False, None, True, False],
    }
    rows = [list(row) for row in zip(*cells.values(), strict=True)]
    frame = pd.DataFrame(cells)
    return {
        "rows": rows,
        "numpy": np.array(rows, dtype=object),
        "pandas": frame,
        "pandas nullable": frame.convert_dtypes(),
        "pandas category": frame.astype({"colour": "category"}),
        "polars": pl.DataFrame(cells),
        "polars enum": pl.DataFrame(cells).with_columns(
            pl.col("colour").cast(pl.Enum(["red", "green", "blue"]))
        ),
        "pyarrow": pa.table(cells),
    }


@pytest.mark.parametrize("container", containers())
def test_every_container_gives_the_same_codes(container):
    X, expected = containers()[container], [[0, 2, 1], [1, 0, 0], [4, 1, 3], [2, 4, 1], [3, 2, 0]]
    model = Propositionalizer().fit(X)
    assert_array_equal(model.encode(X), expected)
    assert len(model.conditions_) == 7 + 7 + 3


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("container", containers())
def test_fitted_on_pandas_codes_every_container(container):
    model = Propositionalizer().fit(containers()["pandas"])
    X = containers()[container]
    assert_array_equal(model.encode(X), model.encode(containers()["pandas"]))


@pytest.mark.parametrize("n_rows", [1, INDICATOR_BLOCK + 1, BLOCK + 3])
@pytest.mark.parametrize("n_thresholds", [3, 60, 500])
def test_transform_agrees_with_the_table_and_with_the_definition(n_rows, n_thresholds):
    rng = np.random.default_rng(0)
    train = rng.normal(size=(700, 2))
    train[::7, 1] = NAN
    model = Propositionalizer(n_thresholds=n_thresholds).fit(train)
    X = rng.normal(size=(n_rows, 2))
    X[rng.random((n_rows, 2)) < 0.1] = NAN
    X[0] = train[3]
    codes = model.encode(X)
    assert codes.flags.c_contiguous
    assert codes.dtype == (np.uint16 if n_thresholds == 500 else np.uint8)
    truths = model.transform(X)
    assert truths.dtype == bool
    tests = {"<=": np.less_equal, ">": np.greater, "is missing": lambda x, _: np.isnan(x)}
    for c, condition in enumerate(model.conditions_):
        values = X[:, model.table_.column[c]]
        expected = tests[condition.operator](values, condition.value)
        assert_array_equal(truths[:, c], expected)
        assert_array_equal(model.table_.satisfied(codes, c), expected)


def test_printed_thresholds_select_the_same_rows():
    X = np.random.default_rng(1).normal(size=(200, 1)) * 1e-3
    model = Propositionalizer(n_thresholds=20).fit(X)
    for column, name in zip(model.transform(X).T, model.get_feature_names_out(), strict=True):
        _, operator, number = name.split()
        value = float(number)
        assert_array_equal(column, X[:, 0] <= value if operator == "<=" else X[:, 0] > value)


def test_many_levels_need_wider_codes():
    X = [[f"level {i}"] for i in range(300)]
    model = Propositionalizer().fit(X)
    codes = model.encode(X)
    assert codes.dtype == np.uint16
    assert len(np.unique(codes)) == 300


def test_too_many_levels_are_refused():
    X = np.arange(66_000).astype(str)[:, None]
    with pytest.raises(ValueError, match="column 'x0' needs 66002 codes"):
        Propositionalizer().fit(X)


def test_a_table_is_taken_as_it_was_read():
    table = read_table(TRAIN)
    model = Propositionalizer().fit(table)
    assert_array_equal(model.encode(table), Propositionalizer().fit(TRAIN).encode(TRAIN))
    assert model.n_features_in_ == 5
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match=r"fitted with .*'age'"):
        model.encode(read_table(TRAIN[["colour", "age"]]))


# ----------------------------------------------------------------------------------- thresholds


def test_given_thresholds():
    X = np.arange(20.0).reshape(10, 2)
    model = Propositionalizer(n_thresholds=2, thresholds={0: [8, 4, 4.5], "x1": [-1]}).fit(X)
    assert_array_equal(model.thresholds_["x0"], [4, 4.5, 8])
    assert [*model.get_feature_names_out()] == [
        "x0 <= 4", "x0 <= 4.5", "x0 <= 8", "x0 > 4", "x0 > 4.5", "x0 > 8", "x1 <= -1", "x1 > -1",
    ]  # fmt: skip
    some = Propositionalizer(n_thresholds=2, thresholds={"x1": [5.0]}).fit(X)
    assert len(some.thresholds_["x0"]) == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_thresholds": 0}, "n_thresholds must be an integer of at least 1, got 0"),
        ({"n_thresholds": 2.0}, "n_thresholds must be an integer"),
        ({"n_thresholds": True}, "n_thresholds must be an integer"),
        ({"thresholds": "tree"}, r"thresholds must be one of 'quantile', or a dict .* got 'tree'"),
        ({"thresholds": [1.0]}, "thresholds must be one of 'quantile', or a dict"),
        ({"thresholds": {"z": [1.0]}}, "thresholds mentions the column 'z'"),
        ({"thresholds": {"age": [NAN]}}, "thresholds of column 'age' must be"),
        ({"thresholds": {"bp": [1.0]}}, "column 'bp', which is ordered"),
        ({"conditions": "as is"}, "conditions must be 'auto' or 'as-is', got 'as is'"),
        ({"categorical_features": ["z"]}, "categorical_features mentions the column 'z'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        Propositionalizer(**parameters).fit(TRAIN)


# -------------------------------------------------------------------------------------- weights

ROW = st.tuples(
    st.sampled_from([*range(12), NAN]),
    st.sampled_from(["a", "b", "c", None]),
    st.integers(0, 3),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=30), st.integers(1, 6))
def test_whole_weights_are_repeated_rows(rows, n_thresholds):
    weights = np.array([row[-1] for row in rows])
    if not weights.any():
        return
    X = np.array([row[:2] for row in rows], dtype=object)
    weighted = Propositionalizer(n_thresholds).fit(X, sample_weight=weights)
    repeated = Propositionalizer(n_thresholds).fit(np.repeat(X, weights, axis=0))
    assert weighted.conditions_ == repeated.conditions_
    if weighted.kinds_ == repeated.kinds_:  # one of them may lack all strings
        assert_array_equal(weighted.encode(X), repeated.encode(X))


def test_bad_weights():
    for weights, message in [
        ([-1, 1, 1, 1, 1], "Negative values"),
        ([0, 0, 0, 0, 0], "non-zero"),
        ([1, 1], "expected"),
        ([NAN, 1, 1, 1, 1], "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            Propositionalizer().fit(TRAIN, sample_weight=weights)


# ---------------------------------------------------------------------------------------- as is

TRUTHS = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0]])
AS_IS = {
    "bool": TRUTHS.astype(bool),
    "int": TRUTHS,
    "float": TRUTHS.astype(float),
    "rows": TRUTHS.tolist(),
    "objects": TRUTHS.astype(bool).astype(object),
    "pandas": pd.DataFrame(TRUTHS.astype(bool), columns=["x0", "x1", "x2"]),
    "pandas numbers": pd.DataFrame(TRUTHS, columns=["x0", "x1", "x2"]),
    "pandas nullable": pd.DataFrame(TRUTHS, columns=["x0", "x1", "x2"]).astype("boolean"),
    "pandas category": pd.DataFrame(TRUTHS, columns=["x0", "x1", "x2"]).astype("category"),
    "polars": pl.DataFrame(TRUTHS.astype(bool), schema=["x0", "x1", "x2"]),
    "pyarrow": pa.table({f"x{j}": TRUTHS[:, j] for j in range(3)}),
    "table": read_table(TRUTHS.astype(bool)),
    "csr_matrix": sparse.csr_matrix(TRUTHS),
    "csc_array": sparse.csc_array(TRUTHS.astype(float)),
    "coo_array": sparse.coo_array(TRUTHS.astype(bool)),
}


@pytest.mark.parametrize("container", AS_IS)
def test_as_is(container):
    X = AS_IS[container]
    model = Propositionalizer(conditions="as-is").fit(X)
    assert [str(c) for c in model.conditions_] == ["x0", "x1", "x2"]
    assert {c.operator for c in model.conditions_} == {"is true"}
    assert_array_equal(model.table_.n_codes, [2, 2, 2])
    codes = model.encode(X)
    assert codes.dtype == np.uint8
    assert codes.flags.c_contiguous
    assert_array_equal(codes, TRUTHS)
    assert_array_equal(model.table_.indicators(codes), TRUTHS)
    as_sparse = model.encode_sparse(X)
    assert isinstance(as_sparse, sparse.csr_array)
    assert as_sparse.dtype == bool
    assert_array_equal(as_sparse.toarray(), TRUTHS)
    transformed = model.transform(X)
    assert sparse.issparse(transformed) == sparse.issparse(X)
    dense = transformed.toarray() if sparse.issparse(transformed) else transformed
    assert dense.dtype == bool
    assert_array_equal(dense, TRUTHS)


def test_sparse_codes_store_ones_only():
    data = np.array([1, 0, 1, 1])
    messy = sparse.csr_array((data, np.array([2, 0, 0, 1]), np.array([0, 2, 4])), shape=(2, 3))
    stored = messy.data.copy()
    codes = Propositionalizer(conditions="as-is").fit(messy).encode_sparse(messy)
    assert codes.data.all()
    assert codes.has_canonical_format
    assert_array_equal(codes.toarray(), [[0, 0, 1], [1, 1, 0]])
    assert_array_equal(messy.data, stored)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1, 2]]), "column 'x1' holds 2.0"),
        (np.array([[1, 0.5]]), "column 'x1' holds 0.5"),
        (np.array([[1, NAN]]), "no cell may be missing, but some of column 'x1' are"),
        ([[True, None]], "no cell may be missing, but some of column 'x1' are"),
        (pd.DataFrame({"a": [1, 0], "b": ["1", "0"]}), "column 'b' holds '0'"),
        (sparse.csr_array(np.array([[1, 3]])), "column 'x1' holds 3"),
        (sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(1, 2)), "column 'x1' holds 2"),
        (np.zeros((0, 2)), r"0 sample\(s\)"),
        (sparse.csr_array((0, 2)), r"0 sample\(s\)"),
        (sparse.csr_array((2, 0)), r"0 feature\(s\)"),
    ],
)
def test_as_is_refuses_other_cells(X, message):
    with pytest.raises(ValueError, match=message):
        Propositionalizer(conditions="as-is").fit(X)


def test_sparse_needs_as_is():
    X = sparse.csr_array(TRUTHS)
    with pytest.raises(TypeError, match=r"Sparse data was passed.*conditions='as-is'"):
        Propositionalizer().fit(X)
    with pytest.raises(ValueError, match=r"Propositionalizer\(conditions='as-is'\)"):
        Propositionalizer().fit(TRUTHS).encode_sparse(X)


# --------------------------------------------------------------------------------- scikit-learn


def test_names_are_checked():
    model = Propositionalizer().fit(TRAIN)
    assert_array_equal(model.feature_names_in_, TRAIN.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(TRAIN[TRAIN.columns[::-1]])
    with pytest.raises(ValueError, match="X has 2 features, but Propositionalizer is expecting 3"):
        Propositionalizer().fit(np.zeros((2, 3))).transform(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="Reshape your data"):
        model.transform([1, 2, 3, 4, 5])


def test_names_out():
    model = Propositionalizer(n_thresholds=1).fit(np.arange(6.0).reshape(3, 2))
    assert [*model.get_feature_names_out()] == ["x0 <= 3", "x0 > 3", "x1 <= 4", "x1 > 4"]
    assert [*model.get_feature_names_out(["a", "b"])][1:3] == ["a > 3", "b <= 4"]
    with pytest.raises(ValueError, match="should have length equal"):
        model.get_feature_names_out(["a"])
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        Propositionalizer().fit(TRAIN).get_feature_names_out(list("abcde"))


def test_another_type_at_predict():
    model = Propositionalizer().fit(TRAIN)
    with pytest.raises(ValueError, match=r"column 'age' was numeric .* the string 'old'"):
        model.transform(TRAIN.assign(age="old"))
    with pytest.raises(ValueError, match=r"column 'colour' held strings .* such as 3"):
        model.transform(TRAIN.assign(colour=3))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(library):
    model = Propositionalizer().set_output(transform=library)
    out = model.fit_transform(TRAIN)
    assert type(out).__module__.startswith(library)
    assert list(out.columns) == NAMES
    assert_array_equal(out.to_numpy(), Propositionalizer().fit_transform(TRAIN))


def test_clone_and_pickle():
    model = Propositionalizer(3, thresholds={"age": [25]}, categorical_features=["age"])
    assert clone(model).get_params() == model.get_params()
    fitted = Propositionalizer(3, thresholds={"age": [25]}).fit(TRAIN)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.conditions_ == fitted.conditions_
    assert_array_equal(again.encode(TRAIN), fitted.encode(TRAIN))


def test_pipeline():
    model = make_pipeline(Propositionalizer(), DecisionTreeClassifier())
    y = [0, 1, 0, 1, 1]
    assert model.fit(TRAIN, y).score(TRAIN, y) == 1.0
