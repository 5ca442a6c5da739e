"""Settings chosen by cross-validation: what is tried, how it is scored, and what is kept."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss, make_scorer, mean_squared_error, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from tests.samples import (
    LOSSES_OF_CLASSES,
    LOSSES_OF_NUMBERS,
    mixed_frame,
    numeric_sample,
    planted_scores,
    target_for,
)

import latticework as lw
from latticework.estimators.scoring import area_under_curve
from latticework.exceptions import CertificateWarning
from latticework.solvers import lattice_path

QUICK = {"n_alphas": 4, "cv": 3, "relax": (0.0, 0.5), "length_penalty": 1.0}
N = 60
X, SCORE = numeric_sample(N)
Y = np.where(SCORE > 0, "yes", "no")


def classifier(**settings):
    return lw.RuleClassifierCV(**{**QUICK, **settings})


def regressor(**settings):
    return lw.RuleRegressorCV(**{**QUICK, **settings})


def splits_of(model):
    """Scores (candidates, folds)."""
    keys = [f"split{k}_test_score" for k in range(model.n_splits_)]
    return np.column_stack([model.cv_results_[key] for key in keys])


def same_bits(one, other):
    assert str(one.rules_) == str(other.rules_)
    assert_array_equal(one.coef_, other.coef_)
    assert one.certificate_ == other.certificate_
    for key, values in one.cv_results_.items():
        assert_array_equal(values, other.cv_results_[key])


# --- what is tried --------------------------------------------------------------------------------


def test_results_have_an_entry_for_every_combination():
    lists = {"length_penalty": [0.5, 2.0], "concavity": [0.0, 1.0], "relax": [0.0, 0.5, 1.0]}
    model = regressor(**lists).fit(X, SCORE)
    results = pd.DataFrame(model.cv_results_)
    assert len(results) == 2 * 2 * 4 * 3
    assert list(results.columns) == [
        "length_penalty", "concavity", "alpha", "relax", "n_rules", "relative_gap",
        "split0_test_score", "split1_test_score", "split2_test_score",
        "mean_test_score", "std_test_score", "rank_test_score",
    ]  # fmt: skip
    for _, family in results.groupby(["length_penalty", "concavity"]):
        alphas = family["alpha"].to_numpy().reshape(4, 3)
        assert np.all(alphas == alphas[:, :1])
        assert_allclose(alphas[:, 0] / alphas[0, 0], 0.02 ** (np.arange(4) / 3))
        assert family["relax"].tolist() == [0.0, 0.5, 1.0] * 4
        assert (family["n_rules"].iloc[:3] == 0).all()  # the first alpha uses no rule
    assert (results["relative_gap"] <= 1e-3).all()
    scores = splits_of(model)
    assert_allclose(results["mean_test_score"], scores.mean(axis=1))
    assert_allclose(results["std_test_score"], scores.std(axis=1, ddof=1))
    assert sorted(results["rank_test_score"]) == list(range(1, 49))
    best = results.iloc[model.best_index_]
    assert best["mean_test_score"] == results["mean_test_score"].max() == model.best_score_
    chosen = (model.length_penalty_, model.concavity_, model.alpha_, model.relax_)
    assert chosen == tuple(best[["length_penalty", "concavity", "alpha", "relax"]])
    assert len(model.rules_) == best["n_rules"]


@pytest.mark.parametrize("loss", [*LOSSES_OF_CLASSES, *LOSSES_OF_NUMBERS])
def test_the_model_is_that_of_its_settings_on_all_rows(loss):
    frame = mixed_frame()
    y = target_for(loss, planted_scores(frame))
    make = classifier if loss in LOSSES_OF_CLASSES else regressor
    settings = {"cv": 2, "n_alphas": 3, "relax": [0.0, 0.5], "length_penalty": [0.5, 1.0]}
    model = make(loss=loss, **settings).fit(frame, y)
    plain = model._plain_class(
        model.alpha_, loss=loss, relax=model.relax_, length_penalty=model.length_penalty_
    ).fit(frame, y)
    assert_allclose(model.objective_, plain.objective_, rtol=2e-3)
    assert model.status_ == "optimal"
    assert model.certificate_.complete
    assert model.score(frame, y) == pytest.approx(plain.score(frame, y), abs=0.05)


def test_alphas_are_tried_from_large_to_small():
    model = regressor(alphas=[0.01, 0.3, 0.05], relax=0.0).fit(X, SCORE)
    assert_array_equal(model.cv_results_["alpha"], [0.3, 0.05, 0.01])
    for one in (0.05, [0.05]):
        given = {"alpha": one} if one == 0.05 else {"alphas": one}
        single = regressor(relax=[0.0, 1.0], **given).fit(X, SCORE)
        assert_array_equal(single.cv_results_["alpha"], [0.05, 0.05])
        assert single.alpha_ == 0.05


def test_a_fixed_C_leaves_the_rest_to_choose():
    model = classifier(C=0.5, relax=[0.0, 1.0], length_penalty=[0.5, 1.0]).fit(X, Y)
    assert len(model.cv_results_["alpha"]) == 4
    plain = lw.RuleClassifier(C=0.5, length_penalty=model.length_penalty_).fit(X, Y)
    assert_allclose(model.objective_, plain.objective_, rtol=2e-3)
    assert "C * sum of losses" in model.certificate_.method


def test_a_path_ends_soon_after_max_rules():
    model = regressor(n_alphas=20, max_rules=2, relax=0.0).fit(X, SCORE)
    assert len(model.rules_) <= 2
    tried = model.cv_results_["n_rules"]
    assert len(tried) < 20
    assert max(tried[:-1]) <= 3
    assert len(regressor(max_rules=0).fit(X, SCORE).rules_) == 0
    with pytest.raises(
        ValueError, match=r"at most max_rules=1 rules: the smallest has .* alpha=0.003"
    ):
        regressor(alphas=[0.003], max_rules=1).fit(X, SCORE)


# --- what is kept ---------------------------------------------------------------------------------


def test_one_standard_error_takes_the_fewest_rules_of_those_nearly_best():
    best, fewest = (
        regressor(n_alphas=10, selection=selection).fit(X, SCORE)
        for selection in ("best", "one-standard-error")
    )
    results = best.cv_results_
    error = results["std_test_score"][best.best_index_] / np.sqrt(3)
    near = results["mean_test_score"] >= best.best_score_ - error
    assert len(fewest.rules_) == results["n_rules"][near].min() < len(best.rules_)
    assert best.best_score_ - error <= fewest.best_score_ <= best.best_score_


def test_among_equal_scores_the_fewest_rules_win():
    model = classifier(scoring=lambda estimator, X, y: 1.0).fit(X, Y)
    assert len(model.rules_) == 0
    assert model.best_score_ == 1.0


# --- folds ----------------------------------------------------------------------------------------

FOLDS = list(KFold(3, shuffle=True, random_state=5).split(X))
MASKS = [tuple(np.isin(np.arange(N), rows) for rows in pair) for pair in FOLDS]


@pytest.mark.parametrize(
    "cv",
    [FOLDS, iter(FOLDS), tuple(FOLDS), MASKS, KFold(3, shuffle=True, random_state=5),
     [(list(train), list(test - N)) for train, test in FOLDS]],
    ids=["list", "iterator", "tuple", "masks", "splitter", "negative"],
)  # fmt: skip
def test_folds_can_be_given_in_many_ways(cv):
    model = regressor(cv=cv).fit(X, SCORE)
    assert model.n_splits_ == 3
    same_bits(model, regressor(cv=FOLDS).fit(X, SCORE))


def test_default_folds_are_five_drawn_again_while_rows_are_few():
    assert classifier(cv=None, relax=0.0, n_alphas=2).fit(X, Y).n_splits_ == 25
    assert classifier(cv=4).fit(X, Y).n_splits_ == 4
    assert regressor(cv=ShuffleSplit(2, random_state=0)).fit(X, SCORE).n_splits_ == 2
    assert regressor(cv=StratifiedKFold(2), n_alphas=2).fit(X, np.arange(N) % 2).n_splits_ == 2
    few = regressor(cv=LeaveOneOut(), n_alphas=2, relax=0.0).fit(X[:8], SCORE[:8])
    assert few.n_splits_ == 8
    assert regressor(cv=None, n_alphas=2, relax=0.0).fit(X[:3], SCORE[:3]).n_splits_ == 15


def test_folds_are_the_same_every_time_unless_the_seed_changes():
    first = classifier().fit(X, Y)
    same_bits(first, classifier().fit(X, Y))
    same_bits(first, classifier(random_state=0).fit(X, Y))
    other = classifier(random_state=1).fit(X, Y)
    assert not np.array_equal(splits_of(first), splits_of(other))
    assert np.array_equal(first.cv_results_["n_rules"], other.cv_results_["n_rules"])


@pytest.mark.parametrize("settings", [{}, {"conditions": "as-is"}, {"linear_terms": True}], ids=str)
def test_scores_of_folds_are_those_of_models_learnt_without_them(settings):
    """Two routes: the fold's models are solved to a gap of 1 %, these to 0.1 %."""
    data = (X > 0).astype(int) if "conditions" in settings else X
    model = regressor(alphas=[0.1, 0.02], relax=[0.0, 1.0], cv=FOLDS, **settings).fit(data, SCORE)
    found = splits_of(model)
    for k, (train, test) in enumerate(FOLDS):
        for a, (alpha, relax) in enumerate([(0.1, 0.0), (0.1, 1.0), (0.02, 0.0), (0.02, 1.0)]):
            plain = lw.RuleRegressor(alpha, relax=relax, **settings)
            predicted = plain.fit(data[train], SCORE[train]).predict(data[test])
            assert_allclose(
                found[a, k], -0.5 * mean_squared_error(SCORE[test], predicted), rtol=0.1
            )


# --- scores ---------------------------------------------------------------------------------------


def own_auc(estimator, X, y):
    return roc_auc_score(y == "yes", estimator.decision_function(X))


def own_log_loss(estimator, X, y):
    return -log_loss(y, estimator.predict_proba(X), labels=estimator.classes_)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (None, "roc_auc"),
        ("roc_auc", own_auc),
        ("accuracy", make_scorer(accuracy_score)),
    ],
)
def test_scorers(first, second):
    one, other = (classifier(scoring=scoring).fit(X, Y) for scoring in (first, second))
    assert_allclose(splits_of(one), splits_of(other), rtol=1e-12)
    assert_array_equal(one.coef_, other.coef_)


def test_scorers_of_probabilities():
    model = classifier(scoring="neg_log_loss", relax=0.0).fit(X, Y)
    own = classifier(scoring=own_log_loss, relax=0.0).fit(X, Y)
    assert_allclose(splits_of(model), splits_of(own), rtol=1e-12)


def test_scorers_of_regressors_and_of_classes():
    model = regressor(scoring="neg_mean_squared_error").fit(X, SCORE)
    half = regressor().fit(X, SCORE)
    assert_allclose(splits_of(model), 2 * splits_of(half))
    counts = target_for("poisson", SCORE)
    settings = {"loss": "poisson", "relax": 0.0}
    counted = regressor(**settings, scoring="neg_mean_poisson_deviance").fit(X, counts)
    assert_allclose(splits_of(counted), 2 * splits_of(regressor(**settings).fit(X, counts)))
    three = np.digitize(SCORE, [-0.5, 0.8])
    for multiclass in ("softmax", "one-vs-rest"):
        areas = classifier(scoring="roc_auc_ovr", multiclass=multiclass, alphas=[0.05, 0.02])
        areas.fit(X, three)
        assert areas.best_score_ > 0.7
        assert set(areas.predict(X)) <= {0, 1, 2}


def test_scores_count_the_weights_of_rows():
    """Rows of weight zero are neither learnt from nor scored; other weights are in the score."""
    weight = (np.arange(N) % 4 > 0) * 1.0
    kept = np.flatnonzero(weight)
    place = np.cumsum(weight).astype(int) - 1
    inner = [tuple(place[np.intersect1d(rows, kept)] for rows in pair) for pair in FOLDS]
    for scoring in (None, "neg_mean_absolute_error"):
        weighted = regressor(cv=FOLDS, scoring=scoring).fit(X, SCORE, sample_weight=weight)
        removed = regressor(cv=inner, scoring=scoring).fit(X[kept], SCORE[kept])
        same_bits(weighted, removed)
    times = np.random.default_rng(0).integers(1, 4, N)
    copies = np.repeat(np.arange(N), times)
    repeated = [tuple(np.flatnonzero(np.isin(copies, rows)) for rows in pair) for pair in FOLDS]
    for scoring in (None, "r2"):
        weighted = regressor(cv=FOLDS, scoring=scoring).fit(X, SCORE, sample_weight=times)
        doubled = regressor(cv=repeated, scoring=scoring).fit(X[copies], SCORE[copies])
        assert_allclose(splits_of(weighted), splits_of(doubled), rtol=1e-9)
        assert_array_equal(weighted.coef_, doubled.coef_)


def rates_in_words(estimator, X, y):
    return "good"


def rates_nothing(estimator, X, y):
    return np.nan


SCORERS_THAT_FAIL = [
    ("best", {}, "'scoring' parameter"),
    (["accuracy"], {}, "scoring must be one scorer"),
    (rates_in_words, {}, "cannot rate predictions of binary targets"),
    (rates_nothing, {}, "No model has a score in any fold"),
    ("neg_log_loss", {"loss": "hinge"}, r"loss='hinge' \(.*predict_proba\): give another"),
]


@pytest.mark.parametrize(("scoring", "settings", "message"), SCORERS_THAT_FAIL)
def test_scorers_that_cannot_work(scoring, settings, message):
    with pytest.raises(ValueError, match=message):
        classifier(scoring=scoring, **settings).fit(X, Y)


def test_scorers_that_know_no_weights_or_no_unknown_labels():
    with pytest.raises(ValueError, match=r"'neg_max_error' cannot .* with sample_weight"):
        regressor(scoring="neg_max_error").fit(X, SCORE, sample_weight=np.arange(N) + 1.0)
    both = np.column_stack([SCORE, SCORE])
    both[0, 1] = np.nan
    with pytest.raises(ValueError, match="'r2' cannot leave out unknown labels: use scoring=None"):
        regressor(scoring="r2").fit(X, both)


# --- labels of all kinds --------------------------------------------------------------------------


def test_small_classes_are_learnt_from_in_every_fold():
    frame, labels = X[:45], np.array(["a"] * 30 + ["b"] * 14 + ["rare"])
    for cv in (None, 3):
        model = classifier(cv=cv, relax=0.0, alphas=[0.1, 0.05]).fit(frame, labels)
        assert_array_equal(model.classes_, ["a", "b", "rare"])
        assert np.isfinite(model.best_score_)
    pairs = classifier(cv=None, relax=0.0, alphas=[0.05]).fit(X, np.arange(N) < 2)
    assert np.isfinite(pairs.best_score_)
    with pytest.raises(ValueError, match=r"No model has a score.*rarest class.*without CV"):
        classifier(cv=None, alphas=[0.05]).fit(X, np.arange(N) < 1)
    with pytest.raises(ValueError, match=r"alone in their class are not counted.*without CV"):
        classifier().fit(X[:4], ["a", "b", "c", "d"])


def test_several_labels_some_unknown():
    labels = np.column_stack([SCORE > 0.2, X[:, 1] > 0]).astype(float)
    labels[::7, 0] = np.nan
    for loss in LOSSES_OF_CLASSES:
        model = classifier(loss=loss, cv=2, alphas=[0.1, 0.03]).fit(X, labels)
        assert model.predict(X).shape == (N, 2)
        assert len(model.classes_) == 2
        assert model.best_score_ > 0.6
    with pytest.raises(ValueError, match="fold 0 of cv learns from one class only of label 1"):
        classifier(cv=[(np.arange(30), np.arange(30, N))]).fit(
            X, np.column_stack([Y == "yes", np.arange(N) >= 30]).astype(int)
        )


def test_tasks_and_several_targets():
    tasks = np.arange(N) % 3
    model = classifier().fit(X, Y, tasks=tasks)
    assert model.predict(X).shape == (N, 3)
    assert model.coef_.shape == (len(model.rules_), 3)
    both = np.column_stack([SCORE, X[:, 0] + SCORE])
    both[::5, 1] = np.nan
    model = regressor(task_coupling=[[1, 0.5], [0.5, 1]]).fit(X, both)
    assert model.predict(X).shape == (N, 2)
    assert model.status_ == "optimal"


BAD_SETTINGS = [
    ({"cv": 1}, "'cv'"),
    ({"cv": 1000}, "n_samples=60 is too few for 1000 folds"),
    ({"cv": []}, "no folds"),
    ({"cv": [(1, 2, 3)]}, r"cv gives no pairs \(rows to learn from, rows to score\)"),
    ({"cv": [(np.arange(50), np.arange(50, 90))]}, "fold 0 of cv must hold positions of the 60"),
    ({"cv": [(np.arange(50.0), np.arange(50, 60))]}, "fold 0 of cv must hold positions"),
    ({"cv": [(np.arange(50), [])]}, "fold 0 of cv has no rows to score"),
    ({"cv": [(np.flatnonzero(Y == "no"), [0])]}, "fold 0 of cv learns from one class only"),
    ({"max_rules": -1}, "'max_rules'"),
    ({"selection": "most"}, "'selection'"),
    ({"alphas": []}, "alphas must be a list"),
    ({"alphas": [0.0]}, "alphas must be a list of positive"),
    ({"alphas": [[0.1, 0.2]]}, "alphas must be a list"),
    ({"alphas": [0.1], "C": 1}, "alphas leaves no room for alpha or C"),
    ({"alpha": 0.1, "C": 1}, "two forms of one parameter"),
    ({"n_alphas": 0}, "'n_alphas'"),
    ({"n_alphas": True}, "n_alphas=True must not be a boolean"),
    ({"relax": []}, "relax must be a number or a list of numbers, got an empty list"),
    ({"relax": [0, 2]}, "'relax'"),
    ({"relax": ["a"]}, "relax must be a number or a list"),
    ({"concavity": [[0, 1]]}, "concavity must be a number or a list"),
    ({"length_penalty": {1, 2}}, "length_penalty must be a number or a list"),
    ({"rho": 1.5}, "rho=1.5 is not available"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS, ids=str)
def test_settings_that_are_refused(settings, message):
    with pytest.raises((ValueError, NotImplementedError), match=message):
        classifier(**settings).fit(X, Y)


# --- threads, limits, interrupts ------------------------------------------------------------------


@pytest.mark.parametrize("make", [classifier, regressor])
def test_any_n_jobs_gives_the_same_bits(make):
    target = Y if make is classifier else SCORE
    settings = {"alphas": [0.1, 0.03], "relax": [0.0, 1.0], "length_penalty": [0.5, 1.0]}
    first = make(**settings, n_jobs=1).fit(X, target)
    same_bits(first, make(**settings, n_jobs=2).fit(X, target))
    same_bits(first, make(**settings).fit(X, target))


def hard_sample():
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 12)), rng.normal(size=200)


def test_time_limit():
    hard, y = hard_sample()
    for limit in (1e-9, 0.5):
        started = time.perf_counter()
        with pytest.warns(CertificateWarning, match="cut short .status 'time_limit'") as seen:
            model = lw.RuleRegressorCV(time_limit=limit, n_thresholds=20).fit(hard, y)
        assert time.perf_counter() - started < 1.05 * limit + 0.5
        assert seen[0].filename == __file__
        assert model.status_ == "time_limit"
        assert 0 <= model.lower_bound_ <= model.objective_ < np.inf
        assert np.isfinite([model.alpha_, *model.predict(hard)]).all()
        assert lw.verify_certificate(model, hard, y)


def test_node_limit():
    with pytest.warns(CertificateWarning, match="status 'node_limit'.*settings not scored"):
        model = regressor(max_nodes=100, relax=0.0).fit(X, SCORE)
    assert model.status_ == "node_limit"
    unlimited = regressor(max_nodes=10**8, relax=0.0).fit(X, SCORE)
    same_bits(unlimited, regressor(relax=0.0).fit(X, SCORE))


def interrupt_after(monkeypatch, n_searches):
    search, calls = lattice_path.find_conjunctions, []

    def interrupted(*args, **kwargs):
        calls.append(None)
        if len(calls) == n_searches:
            raise KeyboardInterrupt
        return search(*args, **kwargs)

    monkeypatch.setattr(lattice_path, "find_conjunctions", interrupted)
    return calls


def test_an_interrupt_of_the_models_keeps_those_solved(monkeypatch):
    calls = interrupt_after(monkeypatch, 8)
    with pytest.warns(CertificateWarning, match=r"'interrupted'.*no scores"):
        model = regressor(n_alphas=6, relax=0.0).fit(X, SCORE)
    assert len(calls) == 8
    assert model.status_ == "interrupted"
    solved = model.cv_results_["alpha"]
    assert len(solved) < 6
    assert model.alpha_ == solved[-2]  # the last one that has its certificate
    assert model.certificate_.relative_gap <= 1e-3
    assert np.isnan(model.best_score_)
    assert lw.verify_certificate(model, X, SCORE)


def test_an_interrupt_of_the_folds_uses_those_scored(monkeypatch):
    with monkeypatch.context() as patch:
        calls = interrupt_after(patch, 10**6)
        regressor(relax=0.0, cv=2).fit(X, SCORE)
    interrupt_after(monkeypatch, len(calls))
    with pytest.warns(CertificateWarning, match="'interrupted'.*scores on 1 of 2 folds"):
        model = regressor(relax=0.0, cv=2).fit(X, SCORE)
    scores = splits_of(model)
    assert np.isfinite(scores[:, 0]).all()
    assert np.isnan(scores[-1, 1])
    assert_array_equal(model.cv_results_["mean_test_score"], scores[:, 0])
    assert model.best_index_ == scores[:, 0].argmax()


# --- among scikit-learn's tools -------------------------------------------------------------------


def test_inside_other_cross_validation():
    frame = mixed_frame()
    y = planted_scores(frame) > 0
    model = lw.RuleClassifierCV(n_alphas=3, cv=2, max_rules=5)
    outer = cross_validate(model, frame, y, cv=2, return_estimator=True, scoring="roc_auc")
    assert all(len(one.rules_) <= 5 for one in outer["estimator"])
    search = GridSearchCV(model, {"selection": ["best", "one-standard-error"]}, cv=2)
    assert search.fit(frame, y).best_estimator_.n_splits_ == 2
    assert clone(search.best_estimator_).get_params()["max_rules"] == 5


def test_weights_and_tasks_are_routed():
    weight, tasks = np.arange(N) % 3 + 1.0, np.arange(N) % 2
    with sklearn.config_context(enable_metadata_routing=True):
        model = regressor(scoring="neg_mean_squared_error", n_alphas=3)
        model.set_fit_request(sample_weight=True, tasks=True)
        pipeline = make_pipeline("passthrough", model)
        routed = pipeline.fit(X, SCORE, sample_weight=weight)
        by_task = clone(pipeline).set_params(ruleregressorcv__scoring=None)
        by_task.fit(X, SCORE, sample_weight=weight, tasks=tasks)
        search = GridSearchCV(
            lw.RuleRegressor().set_fit_request(sample_weight=True).set_score_request(
                sample_weight=True
            ), {"alpha": [0.1, 0.01]}, cv=2,
        )  # fmt: skip
        search.fit(X, SCORE, sample_weight=weight)
    direct = regressor(scoring="neg_mean_squared_error", n_alphas=3)
    same_bits(routed[-1], direct.fit(X, SCORE, sample_weight=weight))
    assert by_task.predict(X).shape == (N, 2)
    alpha = search.best_params_["alpha"]
    plain = lw.RuleRegressor(alpha).fit(X, SCORE, sample_weight=weight)
    assert_array_equal(search.predict(X), plain.predict(X))


def test_nothing_is_printed_or_warned_about(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(relax=0.0).fit(X, Y)
        classifier(n_jobs=2, alphas=[0.05]).fit(X, np.digitize(SCORE, [-0.5, 0.8]))
    assert capsys.readouterr().out == ""
    classifier(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4


def test_area_under_curve_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        positive = rng.random(30) < 0.3
        score, weight = np.round(rng.normal(size=30), 1), rng.integers(0, 4, 30).astype(float)
        if len(np.unique(positive[weight > 0])) == 2:
            wanted = roc_auc_score(positive, score, sample_weight=weight)
            assert_allclose(area_under_curve(positive, score, weight), wanted, rtol=1e-12)
    assert np.isnan(area_under_curve(np.ones(3, bool), np.arange(3.0), np.ones(3)))
