"""scikit-learn's own checks of estimators."""

from __future__ import annotations

from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import latticework as lw

# The data of the checks is noise: with many folds and alphas, minutes would go into fitting it.
QUICK = {"n_alphas": 3, "cv": 2, "relax": 0.0, "max_length": 2, "n_thresholds": 3}
ESTIMATORS = [
    lw.RuleClassifier(),
    lw.RuleRegressor(),
    lw.RuleClassifierCV(**QUICK),
    lw.RuleRegressorCV(**QUICK),
    lw.Propositionalizer(),
]


def exceptions(estimator):
    """Checks that must fail, and why."""
    if not is_classifier(estimator):
        return {}
    return {
        "check_classifier_multioutput": (
            "It wants classes_ of several labels to be one vector. A list of pairs, as "
            "scikit-learn's forests have, is what its scorers tell several labels from classes "
            "by; test_multilabel_scores_and_labels checks the rest."
        )
    }


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=exceptions, xfail_strict=True)
def test_sklearn_check(estimator, check, monkeypatch):
    # Without this, one of the checks is skipped.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)
