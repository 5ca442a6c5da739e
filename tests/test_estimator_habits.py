"""Estimators among scikit-learn's tools; limits, interrupts and callbacks."""

from __future__ import annotations

import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.ensemble import VotingClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr
from tests.samples import mixed_frame, numeric_sample, planted_scores

import latticework as lw
from latticework.exceptions import CertificateWarning
from latticework.solvers import lattice_path

# What a fit with a limit says is looked at where it matters.
quiet = pytest.mark.filterwarnings("ignore::latticework.exceptions.CertificateWarning")


def mixed_sample(n=80, seed=0):
    frame = mixed_frame(n, seed)
    return frame, planted_scores(frame, seed)


def hard_problem(n=150, m=8):
    """Noise at a small alpha: many rules, many nodes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, m)), rng.normal(size=n)


# --- scikit-learn's tools -------------------------------------------------------------------------


def test_pickles_and_clones():
    frame, score = mixed_sample()
    for model in (
        lw.RuleClassifier(alpha=0.02).fit(frame, score > 0),
        lw.RuleRegressor(alpha=0.02, linear_terms=True).fit(frame, score),
        lw.RuleClassifierCV(n_alphas=3, cv=2).fit(frame, score > 0),
    ):
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict(frame), model.predict(frame))
        assert again.certificate_ == model.certificate_
        assert str(again.rules_) == str(model.rules_)
        assert lw.verify_certificate(again, frame, score if "Reg" in str(model) else score > 0)
        fresh = clone(model)
        assert not hasattr(fresh, "rules_")
        assert fresh.get_params() == model.get_params()


def test_grid_search_in_a_pipeline():
    frame, score = mixed_sample()
    steps = make_pipeline("passthrough", lw.RuleClassifier())
    grid = {"ruleclassifier__alpha": [0.02, 1.0], "ruleclassifier__loss": ["log_loss", "hinge"]}
    search = GridSearchCV(steps, grid, cv=3, scoring="roc_auc").fit(frame, score > 0)
    best = search.best_params_
    assert best["ruleclassifier__alpha"] == 0.02
    # The rules that made the scores reach 0.78: most rows satisfy none, and are noise.
    assert search.best_score_ > 0.6
    direct = lw.RuleClassifier(alpha=0.02, loss=best["ruleclassifier__loss"]).fit(frame, score > 0)
    assert len(direct.rules_) > 0
    assert_array_equal(search.decision_function(frame), direct.decision_function(frame))


def test_nested_parameters_of_the_conditions():
    X, score = numeric_sample()
    model = lw.RuleRegressor(alpha=0.01, conditions=lw.Propositionalizer())
    search = GridSearchCV(model, {"conditions__n_thresholds": [1, 6]}, cv=2).fit(X, score)
    assert set(search.cv_results_["param_conditions__n_thresholds"]) == {1, 6}


def test_cross_validation_helpers():
    frame, score = mixed_sample()
    assert cross_val_score(lw.RuleRegressor(alpha=0.05), frame, score, cv=3).shape == (3,)
    chances = cross_val_predict(lw.RuleClassifier(), frame, score > 0, cv=3, method="predict_proba")
    assert_allclose(chances.sum(axis=1), 1.0)
    weighted = cross_val_score(
        lw.RuleClassifier(), frame, score > 0, params={"sample_weight": np.ones(len(frame))}
    )
    assert_array_equal(weighted, cross_val_score(lw.RuleClassifier(), frame, score > 0))


def test_other_meta_estimators():
    X, score = numeric_sample()
    y = score > 0
    pair = [("rules", lw.RuleClassifier()), ("line", LogisticRegression())]
    assert VotingClassifier(pair, voting="soft").fit(X, y).score(X, y) > 0.7
    both = MultiOutputClassifier(lw.RuleClassifier()).fit(X, np.column_stack([y, ~y]))
    assert both.predict(X).shape == (len(X), 2)
    model = lw.RuleClassifier().fit(X, y)
    assert permutation_importance(model, X, y, n_repeats=2).importances_mean.shape == (3,)


def test_rules_as_features_with_names():
    frame, score = mixed_sample()
    y = score > 0
    rules = lw.RuleClassifier(alpha=0.02)
    model = make_pipeline(rules, LogisticRegression()).set_output(transform="pandas")
    model.fit(frame, y)
    names = list(model[0].rules_.rule_names)
    assert list(model[-1].feature_names_in_) == names
    assert list(model[:-1].get_feature_names_out()) == names
    held = model[0].transform(frame)
    assert isinstance(held, pd.DataFrame)
    assert held.index.equals(frame.index)
    assert {dtype.kind for dtype in held.dtypes} == {"b"}
    scores = held.to_numpy() @ model[0].coef_ + model[0].intercept_
    assert_allclose(scores, model[0].decision_function(frame))
    polars = clone(rules).set_output(transform="polars").fit(frame, y).transform(frame)
    assert polars.columns == names
    fresh = lw.RuleClassifier(alpha=0.02)  # a clone would keep the container that was set
    plain = clone(fresh).fit(frame, y).transform(frame)
    assert plain.dtype == bool
    assert_array_equal(plain, held.to_numpy())
    assert_array_equal(clone(fresh).fit_transform(frame, y), plain)


def test_names_of_rules():
    X, score = numeric_sample()
    model = lw.RuleClassifier().fit(X, score > 0)
    assert list(model.get_feature_names_out()) == list(model.rules_.rule_names)
    own = model.get_feature_names_out(["age", "height", "weight"])
    assert own[0] == model.rules_.rule_names[0].replace("x0", "age").replace("x2", "weight")
    with pytest.raises(ValueError, match="length equal to number of features"):
        model.get_feature_names_out(["age"])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = lw.RuleClassifier().fit(frame, score > 0)
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        named.get_feature_names_out(["x", "y", "z"])


def test_explanations_sum_to_the_score_exactly():
    frame, score = mixed_sample()
    model = lw.RuleClassifier(alpha=0.01).fit(frame, score > 0)
    parts = model.explain(frame)
    assert_array_equal(parts.sum(axis=1), model.decision_function(frame))
    assert list(parts.columns) == [*model.rules_.rule_names, "intercept"]
    assert parts.index.equals(frame.index)
    three = lw.RuleClassifier(alpha=0.01).fit(frame, np.digitize(score, [-0.5, 0.8]))
    parts = three.explain(frame)
    for k, label in enumerate(three.classes_):
        own = parts.xs(str(label), axis=1, level=1)
        assert_array_equal(own.sum(axis=1), three.decision_function(frame)[:, k])


def test_they_show_themselves():
    X, score = numeric_sample()
    model = lw.RuleClassifier(alpha=0.02)
    assert repr(model) == "RuleClassifier(alpha=0.02)"
    assert "RuleClassifier" in estimator_html_repr(model.fit(X, score > 0))
    assert "<table" in model.rules_._repr_html_()


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{"alpha": 1e-4}, {"C": 100.0}, {"alpha": 1e-4, "concavity": 1.0}])
def test_node_limit_keeps_a_certified_model(form):
    X, y = hard_problem()
    with pytest.warns(CertificateWarning, match=r"max_nodes=200 was reached.*lower bound") as seen:
        model = lw.RuleRegressor(**form, max_nodes=200).fit(X, y)
    assert seen[0].filename == __file__
    certificate = model.certificate_
    assert model.status_ == "node_limit"
    assert not certificate.complete
    assert 0 <= certificate.dual <= certificate.primal
    assert f"{100 * certificate.relative_gap:.3g} %" in str(seen[0].message)
    assert np.isfinite(model.predict(X)).all()
    if "concavity" not in form:
        assert lw.verify_certificate(model, X, y)


def test_time_limit_is_kept():
    X, y = hard_problem(400, 20)
    lw.RuleRegressor(alpha=0.1).fit(X[:50], y[:50])  # compiled before the clock starts
    for limit in (0.3, 0.6):
        started = time.perf_counter()
        with pytest.warns(CertificateWarning, match=rf"time_limit={limit} s was reached"):
            model = lw.RuleRegressor(alpha=1e-4, n_thresholds=20, time_limit=limit).fit(X, y)
        assert time.perf_counter() - started < 1.05 * limit + 0.1
        assert model.status_ == "time_limit"
        assert 0 <= model.lower_bound_ <= model.objective_


def test_no_time_at_all_gives_the_constant_model():
    X, score = numeric_sample()
    with pytest.warns(CertificateWarning, match="100 % of the optimum"):
        model = lw.RuleRegressor(time_limit=1e-9).fit(X, score)
    assert len(model.rules_) == 0
    assert_allclose(model.predict(X), score.mean())


def test_limits_that_do_not_matter_change_nothing():
    X, score = numeric_sample()
    plain = lw.RuleRegressor(alpha=0.01).fit(X, score)
    wide = lw.RuleRegressor(alpha=0.01, max_nodes=10**9, time_limit=1e6).fit(X, score)
    assert wide.certificate_ == plain.certificate_
    assert_array_equal(wide.coef_, plain.coef_)


def interrupt_after(monkeypatch, n_searches):
    """As if Ctrl-C came in the middle of a later search."""
    search, calls = lattice_path.find_conjunctions, []

    def interrupted(*args, **kwargs):
        calls.append(None)
        if len(calls) > n_searches:
            raise KeyboardInterrupt
        return search(*args, **kwargs)

    monkeypatch.setattr(lattice_path, "find_conjunctions", interrupted)


@pytest.mark.parametrize("n_searches", [0, 1, 2, 4])
def test_an_interrupt_keeps_the_model_with_its_gap(monkeypatch, n_searches):
    X, y = hard_problem()
    with monkeypatch.context() as patch:
        interrupt_after(patch, n_searches)
        with pytest.warns(CertificateWarning, match="the fit was interrupted"):
            model = lw.RuleRegressor(alpha=1e-3).fit(X, y)
    assert model.status_ == "interrupted"
    assert model.alpha_ == 1e-3
    optimum = lw.RuleRegressor(alpha=1e-3).fit(X, y)
    assert model.lower_bound_ <= optimum.objective_ <= model.objective_ * (1 + 1e-3)
    assert lw.verify_certificate(model, X, y)


def test_an_interrupted_path_is_a_shorter_path(monkeypatch):
    X, y = hard_problem()
    interrupt_after(monkeypatch, 4)
    with pytest.warns(CertificateWarning, match=r"path stopped after \d of 6 alphas"):
        path = lw.rule_path(X, y, n_alphas=6)
    assert 1 <= len(path) < 6
    assert [model.status_ for model in path][-1] == "interrupted"
    assert all(model.status_ == "optimal" for model in path[:-1])


# --- callbacks ------------------------------------------------------------------------------------


class Recorder:
    """Notes what it is told; asks to stop after some steps."""

    def __init__(self, stop_after=None):
        self.stop_after, self.events = stop_after, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.events.append(context.task_name)
        if fitted_estimator is not None:
            assert len(fitted_estimator.predict(X)) == len(y)
        return self.stop_after is not None and len(self.events) > self.stop_after

    def teardown(self, estimator, context):
        self.events.append("teardown")


def test_callbacks_see_every_step():
    X, score = numeric_sample()
    recorder = Recorder()
    lw.RuleRegressor(alpha=0.001).set_callbacks(recorder).fit(X, score)
    assert recorder.events[0] == "setup"
    assert recorder.events[-2:] == ["fit", "teardown"]
    assert set(recorder.events[1:-2]) == {"alpha"}
    recorder = Recorder()
    lw.RuleClassifierCV(n_alphas=4, cv=3, length_penalty=1.0).set_callbacks(recorder).fit(
        X, score > 0
    )
    assert recorder.events.count("alpha") == 4
    assert recorder.events.count("fold") == 3


def test_a_callback_can_stop_the_fit():
    X, score = numeric_sample()
    model = lw.RuleRegressor(alpha=0.001).set_callbacks(Recorder(stop_after=1))
    with pytest.warns(CertificateWarning, match="interrupted"):
        model.fit(X, score)
    assert model.status_ == "interrupted"
    assert model.alpha_ == 0.001
    assert lw.verify_certificate(model, X, score)


def test_the_callbacks_of_scikit_learn(capsys):
    X, score = numeric_sample()
    y = score > 0
    monitor = ScoringMonitor(scoring="neg_log_loss")
    model = lw.RuleClassifier(alpha=0.003).set_callbacks(monitor, ProgressBar()).fit(X, y)
    log = monitor.get_logs().data_as_pandas
    steps = log[log["task_name"] == "alpha"]["neg_log_loss"].to_numpy()
    assert np.all(np.diff(steps) > 0)
    final = log[log["task_name"] == "fit"]["neg_log_loss"].item()
    assert_allclose(final, -log_loss(y, model.predict_proba(X)))
    assert "RuleClassifier - fit" in capsys.readouterr().out


@quiet
def test_callbacks_are_released_after_errors():
    recorder = Recorder()
    model = lw.RuleRegressor(alpha=0.01).set_callbacks(recorder)
    with pytest.raises(ValueError, match="infinity"):
        model.fit([[np.inf], [1.0]], [0.0, 1.0])
    assert "setup" not in recorder.events or recorder.events[-1] == "teardown"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit([[0.0], [1.0]], [0.0, 1.0])
    assert recorder.events[-1] == "teardown"


def test_a_callback_that_stops_among_the_alphas_spares_the_folds():
    X, score = numeric_sample()
    recorder = Recorder(stop_after=3)
    model = lw.RuleClassifierCV(n_alphas=6, cv=3).set_callbacks(recorder)
    with pytest.warns(CertificateWarning, match="cut short .*from no scores"):
        model.fit(X, score > 0)
    assert recorder.events.count("alpha") == 3
    assert "fold" not in recorder.events
    assert model.status_ == "interrupted"
