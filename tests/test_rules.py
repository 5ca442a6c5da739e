"""Rules and ensembles: conditions on cells, canonical forms, statistics, scores, explanations."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit, softmax

from latticework.rules.columns import Column, Table, read_table
from latticework.rules.conditions import OPERATORS, Condition
from latticework.rules.ensemble import RuleEnsemble
from latticework.rules.evaluate import evaluate_condition, satisfies
from latticework.rules.propositionalize import Propositionalizer
from latticework.rules.rule import Rule
from latticework.rules.simplify import ContradictionError, is_contradictory, simplify
from latticework.rules.statistics import rule_statistics, votes
from latticework.rules.terms import LinearTerm

GRADES = ("low", "middle", "high")


def coded(kind: str, values: list[int], levels: tuple[Any, ...]) -> Column:
    return Column("x", kind, np.array(values, dtype=np.int32), levels)


# ---------------------------------------------------------------------------------- conditions


class TestEvaluateCondition:
    numbers = Column("x", "numeric", np.array([1.0, 2.0, np.nan, 3.0]))

    @pytest.mark.parametrize(
        ("operator", "value", "expected"),
        [
            ("<=", 2, [1, 1, 0, 0]),
            (">", 2, [0, 0, 0, 1]),
            (">", np.nextafter(2, 0), [0, 1, 0, 1]),
            ("==", 2, [0, 1, 0, 0]),
            ("!=", 2, [1, 0, 0, 1]),
            ("is missing", None, [0, 0, 1, 0]),
            ("is true", None, [1, 0, 0, 0]),
            ("==", "2", [0, 0, 0, 0]),
            ("!=", "2", [1, 1, 0, 1]),
            ("==", True, [0, 0, 0, 0]),
            ("!=", True, [1, 1, 0, 1]),
            ("<=", "b", [0, 0, 0, 0]),
        ],
    )
    def test_numbers(self, operator: str, value: Any, expected: list[int]) -> None:
        condition = Condition("x", operator, value)
        assert evaluate_condition(condition, self.numbers).tolist() == list(map(bool, expected))

    def test_numbers_in_an_order(self) -> None:
        condition = Condition("x", ">", 3, (1, 3, 2))
        assert evaluate_condition(condition, self.numbers).tolist() == [False, True, False, False]

    @pytest.mark.parametrize(
        ("operator", "value", "expected"),
        [
            ("==", "a", [1, 0, 0, 0]),
            ("!=", "a", [0, 1, 0, 1]),
            ("!=", "never seen", [1, 1, 0, 1]),
            ("==", "never seen", [0, 0, 0, 0]),
            ("is missing", None, [0, 0, 1, 0]),
            ("is true", None, [0, 0, 0, 0]),
        ],
    )
    def test_categories(self, operator: str, value: Any, expected: list[int]) -> None:
        column = coded("categorical", [0, 1, -1, 2], ("a", "b", ""))
        condition = Condition("x", operator, value)
        assert evaluate_condition(condition, column).tolist() == list(map(bool, expected))

    def test_ordered_levels_follow_the_order_of_the_condition(self) -> None:
        column = coded("ordered", [0, 1, 2, 3, -1], ("high", "low", "middle", "unseen"))
        below = Condition("x", "<=", "middle", GRADES)
        above = Condition("x", ">", "middle", GRADES)
        assert evaluate_condition(below, column).tolist() == [False, True, True, False, False]
        assert evaluate_condition(above, column).tolist() == [True, False, False, False, False]

    def test_numbers_of_all_widths_are_one_level(self) -> None:
        column = coded("categorical", [0, 1], (1, 2.5))
        for one in (1, 1.0, np.int8(1), np.float32(1)):
            condition = Condition("x", "==", one)
            assert evaluate_condition(condition, column).tolist() == [True, False]

    def test_booleans_are_no_numbers_except_in_boolean_columns(self) -> None:
        true = Condition("x", "==", True)
        assert not evaluate_condition(true, coded("categorical", [1], (0, 1))).any()
        assert evaluate_condition(true, coded("boolean", [1], (0, 1))).all()
        assert evaluate_condition(true, coded("boolean", [1], (False, True))).all()
        assert not satisfies("True", true, "boolean")

    @given(
        st.lists(st.one_of(st.none(), st.floats(allow_infinity=False)), min_size=1),
        st.floats(allow_nan=False, allow_infinity=False),
    )
    def test_columns_agree_with_cells(self, cells: list[float | None], threshold: float) -> None:
        values = np.array([np.nan if cell is None else cell for cell in cells])
        column = Column("x", "numeric", values)
        for operator in OPERATORS:
            condition = Condition("x", operator, threshold)
            expected = [satisfies(cell, condition) for cell in cells]
            assert evaluate_condition(condition, column).tolist() == expected


# ------------------------------------------------------------------------------ simplification


def texts(conditions: tuple[Condition, ...]) -> list[str]:
    return list(map(str, conditions))


class TestSimplify:
    def test_the_tightest_thresholds_stay(self) -> None:
        found = simplify([Condition("x", op, v) for op, v in [("<=", 5), (">", 1), ("<=", 3)]])
        assert texts(found) == ["x > 1", "x <= 3"]

    def test_an_equality_makes_exclusions_and_thresholds_superfluous(self) -> None:
        conditions = [("!=", 3), ("==", 2), ("<=", 2), (">", 0)]
        assert texts(simplify([Condition("x", *c) for c in conditions])) == ["x == 2"]

    def test_an_exclusion_outside_the_thresholds_goes(self) -> None:
        conditions = [("!=", 3), ("<=", 2), ("!=", 2)]
        assert texts(simplify([Condition("x", *c) for c in conditions])) == ["x <= 2", "x != 2"]

    def test_equal_levels_of_other_types_are_one(self) -> None:
        assert len(simplify([Condition("x", "!=", 1), Condition("x", "!=", 1.0)])) == 1
        assert len(simplify([Condition("x", "!=", 1), Condition("x", "!=", "1")])) == 2

    def test_ordered_thresholds_compare_by_their_order(self) -> None:
        conditions = [Condition("x", "<=", level, GRADES) for level in ("high", "middle")]
        assert texts(simplify(conditions)) == ["x <= middle"]

    def test_features_come_in_the_order_asked_for(self) -> None:
        conditions = [Condition("b", ">", 0), Condition("a", ">", 0), Condition("b", "<=", 9)]
        assert texts(simplify(conditions)) == ["b > 0", "b <= 9", "a > 0"]
        assert texts(simplify(conditions, ["a", "b"])) == ["a > 0", "b > 0", "b <= 9"]

    @pytest.mark.parametrize(
        "pair",
        [
            [("<=", 1), (">", 1)],
            [("==", "a"), ("!=", "a")],
            [("==", "a"), ("==", "b")],
            [("==", 5), ("<=", 4)],
            [("is missing",), ("<=", 4)],
            [("is missing",), ("!=", "a")],
            [("is true",), ("==", False)],
            [(">", "middle", GRADES), ("<=", "low", GRADES)],
            [(">", "middle", GRADES), ("!=", "high")],
        ],
        ids=str,
    )
    def test_contradictions_are_found(self, pair: list[tuple[Any, ...]]) -> None:
        conditions = [Condition("blood pressure", *c) for c in pair]
        assert is_contradictory(conditions)
        with pytest.raises(ContradictionError, match="blood pressure"):
            Rule(conditions, 1.0)

    cells = st.one_of(
        st.tuples(st.sampled_from(["<=", ">", "==", "!="]), st.integers(0, 3)),
        st.tuples(st.sampled_from(["==", "!="]), st.sampled_from(["a", "b", True])),
        st.tuples(st.sampled_from(["<=", ">"]), st.sampled_from(GRADES), st.just(GRADES)),
        st.tuples(st.sampled_from(["==", "!="]), st.sampled_from(GRADES)),
        st.tuples(st.sampled_from(["is missing", "is true"])),
    )

    @given(st.lists(st.tuples(st.sampled_from("xy"), cells), max_size=7))
    def test_same_rows_as_before_and_nothing_to_spare(
        self, tests: list[tuple[str, tuple[Any, ...]]]
    ) -> None:
        conditions = [Condition(feature, *test) for feature, test in tests]
        domain = [None, True, "a", "b", "c", *GRADES, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4]
        grid = list(product(domain, repeat=2))

        def rows(chosen: list[Condition]) -> list[bool]:
            return [all(satisfies({"x": x, "y": y}[c.feature], c) for c in chosen) for x, y in grid]

        expected = rows(conditions)
        try:
            found = list(simplify(conditions))
        except ContradictionError:
            assert not any(expected)
            return
        assert rows(found) == expected
        assert simplify(found) == tuple(found)
        assert len(found) == len(set(found))
        # Any order of the conditions gives the same set.
        assert set(simplify(conditions[::-1])) == set(found)
        for feature in "xy":
            numeric = [c for c in found if c.feature == feature and c.order is None]
            assert sum(c.operator == "<=" for c in numeric) <= 1
            assert sum(c.operator == ">" for c in numeric) <= 1


# --------------------------------------------------------------------------------------- rules


class TestRule:
    rule = Rule(
        [Condition("age", "<=", 50.0), Condition("age", ">", 30), Condition("bp", "==", "high")],
        1.25,
        support=0.2,
        count=7,
        precision=0.9,
        lift=1.5,
    )

    def test_text_joins_the_ends_of_an_interval(self) -> None:
        assert str(self.rule) == "30 < age <= 50 AND bp == high"
        assert len(self.rule) == 3
        assert repr(self.rule) == "Rule('30 < age <= 50 AND bp == high', 1.25)"

    def test_text_of_every_operator(self) -> None:
        tests = [("a", "!=", "u"), ("b", "is missing"), ("c = d", "is true"), ("e", "<=", 1e22)]
        rule = Rule([Condition(*test) for test in tests], 1)
        assert str(rule) == "a != u AND b is missing AND c = d AND e <= 1e+22"
        assert str(Rule([], 1)) == "always"

    def test_a_printed_threshold_is_the_threshold(self) -> None:
        for threshold in (0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308, 2.0**53):
            text = str(Rule([Condition("x", ">", threshold)], 1))
            assert float(text.removeprefix("x > ")) == threshold

    def test_line_breaks_do_not_break_the_line(self) -> None:
        assert str(Rule([Condition("a\nb", "==", "c\nd")], 1)) == r'"a\nb" == "c\nd"'

    def test_equal_by_content_whatever_the_order(self) -> None:
        other = Rule(
            self.rule.conditions[::-1], [1.25], support=0.2, count=7, precision=0.9, lift=1.5
        )
        assert other == self.rule
        assert hash(other) == hash(self.rule)
        assert Rule(self.rule.conditions, 1.25) != self.rule
        assert self.rule != "age"

    def test_dict_pickle_and_copy(self) -> None:
        assert Rule.from_dict(self.rule.to_dict()) == self.rule
        assert pickle.loads(pickle.dumps(self.rule)) == self.rule
        assert copy.deepcopy(self.rule) == self.rule
        ordered = Rule([Condition("g", ">", "low", GRADES)], [1.0, 2.0], mean=3.0)
        assert Rule.from_dict(ordered.to_dict()) == ordered

    def test_numpy_scalars_become_plain(self) -> None:
        rule = Rule([Condition("x", ">", np.float64(1.5)), Condition("y", "==", np.str_("a"))], 1)
        assert [type(c.value) for c in rule.conditions] == [float, str]
        order = tuple(np.array(["a", "b"]))
        [condition] = Rule([Condition("x", ">", order[0], order)], 1).conditions
        assert type(condition.value) is str
        assert {type(level) for level in condition.order or ()} == {str}

    def test_weight_of_several_outputs(self) -> None:
        rule = Rule([], [1.0, -2.0])
        with pytest.raises(AttributeError, match=r"rule\.weights"):
            _ = rule.weight
        assert rule.weights == (1.0, -2.0)

    @pytest.mark.parametrize("weight", [np.nan, np.inf])
    def test_weights_are_finite(self, weight: float) -> None:
        with pytest.raises(ValueError, match="finite"):
            Rule([], weight)

    def test_importance(self) -> None:
        assert self.rule.importance == pytest.approx(1.25 * 0.4)
        assert Rule([], 1.0).importance is None
        assert Rule([], [3.0, 4.0], support=0.5).importance == pytest.approx(2.5)

    def test_indicator(self) -> None:
        frame = pd.DataFrame({"bp": ["high", "high", "low"], "age": [31, 30, 40]})
        assert self.rule.indicator(frame).tolist() == [True, False, False]

    def test_nothing_can_be_assigned(self) -> None:
        with pytest.raises(AttributeError):
            self.rule.support = 0.5  # type: ignore[misc]


# ----------------------------------------------------------------------------------- ensembles

NAMES = ("age", "bp", "smoker", "grade")
KINDS = ("numeric", "categorical", "boolean", "ordered")
CONJUNCTIONS = [
    [Condition("age", ">", 50)],
    [Condition("bp", "==", "high"), Condition("age", "<=", 70), Condition("age", ">", 20)],
    [Condition("smoker", "==", True), Condition("bp", "!=", "low")],
    [Condition("grade", ">", "low", GRADES)],
    [Condition("age", "is missing")],
    [],
]


def frame_of(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(10, 90, n).astype(float)
    age[rng.random(n) < 0.2] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "bp": rng.choice(np.array(["low", "normal", "high", None], dtype=object), n),
            "smoker": rng.choice(np.array([True, False, None], dtype=object), n),
            "grade": pd.Categorical(rng.choice(GRADES, n), categories=GRADES, ordered=True),
        }
    )


def ensemble_of(n_outputs: int = 1, *, seed: int = 0, linear: bool = False, **changes: Any):
    rng = np.random.default_rng(seed)
    terms = [LinearTerm("age", 45.5, 13.7, 15, 80, rng.normal(size=n_outputs))] if linear else []
    description: dict[str, Any] = {
        "feature_names": NAMES,
        "feature_kinds": KINDS,
        "output": "binary",
        "link": "logit",
        "classes": ["no", "yes"],
        "linear_terms": terms,
    }
    if n_outputs > 1:
        description |= {
            "output": "multiclass",
            "link": "softmax",
            "classes": list(range(n_outputs)),
        }
    description |= changes
    weights = rng.normal(size=(len(CONJUNCTIONS), n_outputs))
    return RuleEnsemble.from_parts(CONJUNCTIONS, weights, rng.normal(size=n_outputs), **description)


def cell_scores(ensemble: RuleEnsemble, frame: pd.DataFrame) -> np.ndarray:
    """Scores computed cell by cell."""
    rows = []
    for row in frame.astype(object).to_dict("records"):
        score = np.array(ensemble.intercept)
        for rule in ensemble:
            kinds = dict(zip(NAMES, KINDS, strict=True))
            if all(satisfies(row[c.feature], c, kinds[c.feature]) for c in rule.conditions):
                score = score + np.array(rule.weights)
        for term in ensemble.linear_terms:
            x = row[term.feature]
            if x == x:
                z = (min(max(x, term.low), term.high) - term.mean) / term.scale
                score = score + z * np.array(term.weights)
        rows.append(score)
    return np.array(rows)


class TestSequence:
    ensemble = ensemble_of()

    def test_indexing_and_iteration(self) -> None:
        assert len(self.ensemble) == 6
        assert self.ensemble[-1] is self.ensemble.rules[-1]
        assert list(self.ensemble) == list(self.ensemble.rules)
        assert self.ensemble[2] in self.ensemble
        assert self.ensemble.index(self.ensemble[3]) == 3
        with pytest.raises(IndexError):
            self.ensemble[6]

    def test_slices_are_ensembles_with_the_same_intercept(self) -> None:
        ensemble = ensemble_of(linear=True)
        part = ensemble[1:3]
        assert isinstance(part, RuleEnsemble)
        assert part.rules == ensemble.rules[1:3]
        assert part.intercept == ensemble.intercept
        assert part.linear_terms == ensemble.linear_terms
        frame = frame_of()
        np.testing.assert_allclose(
            part.decision_function(frame), cell_scores(part, frame)[:, 0], atol=1e-12
        )

    def test_equality_hash_pickle(self) -> None:
        for ensemble in (ensemble_of(linear=True), ensemble_of(3)):
            ensemble.decision_function(frame_of())
            again = pickle.loads(pickle.dumps(ensemble))
            assert again == ensemble
            assert hash(again) == hash(ensemble)
            assert ensemble != ensemble[:2]

    def test_conditions_take_the_order_of_the_features(self) -> None:
        assert str(self.ensemble[1]) == "20 < age <= 70 AND bp == high"

    def test_short_repr(self) -> None:
        assert repr(self.ensemble) == "<RuleEnsemble of 6 rules, binary>"
        assert repr(ensemble_of(linear=True)[:1]) == (
            "<RuleEnsemble of 1 rule and 1 linear term, binary>"
        )

    def test_an_empty_ensemble_is_its_intercept(self) -> None:
        empty = self.ensemble[:0]
        assert empty
        frame = frame_of(5)
        assert empty.decision_function(frame).tolist() == [self.ensemble.intercept[0]] * 5
        assert empty.indicators(frame).shape == (5, 0)
        assert empty.explain(frame).shape == (5, 1)
        assert empty.weights.shape == (0, 1)


class TestScores:
    @pytest.mark.parametrize("n_outputs", [1, 3])
    @pytest.mark.parametrize("linear", [False, True])
    def test_decision_function_adds_what_holds(self, n_outputs: int, linear: bool) -> None:
        ensemble, frame = ensemble_of(n_outputs, linear=linear), frame_of()
        found = ensemble.decision_function(frame).reshape(len(frame), -1)
        np.testing.assert_allclose(found, cell_scores(ensemble, frame), atol=1e-12)

    def test_indicators(self) -> None:
        ensemble, frame = ensemble_of(), frame_of()
        held = ensemble.indicators(frame)
        assert held.dtype == bool
        for r, rule in enumerate(ensemble):
            assert (held[:, r] == rule.indicator(frame)).all()

    def test_blocks_of_rows_do_not_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ensemble, frame = ensemble_of(2, linear=True), frame_of(1000)
        whole = ensemble.decision_function(frame), ensemble.indicators(frame)
        monkeypatch.setattr("latticework.rules.evaluate.BLOCK_CELLS", 1)
        assert (ensemble.decision_function(frame) == whole[0]).all()
        assert (ensemble.indicators(frame) == whole[1]).all()

    def test_all_containers_give_the_same(self) -> None:
        ensemble, frame = ensemble_of(linear=True), frame_of()
        expected = ensemble.decision_function(frame)
        polars = pl.from_pandas(frame)
        arrays = frame.astype(object).to_numpy()
        for X in (polars, arrays, pa.Table.from_pandas(frame), ensemble.read(frame)):
            assert (ensemble.decision_function(X) == expected).all()

    def test_a_frame_needs_only_the_columns_in_use(self) -> None:
        ensemble, frame = ensemble_of()[:1], frame_of()
        expected = ensemble.decision_function(frame)
        assert (ensemble.decision_function(frame[["age"]]) == expected).all()
        assert (ensemble.decision_function(pa.Table.from_pandas(frame[["age"]])) == expected).all()
        with pytest.raises(ValueError, match="'age'"):
            ensemble.decision_function(frame[["bp"]])

    def test_unseen_categories_satisfy_only_exclusions(self) -> None:
        frame = frame_of(1).assign(age=[30.0], bp=["purple"], smoker=[True], grade=["low"])
        assert ensemble_of().indicators(frame).tolist() == [
            [False, False, True, False, False, True]
        ]

    def test_rules_mean_what_the_propositionalizer_means(self) -> None:
        """On new rows, with missing cells and unseen levels; alone and two at a time."""
        train, new = frame_of(300, seed=1), frame_of(300, seed=2)
        new.loc[::7, "bp"] = "unseen"
        propositions = Propositionalizer().fit(train)
        conditions = propositions.conditions_
        pairs = [(a, b) for a in range(len(conditions)) for b in range(a)]
        pairs = [(a, b) for a, b in pairs if not is_contradictory([conditions[a], conditions[b]])]
        ensemble = RuleEnsemble.from_parts(
            [[c] for c in conditions] + [[conditions[a], conditions[b]] for a, b in pairs],
            np.ones(len(conditions) + len(pairs)), 0.0, feature_names=NAMES,
            feature_kinds=propositions.kinds_, output="regression", link="identity",
        )  # fmt: skip
        for X in (train, new, pl.from_pandas(new)):
            truths = propositions.transform(X)
            both = np.column_stack([truths[:, a] & truths[:, b] for a, b in pairs])
            assert (ensemble.indicators(X) == np.hstack([truths, both])).all()

    def test_sparse_matrices_of_truths(self) -> None:
        rng = np.random.default_rng(0)
        X = (rng.random((50, 4)) < 0.4).astype(float)
        conjunctions = [
            [Condition("x0", "is true")],
            [Condition(f"x{j}", "is true") for j in (1, 3)],
        ]
        ensemble = RuleEnsemble.from_parts(
            conjunctions,
            [1.0, 2.0],
            0.5,
            feature_names=["x0", "x1", "x2", "x3"],
            feature_kinds=["numeric"] * 4,
            output="regression",
            link="identity",
        )
        expected = 0.5 + X[:, 0] + 2 * X[:, 1] * X[:, 3]
        assert (ensemble.predict(X) == expected).all()
        assert (ensemble.predict(sparse.csr_matrix(X)) == expected).all()
        assert (ensemble.predict(sparse.csc_array(X)) == expected).all()
        with pytest.raises(ValueError, match="3 features"):
            ensemble.predict(sparse.csr_array(X[:, :3]))


class TestPredictions:
    frame = frame_of()

    def test_binary(self) -> None:
        ensemble = ensemble_of()
        scores = ensemble.decision_function(self.frame)
        probabilities = ensemble.predict_proba(self.frame)
        np.testing.assert_allclose(probabilities[:, 1], expit(scores))
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert (ensemble.predict(self.frame) == np.where(scores > 0, "yes", "no")).all()

    def test_small_probabilities_are_not_zero(self) -> None:
        ensemble = RuleEnsemble(
            [], 50.0, feature_names=["x"], feature_kinds=["numeric"], output="binary",
            link="logit", classes=[0, 1],
        )  # fmt: skip
        assert ensemble.predict_proba([[1.0]])[0, 0] == pytest.approx(math.exp(-50))

    def test_multiclass(self) -> None:
        ensemble = ensemble_of(3)
        scores = ensemble.decision_function(self.frame)
        np.testing.assert_allclose(ensemble.predict_proba(self.frame), softmax(scores, axis=1))
        assert (ensemble.predict(self.frame) == scores.argmax(axis=1)).all()

    def test_one_vs_rest_is_normalised(self) -> None:
        ensemble = ensemble_of(3, link="logit")
        probabilities = expit(ensemble.decision_function(self.frame))
        np.testing.assert_allclose(
            ensemble.predict_proba(self.frame),
            probabilities / probabilities.sum(axis=1, keepdims=True),
        )
        hopeless = RuleEnsemble(
            [], [-2000.0] * 4, feature_names=["x"], feature_kinds=["numeric"],
            output="multiclass", link="logit", classes=list("abcd"),
        )  # fmt: skip
        assert hopeless.predict_proba([[1.0]]).tolist() == [[0.25] * 4]

    def test_multilabel(self) -> None:
        ensemble = ensemble_of(
            2, output="multilabel", link="logit", classes=[(0, 1), (0, 1)], outputs=["red", "blue"]
        )
        scores = ensemble.decision_function(self.frame)
        assert (ensemble.predict(self.frame) == (scores > 0)).all()
        np.testing.assert_allclose(ensemble.predict_proba(self.frame), expit(scores))

    @pytest.mark.parametrize("n_outputs", [1, 2])
    def test_regression(self, n_outputs: int) -> None:
        for link, inverse in (("identity", np.asarray), ("log", np.exp)):
            ensemble = ensemble_of(n_outputs, output="regression", link=link, classes=None)
            expected = inverse(ensemble.decision_function(self.frame))
            np.testing.assert_allclose(ensemble.predict(self.frame), expected)
            assert ensemble.predict_mean(self.frame).shape == expected.shape
            with pytest.raises(AttributeError, match="predict_mean"):
                ensemble.predict_proba(self.frame)

    def test_hinge_has_no_probabilities(self) -> None:
        for ensemble in (ensemble_of(link=None), ensemble_of(3, link=None)):
            with pytest.raises(ValueError, match="log_loss"):
                ensemble.predict_proba(self.frame)
            with pytest.raises(AttributeError, match="predict_proba"):
                ensemble.predict_mean(self.frame)
            ensemble.predict(self.frame)

    @pytest.mark.parametrize(
        "classes", [[0, 1], [-1.5, 2.5], [False, True], ["a", "bcd"], ["1", 1]]
    )
    def test_labels_keep_their_type(self, classes: list[Any]) -> None:
        ensemble = ensemble_of(seed=2, classes=np.array(classes, dtype=object))
        found = ensemble.predict(self.frame)
        assert set(found.tolist()) == set(classes)
        assert ensemble.classes == tuple(classes)


class TestExplain:
    """The columns sum to the score to the last bit, in whatever order they are added."""

    def big(self, n_outputs: int) -> tuple[RuleEnsemble, pd.DataFrame]:
        rng = np.random.default_rng(3)
        frame = pd.DataFrame(rng.normal(size=(300, 5)), columns=list("abcde"))
        frame = frame.mask(rng.random(frame.shape) < 0.1)
        conjunctions = [
            [Condition(rng.choice(list("abcde")), rng.choice(["<=", ">"]), float(rng.normal()))]
            for _ in range(90)
        ]
        weights = rng.normal(size=(90, n_outputs)) * 10.0 ** rng.integers(-9, 6, (90, n_outputs))
        terms = [LinearTerm(n, 0.1, 1.3, -2, 2, rng.normal(size=n_outputs)) for n in "abc"]
        several = {"output": "regression", "link": "identity", "linear_terms": terms}
        return RuleEnsemble.from_parts(
            conjunctions, weights, rng.normal(size=n_outputs), feature_names=list("abcde"),
            feature_kinds=["numeric"] * 5, **several,
        ), frame  # fmt: skip

    def test_in_every_order_of_summation(self) -> None:
        ensemble, frame = self.big(1)
        scores = ensemble.decision_function(frame)
        parts = ensemble.explain(frame)
        assert parts.shape == (300, 94)
        assert (parts.sum(axis=1) == scores).all()
        values = parts.to_numpy()
        rng = np.random.default_rng(0)
        for order in (np.arange(94), np.arange(94)[::-1], rng.permutation(94)):
            assert (np.add.accumulate(values[:, order], axis=1)[:, -1] == scores).all()
            assert (np.ascontiguousarray(values[:, order]).sum(axis=1) == scores).all()
        assert [math.fsum(row) for row in values] == scores.tolist()
        in_polars = ensemble.explain(pl.from_pandas(frame))
        assert (in_polars.sum_horizontal().to_numpy() == scores).all()

    def test_the_grid_costs_no_accuracy(self) -> None:
        ensemble, frame = self.big(1)
        held = ensemble.indicators(frame)
        weights = [rule.weight for rule in ensemble]
        terms = [
            (t.standardised(frame[t.feature].to_numpy()) * t.weights[0]).tolist()
            for t in ensemble.linear_terms
        ]
        sizes = np.abs(weights).sum()
        for i, score in enumerate(ensemble.decision_function(frame)):
            added = [w for w, holds in zip(weights, held[i], strict=True) if holds]
            exact = math.fsum([*added, *(term[i] for term in terms), ensemble.intercept[0]])
            assert abs(score - exact) <= 94 * 2**-52 * sizes

    def test_several_outputs(self) -> None:
        ensemble, frame = self.big(3)
        scores = ensemble.decision_function(frame)
        parts = ensemble.explain(frame)
        assert parts.columns.names == ["term", "output"]
        for t, output in enumerate(ensemble.outputs):
            assert (parts.xs(output, axis=1, level="output").sum(axis=1) == scores[:, t]).all()
        polars = ensemble.explain(pl.from_pandas(frame))
        assert polars.columns[:2] == [f"{ensemble[0]} [y0]", f"{ensemble[0]} [y1]"]

    def test_the_container_and_the_index_are_kept(self) -> None:
        ensemble, frame = ensemble_of(linear=True), frame_of(20)
        frame.index = pd.Index([f"patient {i}" for i in range(20)])
        found = ensemble.explain(frame)
        assert found.index.equals(frame.index)
        assert found.columns.tolist() == [*map(str, ensemble), "age (linear)", "intercept"]
        assert isinstance(ensemble.explain(pa.Table.from_pandas(frame)), pa.Table)
        assert isinstance(ensemble.explain(pl.from_pandas(frame)), pl.DataFrame)
        assert isinstance(ensemble.explain(frame.astype(object).to_numpy()), pd.DataFrame)

    def test_without_pandas_the_remedy_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        monkeypatch.setitem(sys.modules, "pandas", None)
        array = np.array([[60.0, "high", True, "low"]], dtype=object)
        with pytest.raises(ImportError, match="pip install pandas"):
            ensemble_of().explain(array)

    def test_names_are_distinct(self) -> None:
        twice = [Condition("intercept", "is true")]
        ensemble = RuleEnsemble.from_parts(
            [twice, twice], [1.0, 2.0], 0.0, feature_names=["intercept"],
            feature_kinds=["boolean"], output="regression", link="identity",
        )  # fmt: skip
        assert ensemble.rule_names == ("intercept", "intercept (2)")
        names = ensemble.explain(pl.DataFrame({"intercept": [True]})).columns
        assert names == ["intercept", "intercept (2)", "intercept (3)"]

    @pytest.mark.parametrize("scale", [1e-320, 1e-30, 1e30, 1e300])
    def test_any_scale(self, scale: float) -> None:
        rng = np.random.default_rng(0)
        weights = rng.normal(size=len(CONJUNCTIONS)) * scale
        ensemble = RuleEnsemble.from_parts(
            CONJUNCTIONS, weights, scale, feature_names=NAMES, feature_kinds=KINDS,
            output="regression", link="identity",
        )  # fmt: skip
        frame = frame_of()
        assert (ensemble.explain(frame).sum(axis=1) == ensemble.predict(frame)).all()
        exact = cell_scores(ensemble, frame)[:, 0]
        np.testing.assert_allclose(ensemble.predict(frame) / scale, exact / scale, atol=1e-12)


class TestDescription:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"output": "ordinal"}, "output must be one of"),
            ({"link": "softmax"}, "link of a binary ensemble"),
            ({"classes": None}, "binary ensemble needs classes"),
            ({"classes": ["a"]}, "two classes"),
            ({"classes": [(0, 1), (0, 1)]}, "needs classes"),
            ({"outputs": ["a", "b"]}, "outputs must be 1"),
            ({"feature_names": ["age"] * 4}, "distinct"),
            ({"feature_kinds": ["numeric"]}, "as many"),
            ({"feature_kinds": ["numeric", "category", "boolean", "ordered"]}, "'bp' must be one"),
            ({"feature_names": ["age", "bp", "smoker", "x"]}, "'grade'"),
            ({"linear_terms": [LinearTerm("bp", 0, 1, 0, 1, 1)]}, "numeric"),
            ({"linear_terms": [LinearTerm("age", 0, 1, 0, 1, [1, 2])]}, "2 weights"),
            ({"linear_terms": [LinearTerm("age", 0, 1, 0, 1, 1)] * 2}, "share"),
            ({"output": "regression", "link": "identity"}, "no classes"),
            ({"output": "multilabel", "classes": [0]}, "one pair of classes per label"),
            ({"output": "multilabel", "classes": [(0, 1, 2)]}, "one pair of classes per label"),
            ({"output": "multiclass", "link": "softmax"}, "one intercept per class"),
        ],
    )
    def test_parts_that_do_not_fit_are_refused(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            ensemble_of(**changes)

    @pytest.mark.parametrize(
        "changes", [{"scale": 0}, {"low": 5}, {"mean": np.nan}, {"high": np.inf}]
    )
    def test_linear_terms_are_finite(self, changes: dict[str, float]) -> None:
        numbers = {"mean": 0.0, "scale": 1.0, "low": 0.0, "high": 1.0} | changes
        with pytest.raises(ValueError, match="'age'"):
            LinearTerm("age", **numbers, weights=(1.0,))

    def test_outputs_are_named_after_the_classes(self) -> None:
        assert ensemble_of().outputs == ("yes",)
        assert ensemble_of(3).outputs == ("0", "1", "2")
        assert ensemble_of(2, classes=[1, "1"]).outputs == ("1", "1 (2)")


# ---------------------------------------------------------------------------------- statistics


class TestStatistics:
    rng = np.random.default_rng(5)
    held = rng.random((120, 6)) < 0.4
    mass = rng.integers(0, 4, 120).astype(float)

    def test_votes(self) -> None:
        weights = np.array([[1.0, 3.0], [-2.0, -1.0], [-9.0, 1.0]])
        chosen, in_favour = votes(weights, "multiclass")
        assert (chosen.tolist(), in_favour.tolist()) == ([1, 0, 1], [True, False, True])
        chosen, in_favour = votes(weights, "multilabel")
        assert (chosen.tolist(), in_favour.tolist()) == ([1, 0, 0], [True, False, False])

    def test_binary(self) -> None:
        y = self.rng.integers(0, 2, 120)
        weights = self.rng.normal(size=6)
        found = rule_statistics(self.held, y, weights, "binary", self.mass)
        for r in range(6):
            right = (y == (weights[r] > 0)).astype(float)
            covered = self.mass * self.held[:, r]
            precision = (covered * right).sum() / covered.sum()
            assert found.support[r] == pytest.approx(covered.sum() / self.mass.sum())
            assert found.count[r] == self.held[:, r].sum()
            assert found.precision is not None
            assert found.precision[r] == pytest.approx(precision)
            assert found.lift[r] == pytest.approx(precision / np.average(right, weights=self.mass))

    def test_weights_are_repetitions(self) -> None:
        repeats = self.mass.astype(int)
        y = self.rng.integers(0, 3, 120)
        weights = self.rng.normal(size=(6, 3))
        weighted = rule_statistics(self.held, y, weights, "multiclass", self.mass)
        repeated = rule_statistics(
            np.repeat(self.held, repeats, axis=0), np.repeat(y, repeats), weights, "multiclass"
        )
        for name in ("support", "precision", "lift"):
            np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name))

    def test_multiclass(self) -> None:
        y = self.rng.integers(0, 3, 120)
        weights = np.array([[0, 1, 0], [0, -1, 0], [2, 3, 9], [-1, -2, -3], [5, 0, 0], [0, 0, 1.0]])
        right = [y == 1, y != 1, y == 2, y != 2, y == 0, y == 2]
        found = rule_statistics(self.held, y, weights, "multiclass")
        assert found.precision is not None
        for r in range(6):
            assert found.precision[r] == pytest.approx(right[r][self.held[:, r]].mean())
            assert found.lift[r] == pytest.approx(found.precision[r] / right[r].mean())

    def test_unknown_labels_count_for_the_support_only(self) -> None:
        y = self.rng.integers(0, 2, (120, 2)).astype(float)
        y[self.rng.random((120, 2)) < 0.3] = np.nan
        weights = np.tile([[0.1, 2.0]], (6, 1))
        found = rule_statistics(self.held, y, weights, "multilabel")
        assert found.precision is not None
        for r in range(6):
            assert found.support[r] == pytest.approx(self.held[:, r].mean())
            assert found.precision[r] == pytest.approx(np.nanmean(y[self.held[:, r], 1]))
        codes = np.where(np.isnan(y[:, 0]), -1, y[:, 0])
        by_code = rule_statistics(self.held, codes, weights, "multiclass")
        by_nan = rule_statistics(self.held, y[:, 0], weights, "multiclass")
        np.testing.assert_array_equal(by_code.precision, by_nan.precision)

    def test_regression(self) -> None:
        y = self.rng.normal(size=120)
        found = rule_statistics(self.held, y, np.ones(6), "regression", self.mass)
        assert found.precision is None
        assert found.mean is not None
        for r in range(6):
            mean = np.average(y[self.held[:, r]], weights=self.mass[self.held[:, r]])
            assert found.mean[r] == pytest.approx(mean)
            assert found.lift[r] == pytest.approx(mean - np.average(y, weights=self.mass))

    def test_a_rule_that_covers_nothing(self) -> None:
        found = rule_statistics(np.zeros((5, 1), bool), np.ones(5), np.ones(1), "binary")
        assert found.of_rule(0)["count"] == 0
        rule = Rule([], 1.0, **found.of_rule(0))
        assert (rule.support, rule.precision, rule.lift) == (0.0, None, None)

    def test_no_rules_at_all(self) -> None:
        for weights in (np.zeros(0), np.zeros((0, 3))):
            found = rule_statistics(np.zeros((5, 0), bool), np.zeros(5), weights, "multiclass")
            assert found.support.shape == (0,)

    def test_unknown_output(self) -> None:
        with pytest.raises(ValueError, match="output must be one of"):
            rule_statistics(self.held, np.zeros(120), np.ones(6), "ranking")

    def test_reach_the_rules(self) -> None:
        y = self.rng.integers(0, 2, 200)
        frame = frame_of()
        bare = ensemble_of()
        found = rule_statistics(bare.indicators(frame), y, bare.weights, "binary")
        ensemble = ensemble_of(statistics=found)
        assert [rule.count for rule in ensemble] == found.count.tolist()
        np.testing.assert_array_equal([rule.precision for rule in ensemble], found.precision)
        table = read_table(frame)
        assert isinstance(table, Table)
        assert ensemble.importances.shape == (6,)
