"""``RuleClassifier`` and ``RuleRegressor``: certified rule ensembles for one alpha or C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from latticework.estimators.base import BaseRuleEstimator
from latticework.estimators.targets import (
    class_targets,
    class_weights,
    refuse_all_zero,
    regression_targets,
)
from latticework.losses import Loss
from latticework.rules.statistics import MULTILABEL

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from latticework.estimators.targets import Targets

_SHARED_PARAMETERS = """alpha : float, default=None
        Weight of the penalty: the objective is ``mean loss + alpha * Omega``.  0.01 when neither
        ``alpha`` nor ``C`` is given.
    C : float, default=None
        The papers' form instead: ``1/2 Omega^2 + C * sum of losses``.
    rho : float, default=1.0
        1 is the only value available yet: exact sparsity over all conjunctions.
    length_penalty : float, default=1.0
        a >= 0: a rule of k conditions pays (1 + a)^k per unit of weight, so
        ``Omega = sum_w (1 + a)^|w| ‖f_w‖``.  0 is the plain lasso over conjunctions.
    max_length : int, default=None
        Largest number of conditions of a rule.
    n_thresholds : int, default=8
        Largest number of thresholds of a numeric column.  A Propositionalizer has its own.
    conditions : "auto", "as-is" or Propositionalizer, default="auto"
        How columns become conditions.  "as-is": every column of X is a condition already.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Columns to treat as categorical whatever their type.
    monotonic_cst : dict or array-like, default=None
        1 or -1 for columns in which the score must not fall or not rise.
    linear_terms : bool, default=False
        Whether numeric columns may also enter linearly, standardised and clipped.
    relax : float, default=0.0
        Share of the penalty that is taken off once the rules are selected: 1 refits them (almost)
        without penalty.  The certificate is of the penalised problem that selected them.
    concavity : float, default=0.0
        Above 0 the penalty is concave: fewer rules, less shrunken.  It is solved in certified
        stages; the certificate is that of the last stage.
    task_coupling : array-like of shape (T, T), default=None
        B, positive semidefinite, couples the T tasks: ``‖f_w‖^2 = f_w' B^-1 f_w``.  None is the
        identity: tasks share the selection of rules, not their weights.
    """

_SHARED_LIMITS = """tol : float, default=1e-3
        Relative duality gap to reach.
    max_nodes : int, default=None
        Stop after so many nodes of the search; the model so far keeps a valid certificate.
    time_limit : float, default=None
        Stop after so many seconds; likewise.
    n_jobs : int, default=None
        Threads of the search; they do not change the result.
    warm_start : bool, default=False
        Whether to begin with the rules of the last fit.
    verbose : int, default=0
        1 prints a line for every alpha solved.
    random_state : int, RandomState or None, default=None
        Nothing here is random; kept for pipelines that set it everywhere.
    """

_SHARED_ATTRIBUTES = """rules_ : RuleEnsemble
        The model: rules, weights, intercept; prints itself and exports to SQL, Python, JSON, ...
    coef_ : ndarray of shape (R,) or (R, T)
        Weights in the order of ``rules_``.
    intercept_ : float or ndarray of shape (T,)
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``relative_gap``, ``complete``, ``nodes_searched``,
        ``lattice_size``, ``method``.
    objective_, lower_bound_, dual_gap_ : float
        The objective of the model, what no model can beat, and the difference.
    status_ : {"optimal", "time_limit", "node_limit", "interrupted"}
    alpha_ : float
        The weight of the penalty, also where ``C`` was given.
    n_iter_ : int
        Rounds of restricted problem and search at the last alpha.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (m,)
        When all names are strings.
    """


_CV_PARAMETERS = """alphas : array-like, default=None
        Weights of the penalty to try; by default ``n_alphas`` of them, geometric, from the
        smallest one at which no rule is used downwards.
    n_alphas : int, default=20
    cv : int, splitter or iterable, default=None
        None: five folds, shuffled and stratified, drawn up to five times on small data.
    scoring : str or callable, default=None
        A scorer of scikit-learn (a callable may use predictions only).  None: the area under the
        ROC curve, the mean over classes or labels; for a regressor minus the mean loss.
    max_rules : int, default=None
        Models with more rules are not chosen.
    selection : {"best", "one-standard-error"}, default="best"
        The best mean score; or the fewest rules within one standard error of it.
    """

_CV_ATTRIBUTES = """cv_results_ : dict of arrays
        One entry per model tried: ``length_penalty``, ``concavity``, ``alpha``, ``relax``,
        ``n_rules``, ``relative_gap``, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score`` and ``split0_test_score`` onwards.
    best_index_ : int
    best_score_ : float
        Mean score of the chosen settings over the folds.
    length_penalty_, concavity_, relax_ : float
        The chosen settings.
    n_splits_ : int
    """


def documented(cls: type) -> type:
    """Fill the shared parts into a class's docstring."""
    text = cls.__doc__ or ""
    for mark, part in (
        ("{parameters}", _SHARED_PARAMETERS),
        ("{limits}", _SHARED_LIMITS),
        ("{attributes}", _SHARED_ATTRIBUTES),
        ("{cv_parameters}", _CV_PARAMETERS),
        ("{cv_attributes}", _CV_ATTRIBUTES),
    ):
        text = text.replace(mark, part.rstrip())
    cls.__doc__ = text
    return cls


def _has_probabilities(estimator: Any) -> bool:
    if hasattr(estimator, "rules_"):
        known = estimator.rules_.link is not None
    else:
        loss = estimator.loss
        known = loss.has_probability if isinstance(loss, Loss) else loss == "log_loss"
    if not known:
        raise AttributeError(
            f"predict_proba is not available with loss={estimator.loss!r}: use loss='log_loss', "
            "or decision_function."
        )
    return True


class RuleClassifierMixin(ClassifierMixin):
    """Labels in, classes and probabilities out."""

    _loss_task: ClassVar[str] = "binary"
    classes_: NDArray[Any] | list[NDArray[Any]]

    def _encode(self, y: Any, n_rows: int, tasks: ArrayLike | None) -> Targets:
        loss_name = self.loss.name if isinstance(self.loss, Loss) else self.loss
        return class_targets(
            y, n_rows, loss_name=loss_name, multiclass=self.multiclass, tasks=tasks
        )

    def _factors(self, targets: Targets, weight: NDArray) -> NDArray[np.float64]:
        return class_weights(targets, self.class_weight, weight)

    def _store(self, assembly: Any, penalised: Any, solution: Any) -> None:
        classes = assembly.targets.classes
        if assembly.targets.output == MULTILABEL:
            self.classes_ = [np.array(pair) for pair in classes]
        else:
            self.classes_ = np.array(classes)
        super()._store(assembly, penalised, solution)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores: (n,) for two classes, of the second one; otherwise (n, T)."""
        table = self._table(X)
        return self.rules_.decision_function(table)

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,), or a matrix of zeros and ones (n, T) for several labels."""
        table = self._table(X)
        return self.rules_.predict(table)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes (n, K); of several labels, that of each (n, T)."""
        table = self._table(X)
        return self.rules_.predict_proba(table)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class RuleRegressorMixin(RegressorMixin):
    """Numbers in, numbers out."""

    _loss_task: ClassVar[str] = "regression"

    def _encode(self, y: Any, n_rows: int, tasks: ArrayLike | None) -> Targets:
        targets = regression_targets(y, n_rows, tasks)
        loss = self._loss(targets)
        loss.check_targets(targets.values)
        if loss.name == "poisson":
            refuse_all_zero(targets)
        return targets

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predictions (n,), or (n, T) for several targets."""
        table = self._table(X)
        return self.rules_.predict_mean(table)


@documented
class RuleClassifier(RuleClassifierMixin, BaseRuleEstimator):
    """Classifier: a weighted sum of rules, provably the best over all conjunctions.

    It minimises, over all 2^p conjunctions w of the p conditions of the columns,

        mean_i loss(y_i, sum_w f_w phi_w(x_i) + b) + alpha * sum_w (1 + a)^|w| ‖f_w‖

    with a duality gap that says how far the model can be from the optimum.

    Parameters
    ----------
    {parameters}
    loss : {"log_loss", "hinge", "squared_hinge"}, default="log_loss"
    multiclass : {"softmax", "one-vs-rest"}, default="softmax"
        For more than two classes.
    class_weight : dict, "balanced" or None, default=None
    {limits}

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of pairs
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from latticework import RuleClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> clf = RuleClassifier(alpha=0.03).fit(X, y)
    >>> clf.certificate_.relative_gap <= 1e-3
    True
    >>> clf.certificate_.complete, clf.status_
    (True, 'optimal')
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        **BaseRuleEstimator._parameter_constraints,
        "loss": [StrOptions({"log_loss", "hinge", "squared_hinge"}), Loss],
        "multiclass": [StrOptions({"softmax", "one-vs-rest"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        alpha: float | None = None,
        *,
        C: float | None = None,
        rho: float = 1.0,
        length_penalty: float = 1.0,
        loss: str | Loss = "log_loss",
        max_length: int | None = None,
        n_thresholds: int = 8,
        conditions: Any = "auto",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        linear_terms: bool = False,
        relax: float = 0.0,
        concavity: float = 0.0,
        task_coupling: ArrayLike | None = None,
        multiclass: str = "softmax",
        class_weight: dict | str | None = None,
        tol: float = 1e-3,
        max_nodes: int | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.C = C
        self.rho = rho
        self.length_penalty = length_penalty
        self.loss = loss
        self.max_length = max_length
        self.n_thresholds = n_thresholds
        self.conditions = conditions
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.linear_terms = linear_terms
        self.relax = relax
        self.concavity = concavity
        self.task_coupling = task_coupling
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.tol = tol
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state


@documented
class RuleRegressor(RuleRegressorMixin, BaseRuleEstimator):
    """Regressor: a weighted sum of rules, provably the best over all conjunctions.

    It minimises, over all 2^p conjunctions w of the p conditions of the columns,

        mean_i loss(y_i, sum_w f_w phi_w(x_i) + b) + alpha * sum_w (1 + a)^|w| ‖f_w‖

    with a duality gap that says how far the model can be from the optimum.

    Parameters
    ----------
    {parameters}
    loss : {"squared_error", "huber", "epsilon_insensitive", "poisson"}, default="squared_error"
        Or a loss object, such as ``latticework.losses.Huber(delta=2.0)``.  The squared error is
        1/2 (y - f)^2.
    {limits}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from latticework import RuleRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> reg = RuleRegressor(alpha=3.0).fit(X, y)
    >>> reg.certificate_.relative_gap <= 1e-3
    True
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        **BaseRuleEstimator._parameter_constraints,
        "loss": [
            StrOptions({"squared_error", "huber", "epsilon_insensitive", "poisson"}),
            Loss,
        ],
    }

    def __init__(
        self,
        alpha: float | None = None,
        *,
        C: float | None = None,
        rho: float = 1.0,
        length_penalty: float = 1.0,
        loss: str | Loss = "squared_error",
        max_length: int | None = None,
        n_thresholds: int = 8,
        conditions: Any = "auto",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        linear_terms: bool = False,
        relax: float = 0.0,
        concavity: float = 0.0,
        task_coupling: ArrayLike | None = None,
        tol: float = 1e-3,
        max_nodes: int | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.C = C
        self.rho = rho
        self.length_penalty = length_penalty
        self.loss = loss
        self.max_length = max_length
        self.n_thresholds = n_thresholds
        self.conditions = conditions
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.linear_terms = linear_terms
        self.relax = relax
        self.concavity = concavity
        self.task_coupling = task_coupling
        self.tol = tol
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state
