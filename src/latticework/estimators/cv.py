"""``RuleClassifierCV`` and ``RuleRegressorCV``: settings chosen by cross-validation."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from functools import partial
from itertools import product
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions

from latticework.estimators.base import BaseRuleEstimator
from latticework.estimators.callbacks import FitReport
from latticework.estimators.folds import make_folds
from latticework.estimators.path import grid_of_alphas
from latticework.estimators.rules import (
    RuleClassifier,
    RuleClassifierMixin,
    RuleRegressor,
    RuleRegressorMixin,
    documented,
)
from latticework.estimators.scoring import make_scorer
from latticework.estimators.selection import (
    NOT_SCORED,
    Candidate,
    Family,
    choose,
    mean_scores,
    results,
)
from latticework.exceptions import CertificateWarning
from latticework.search.limits import stopping_on_ctrl_c
from latticework.solvers import result as outcome
from latticework.solvers.cost_form import solve_for_cost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from latticework.estimators.assembly import Assembly, Sample
    from latticework.estimators.folds import Folds
    from latticework.estimators.scoring import Scorer
    from latticework.losses import Loss
    from latticework.solvers.lattice_path import LatticePath
    from latticework.solvers.result import Solution

# A path is left once its models have this many times the rules that are allowed.
_BEYOND = 1.5
# Share of a time limit that the models of all rows may take; the folds have the rest.
_SHARE_OF_MODELS = 0.4
# Parameters that may be lists, of which cross-validation chooses.
_CHOSEN = ("length_penalty", "concavity", "relax")


class _CrossValidated(BaseRuleEstimator):
    """Fits the models of all rows first, then scores their settings on folds."""

    _plain_class: ClassVar[type[BaseRuleEstimator]]
    _parameter_constraints: ClassVar[dict[str, list]] = {
        **BaseRuleEstimator._parameter_constraints,
        **{
            name: [*BaseRuleEstimator._parameter_constraints[name], "array-like"]
            for name in _CHOSEN
        },
        "alphas": ["array-like", None],
        "n_alphas": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "max_rules": [Interval(Integral, 0, None, closed="left"), None],
        "selection": [StrOptions({"best", "one-standard-error"})],
    }

    cv_results_: dict[str, Any]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
    ) -> Self:
        """Learn the models of all paths, score their settings on folds, and keep the best model.

        Parameters
        ----------
        X : frame or array-like of shape (n, m)
            numpy, pandas, polars or pyarrow; numeric, categorical and missing cells together.
            With ``conditions="as-is"`` booleans, zeros and ones, or a scipy sparse matrix.
        y : array-like of shape (n,) or (n, T)
            Labels or targets.  A matrix holds several labels or targets per row, NaN where
            unknown.
        sample_weight : array-like of shape (n,), optional
            They count in the fits and in the scores.
        tasks : array-like of shape (n,), optional
            The task of each row, when several tasks have rows of their own.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        self._check_parameters()
        with stopping_on_ctrl_c():
            sample = self._sample(X, y, sample_weight, tasks)
            folds = make_folds(self.cv, sample.targets, sample.weight, self.random_state)
            rate = make_scorer(self.scoring, self._loss(sample.targets), sample)
            return self._fit_sample(sample, folds, rate, started, (X, y, sample_weight))

    @with_callbacks
    def _fit_sample(
        self, sample: Sample, folds: Folds, rate: Scorer, started: float, given: tuple
    ) -> Self:
        report = FitReport(self, *given)
        families = []
        for length_penalty, concavity in product(
            self._values("length_penalty"), self._values("concavity")
        ):
            plain = self._plain_with(length_penalty=length_penalty, concavity=concavity)
            families.append(self._family(plain, sample, started, report))
            if report.stopped:
                break
        scores = self._scores(families, sample, folds, rate, started, report)
        self._keep(families, scores)
        report.end()
        return self

    # ---- settings -----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in _CHOSEN:
            values = self._values(name)
            if not values:
                raise ValueError(
                    f"{name} must be a number or a list of numbers, got an empty list."
                )
            for value in values:
                self._plain_with(**{name: value})._validate_params()
        if self.alphas is not None and not (self.alpha is None and self.C is None):
            raise ValueError("alphas leaves no room for alpha or C: give one of the three.")

    def _values(self, name: str) -> list[float]:
        """The values of a parameter that may be a number or several."""
        given = getattr(self, name)
        if isinstance(given, Real):
            return [float(given)]
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty((0, 0))
        if values.ndim != 1:
            raise ValueError(f"{name} must be a number or a list of numbers, got {given!r}.")
        return values.tolist()

    def _plain_with(self, **changes: Any) -> BaseRuleEstimator:
        """The estimator that fits a single model with this one's parameters."""
        mine = self.get_params(deep=False)
        wanted = self._plain_class().get_params(deep=False)
        shared = {name: mine[name] for name in wanted if name not in _CHOSEN}
        return self._plain_class(**{**shared, "alpha": None, "C": None, **changes})

    def _plain(self) -> BaseRuleEstimator:
        return self._plain_with(
            alpha=self.alpha_ if self.C is None else None, C=self.C,
            length_penalty=self.length_penalty_, concavity=self.concavity_, relax=self.relax_,
        )  # fmt: skip

    # ---- the models of all rows ---------------------------------------------------------------

    def _family(
        self, plain: BaseRuleEstimator, sample: Sample, started: float, report: FitReport
    ) -> Family:
        """All models of one path, on all rows."""
        if self.time_limit is not None:
            plain.set_params(time_limit=_SHARE_OF_MODELS * float(self.time_limit))
        assembly = plain._assemble(sample)
        path = plain._path(assembly, started)
        self._resume(path, assembly)
        family = Family(plain, assembly, self._values("relax"), [])
        for solution in self._solutions(path, assembly):
            self._report(solution)
            # Dual points are as large as the data, and only a solver needs them.
            family.add(replace(solution, dual_point=np.empty((0, 0))), path)
            attributes = partial(self._attributes_at, assembly, solution)
            if report.step("alpha", attributes) or self._is_beyond(solution):
                break
        return family

    def _solutions(self, path: LatticePath, assembly: Assembly) -> Iterator[Solution]:
        """Certified solutions: of the grid of alphas, or of the one alpha or C that is given."""
        if self.C is not None:
            yield solve_for_cost(path, float(self.C) * assembly.total_weight)
        elif self.alpha is not None:
            *_, last = path.approach(float(self.alpha))
            yield last
        else:
            yield from path.path(grid_of_alphas(path, self.alphas, self.n_alphas))

    def _is_beyond(self, solution: Solution) -> bool:
        limit = self.max_rules
        return limit is not None and len(solution.conjunctions) > max(limit + 1, _BEYOND * limit)

    # ---- the folds ----------------------------------------------------------------------------

    def _scores(
        self,
        families: list[Family],
        sample: Sample,
        folds: Folds,
        rate: Scorer,
        started: float,
        report: FitReport,
    ) -> NDArray[np.float64]:
        """Scores (candidates, folds) of the candidates of all families."""
        scores = np.full((sum(len(f.candidates) for f in families), len(folds)), NOT_SCORED)
        solved = [candidate.solution.status for f in families for candidate in f.candidates]
        if report.stopped or outcome.INTERRUPTED in solved:
            return scores
        limits = self._fold_limits(len(folds))

        def score(k: int) -> NDArray[np.float64]:
            train, test = folds[k]
            parts = [f.scores(sample, train, test, rate, started, limits[k]) for f in families]
            return np.concatenate(parts)

        workers = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        try:
            for k, column in enumerate(workers(delayed(score)(k) for k in range(len(folds)))):
                scores[:, k] = column
                if report.step("fold"):
                    break
        except KeyboardInterrupt:
            pass  # what was scored so far decides
        return scores

    def _fold_limits(self, n_folds: int) -> list[float | None]:
        """Seconds after the start at which each fold must be done."""
        if self.time_limit is None:
            return [None] * n_folds
        together = effective_n_jobs(self.n_jobs)
        rounds = -(-n_folds // together)
        rest = (1.0 - _SHARE_OF_MODELS) / rounds
        return [
            float(self.time_limit) * (_SHARE_OF_MODELS + rest * (k // together + 1))
            for k in range(n_folds)
        ]

    # ---- the choice ---------------------------------------------------------------------------

    def _keep(self, families: list[Family], scores: NDArray[np.float64]) -> None:
        candidates = [candidate for family in families for candidate in family.candidates]
        chosen = choose(candidates, scores, self.max_rules, self.selection)
        owner = next(f for f in families if any(c is candidates[chosen] for c in f.candidates))
        kept = candidates[chosen]
        self.cv_results_ = results(candidates, scores)
        self.best_index_ = chosen
        self.best_score_ = float(self.cv_results_["mean_test_score"][chosen])
        self.n_splits_ = scores.shape[1]
        self.length_penalty_ = kept.length_penalty
        self.concavity_ = kept.concavity
        self.relax_ = kept.relax
        self._store(owner.assembly, kept.penalised, kept.solution)
        self._warn_if_cut_short(candidates, scores)

    def _warn_if_cut_short(self, candidates: list[Candidate], scores: NDArray[np.float64]) -> None:
        """Say so when a limit or an interrupt left models unsolved or unscored."""
        unscored = int((scores == NOT_SCORED).any(axis=1).sum())
        cut = [c.solution.status for c in candidates if c.solution.status != outcome.OPTIMAL]
        if not unscored and not cut:
            self._warn_if_open(stacklevel=7)
            return
        if self.status_ == outcome.OPTIMAL:
            late = outcome.INTERRUPTED if self.time_limit is None else outcome.TIME_LIMIT
            self.status_ = cut[0] if cut else late
        _, _, n_folds = mean_scores(scores)
        basis = f"scores on {n_folds} of {scores.shape[1]} folds" if n_folds else "no scores"
        warnings.warn(
            f"Cross-validation was cut short (status {self.status_!r}): the settings were chosen "
            f"from {basis}, with {unscored} of {len(candidates)} settings not scored in every "
            f"fold. The model is within {100 * self.certificate_.relative_gap:.3g} % of the "
            f"optimum at alpha={self.alpha_:.6g}. Give more time, fewer alphas or fewer folds.",
            CertificateWarning,
            stacklevel=6,
        )


@documented
class RuleClassifierCV(RuleClassifierMixin, _CrossValidated):
    """Rule classifier with alpha, relaxation, concavity and length penalty chosen by folds.

    The models of a whole path are learnt from all rows, each with its certificate; the folds say
    which of them to keep.  ``length_penalty``, ``concavity`` and ``relax`` may be lists.  Length
    penalties of 1 and 8 are tried by default: with 8 models are nearly additive, as longer rules
    come in only where they say very much more.

    Parameters
    ----------
    {cv_parameters}
    {parameters}
    loss : {"log_loss", "hinge", "squared_hinge"}, default="log_loss"
    multiclass : {"softmax", "one-vs-rest"}, default="softmax"
        For more than two classes.
    class_weight : dict, "balanced" or None, default=None
    {limits}

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of pairs
    {cv_attributes}
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from latticework import RuleClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> clf = RuleClassifierCV(max_rules=8, n_alphas=10).fit(X, y)
    >>> len(clf.rules_) <= 8, clf.certificate_.complete, bool(clf.best_score_ > 0.97)
    (True, True, True)
    """

    _plain_class = RuleClassifier
    _parameter_constraints: ClassVar[dict[str, list]] = {
        **RuleClassifier._parameter_constraints,
        **_CrossValidated._parameter_constraints,
    }

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        n_alphas: int = 20,
        cv: Any = None,
        scoring: Any = None,
        max_rules: int | None = None,
        selection: str = "best",
        alpha: float | None = None,
        C: float | None = None,
        rho: float = 1.0,
        length_penalty: float | ArrayLike = (1.0, 8.0),
        loss: str | Loss = "log_loss",
        max_length: int | None = None,
        n_thresholds: int = 8,
        conditions: Any = "auto",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        linear_terms: bool = False,
        relax: float | ArrayLike = (0.0, 0.5, 1.0),
        concavity: float | ArrayLike = 0.0,
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
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.cv = cv
        self.scoring = scoring
        self.max_rules = max_rules
        self.selection = selection
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
class RuleRegressorCV(RuleRegressorMixin, _CrossValidated):
    """Rule regressor with alpha, relaxation, concavity and length penalty chosen by folds.

    The models of a whole path are learnt from all rows, each with its certificate; the folds say
    which of them to keep.  ``length_penalty``, ``concavity`` and ``relax`` may be lists.  Length
    penalties of 1 and 8 are tried by default: with 8 models are nearly additive, as longer rules
    come in only where they say very much more.

    Parameters
    ----------
    {cv_parameters}
    {parameters}
    loss : {"squared_error", "huber", "epsilon_insensitive", "poisson"}, default="squared_error"
        Or a loss object, such as ``latticework.losses.Huber(delta=2.0)``.
    {limits}

    Attributes
    ----------
    {cv_attributes}
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from latticework import RuleRegressorCV
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> reg = RuleRegressorCV(max_rules=10, n_alphas=10).fit(X, y)
    >>> len(reg.rules_) <= 10, reg.certificate_.complete
    (True, True)
    """

    _plain_class = RuleRegressor
    _parameter_constraints: ClassVar[dict[str, list]] = {
        **RuleRegressor._parameter_constraints,
        **_CrossValidated._parameter_constraints,
    }

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        n_alphas: int = 20,
        cv: Any = None,
        scoring: Any = None,
        max_rules: int | None = None,
        selection: str = "best",
        alpha: float | None = None,
        C: float | None = None,
        rho: float = 1.0,
        length_penalty: float | ArrayLike = (1.0, 8.0),
        loss: str | Loss = "squared_error",
        max_length: int | None = None,
        n_thresholds: int = 8,
        conditions: Any = "auto",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        linear_terms: bool = False,
        relax: float | ArrayLike = (0.0, 0.5, 1.0),
        concavity: float | ArrayLike = 0.0,
        task_coupling: ArrayLike | None = None,
        tol: float = 1e-3,
        max_nodes: int | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.cv = cv
        self.scoring = scoring
        self.max_rules = max_rules
        self.selection = selection
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
