"""``rule_path``: every model of a regularisation path, each with its certificate."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from sklearn.base import clone

from latticework.estimators.assembly import refitted
from latticework.estimators.base import DEFAULT_ALPHA
from latticework.estimators.rules import RuleClassifier, RuleRegressor
from latticework.estimators.targets import read_y
from latticework.exceptions import CertificateWarning
from latticework.losses import Loss
from latticework.search.limits import stopping_on_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from latticework.estimators.base import BaseRuleEstimator
    from latticework.solvers.lattice_path import LatticePath

# Smallest alpha of a path, as a share of the largest.
SMALLEST_SHARE = 0.02
_REGRESSION_LOSSES = ("squared_error", "huber", "epsilon_insensitive", "poisson")
_CLASSIFICATION_LOSSES = ("log_loss", "hinge", "squared_hinge")


class RulePath(Sequence["BaseRuleEstimator"]):
    """Fitted models, from the largest alpha to the smallest.

    Attributes
    ----------
    models : list of RuleClassifier or RuleRegressor
    alphas : ndarray
        The alphas that were solved: fewer than asked for when a limit was reached.
    """

    def __init__(self, models: Iterable[BaseRuleEstimator]) -> None:
        self.models = list(models)
        self.alphas = np.array([model.alpha_ for model in self.models])

    def __len__(self) -> int:
        return len(self.models)

    @overload
    def __getitem__(self, index: int) -> BaseRuleEstimator: ...
    @overload
    def __getitem__(self, index: slice) -> RulePath: ...
    def __getitem__(self, index: int | slice) -> BaseRuleEstimator | RulePath:
        if isinstance(index, slice):
            return RulePath(self.models[index])
        return self.models[index]

    def __repr__(self) -> str:
        if not self.models:
            return "<RulePath of no models>"
        return (
            f"<RulePath of {len(self)} models, alpha {self.alphas[0]:.4g} .. "
            f"{self.alphas[-1]:.4g}, {len(self.models[-1].rules_)} rules in the last>"
        )

    def to_frame(self) -> Any:
        """One row per model: alpha, rules, objective, lower bound, relative gap, status."""
        import pandas as pd

        rows = [
            {
                "alpha": model.alpha_,
                "rules": len(model.rules_),
                "objective": model.objective_,
                "lower_bound": model.lower_bound_,
                "relative_gap": model.certificate_.relative_gap,
                "complete": model.certificate_.complete,
                "status": model.status_,
            }
            for model in self.models
        ]
        return pd.DataFrame(rows)


def grid_of_alphas(path: LatticePath, alphas: ArrayLike | None, n_alphas: int) -> list[float]:
    """The given alphas from large to small, or a geometric grid from the largest useful one."""
    if alphas is None:
        if not isinstance(n_alphas, Integral) or isinstance(n_alphas, bool) or n_alphas < 1:
            raise ValueError(f"n_alphas must be an integer of at least 1, got {n_alphas!r}.")
        largest = path.alpha_max()
        if not 0.0 < largest < np.inf:  # no rule explains anything, or there was no time to look
            largest = DEFAULT_ALPHA
        return (largest * np.geomspace(1.0, SMALLEST_SHARE, n_alphas)).tolist()
    try:
        given = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    except (TypeError, ValueError):  # no numbers, or none in a row
        given = np.empty(0)
    if given.ndim != 1 or len(given) == 0 or not (np.isfinite(given).all() and (given > 0).all()):
        raise ValueError(f"alphas must be a list of positive finite numbers, got {alphas!r}.")
    path.alpha_max()
    return given.tolist()


def rule_path(
    X: Any,
    y: Any,
    alphas: ArrayLike | None = None,
    n_alphas: int = 20,
    *,
    sample_weight: ArrayLike | None = None,
    tasks: ArrayLike | None = None,
    **parameters: Any,
) -> RulePath:
    """Solve the rule learning problem for many alphas, each from the solution before.

    Parameters
    ----------
    X : frame or array-like of shape (n, m)
    y : array-like of shape (n,) or (n, T)
        Labels or targets.  ``loss`` decides between classification and regression; without it,
        whole numbers, strings and booleans are classes, and other numbers are targets.
    alphas : array-like, optional
        By default ``n_alphas`` of them, geometric, from the smallest alpha at which no rule is
        used down to a fiftieth of it.
    n_alphas : int, default=20
    sample_weight, tasks : array-like of shape (n,), optional
    **parameters
        Of :class:`RuleClassifier` or :class:`RuleRegressor`.

    Returns
    -------
    RulePath
        A sequence of fitted models.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import latticework as lw
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> path = lw.rule_path(X, y == 2, n_alphas=5)
    >>> [len(model.rules_) for model in path][0], len(path)
    (0, 5)
    >>> all(model.certificate_.relative_gap <= 1e-3 for model in path)
    True
    """
    started = time.perf_counter()
    estimator = _estimator_for(y, parameters)
    estimator._check_parameters()
    if estimator.C is not None or estimator.alpha is not None:
        raise ValueError("rule_path takes alphas, not alpha or C.")
    models: list[BaseRuleEstimator] = []
    with stopping_on_ctrl_c():
        assembly = estimator._assemble(estimator._sample(X, y, sample_weight, tasks))
        path = estimator._path(assembly, started)
        wanted = grid_of_alphas(path, alphas, n_alphas)
        for solution in path.path(wanted):
            estimator._report(solution)
            model = clone(estimator).set_params(alpha=solution.alpha)
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(estimator, name):
                    setattr(model, name, getattr(estimator, name))
            model._store(assembly, solution, refitted(path, solution, float(estimator.relax)))
            models.append(model)
    if len(models) < len(wanted):
        last = models[-1]
        warnings.warn(
            f"The path stopped after {len(models)} of {len(wanted)} alphas, with status "
            f"{last.status_!r}; the last model, at alpha={last.alpha_:.6g}, is within "
            f"{100 * last.certificate_.relative_gap:.3g} % of its optimum. Raise time_limit or "
            "max_nodes, or give larger alphas.",
            CertificateWarning,
            stacklevel=2,
        )
    else:
        for model in models:
            model._warn_if_open(stacklevel=3)
    return RulePath(models)


def _estimator_for(y: Any, parameters: dict[str, Any]) -> BaseRuleEstimator:
    loss = parameters.get("loss")
    name = loss.name if isinstance(loss, Loss) else loss
    if name in _REGRESSION_LOSSES:
        return RuleRegressor(**parameters)
    if name in _CLASSIFICATION_LOSSES or name is not None:
        return RuleClassifier(**parameters)
    return (RuleRegressor if _has_fractions(y) else RuleClassifier)(**parameters)


def _has_fractions(y: Any) -> bool:
    """Whether y holds numbers that are not whole; unknown ones (NaN) say nothing."""
    array, _ = read_y(y)
    numbers = array if array.dtype.kind == "f" else np.empty(0)
    known = numbers[~np.isnan(numbers)]
    return bool((known != np.floor(known)).any())
