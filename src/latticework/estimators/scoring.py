"""Scoring predictions that are at hand already, as scikit-learn's scorers want them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if

from latticework.estimators.assembly import link_of
from latticework.rules.answers import labels_of, probabilities_of
from latticework.rules.description import label_array
from latticework.rules.scores import inverse_link
from latticework.rules.statistics import BINARY, MULTICLASS, MULTILABEL, REGRESSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from latticework.estimators.assembly import Sample
    from latticework.estimators.targets import Targets
    from latticework.losses.base import Loss

    # Scores (k, T) and the rows (k,) that they belong to -> a number, larger is better.
    Scorer = Callable[[NDArray, NDArray], float]


def make_scorer(scoring: Any, loss: Loss, sample: Sample) -> Scorer:
    """How predictions are rated: larger is better.

    Parameters
    ----------
    scoring : str, callable or None
        A scorer of scikit-learn; None: the area under the ROC curve, the mean over classes or
        labels, or for regression minus the mean loss.
    loss : Loss
    sample : Sample
        All rows.

    Returns
    -------
    callable
        (scores, rows) -> float, for some of the rows.
    """
    targets, weight = sample.targets, sample.weight
    if scoring is None:
        if targets.output == REGRESSION:
            return lambda scores, rows: _minus_loss(loss, scores, targets.take(rows), weight[rows])
        return lambda scores, rows: _area_under_curves(scores, targets.take(rows), weight[rows])
    link = link_of(loss, targets.output)
    kind: type[_Answers] = _RegressionAnswers if targets.output == REGRESSION else _ClassAnswers
    if not (isinstance(scoring, str) or callable(scoring)):
        raise ValueError(
            f"scoring must be one scorer, its name or a callable, or None; got {scoring!r}."
        )
    scorer = check_scoring(kind(np.empty((0, 1)), sample, link), scoring=scoring)
    if not targets.known.all():
        raise ValueError(
            f"scoring={scoring!r} cannot leave out unknown labels: use scoring=None, which does."
        )
    y = _labels(targets)
    weighted = bool(np.any(sample.weight != 1.0)) and isinstance(scoring, str)

    def rate(scores: NDArray, rows: NDArray) -> float:
        extra = {"sample_weight": sample.weight[rows]} if weighted else {}
        answers = kind(scores, sample, link)
        try:
            return float(scorer(answers, rows[:, None], y[rows], **extra))
        except (AttributeError, TypeError, ValueError) as error:
            reason = str(error).rstrip(".")
            with_weights = " with sample_weight" if weighted else ""
            raise ValueError(
                f"scoring={scoring!r} cannot rate predictions of {targets.output} targets by "
                f"loss={loss.name!r}{with_weights} ({reason}): give another scoring, or None."
            ) from error

    return rate


def _labels(targets: Targets) -> NDArray:
    """Labels or targets, all known, as predictions look: (n,) or (n, T)."""
    if targets.output in (BINARY, MULTICLASS):
        return label_array(targets.classes or ())[targets.plain.astype(np.intp)]
    if targets.output == MULTILABEL:
        return targets.plain.astype(np.intp)
    return targets.plain[:, 0] if targets.plain.shape[1] == 1 else targets.plain


def _minus_loss(loss: Loss, scores: NDArray, targets: Targets, weight: NDArray) -> float:
    """Minus the weighted mean loss over the known targets."""
    values = loss.value(targets.values, scores)
    weight = np.where(targets.known, weight[:, None], 0.0)
    return float(-np.sum(weight * values) / np.sum(weight))


def _area_under_curves(scores: NDArray, targets: Targets, weight: NDArray) -> float:
    """Mean area under the ROC curve over the columns in which both classes are known."""
    positive = targets.values > 0
    if targets.output == MULTICLASS and targets.joint:
        # Softmax scores mean something only against each other.
        scores = np.log(np.maximum(inverse_link(scores, "softmax", MULTICLASS), 1e-300))
    areas = [
        area_under_curve(positive[known, t], scores[known, t], weight[known])
        for t, known in enumerate(targets.known.T)
    ]
    areas = [area for area in areas if not np.isnan(area)]
    return float(np.mean(areas)) if areas else float("nan")


def area_under_curve(positive: NDArray, score: NDArray, weight: NDArray) -> float:
    """Area under the ROC curve; scikit-learn's, without its hundreds of checks per call.

    The share of pairs of a positive and a negative row, by weight, that the score puts in order;
    ties count half.  NaN where there is only one class.
    """
    _, place = np.unique(score, return_inverse=True)
    wins = np.bincount(place, np.where(positive, weight, 0.0))
    losses = np.bincount(place, np.where(positive, 0.0, weight))
    pairs = wins.sum() * losses.sum()
    if pairs == 0.0:
        return float("nan")
    return float(wins @ (np.cumsum(losses) - 0.5 * losses) / pairs)


class _Answers(BaseEstimator):
    """Looks like a fitted estimator that was asked about these rows, to a scorer."""

    def __init__(self, scores: NDArray, sample: Sample, link: str | None) -> None:
        self.scores = scores
        self.targets = sample.targets
        self.link = link

    def fit(self, X: Any, y: Any) -> _Answers:
        """Nothing to learn."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _has_link(answers: Any) -> bool:
    return answers.link is not None


class _ClassAnswers(ClassifierMixin, _Answers):
    @property
    def classes_(self) -> Any:
        classes = self.targets.classes or ()
        if self.targets.output == MULTILABEL:
            return [np.array(pair) for pair in classes]
        return np.array(classes)

    def decision_function(self, X: Any) -> NDArray:
        return self.scores[:, 0] if self.scores.shape[1] == 1 else self.scores

    def predict(self, X: Any) -> NDArray:
        return labels_of(self.scores, self.targets.output, self.targets.classes or ())

    @available_if(_has_link)
    def predict_proba(self, X: Any) -> NDArray:
        return probabilities_of(self.scores, self.link, self.targets.output)


class _RegressionAnswers(RegressorMixin, _Answers):
    def predict(self, X: Any) -> NDArray:
        means = inverse_link(self.scores, self.link, REGRESSION)
        return means[:, 0] if means.shape[1] == 1 else means
