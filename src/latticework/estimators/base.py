"""What rule classifiers and regressors share: parameters, fitting, and what a fit leaves behind."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from latticework.blocks.lattices.conjunctions import ConjunctionLattice
from latticework.estimators.assembly import (
    Assembly,
    Rows,
    Sample,
    cell_weights,
    centred,
    condition_signs,
    linear_columns,
    make_linear_terms,
    make_problem,
    mixing_of,
    refitted,
    row_factors,
    rules_of,
)
from latticework.estimators.callbacks import FitReport
from latticework.estimators.checks import check_parameters, row_weights
from latticework.estimators.targets import refuse_weightless
from latticework.exceptions import CertificateWarning
from latticework.losses import Loss, get_loss
from latticework.rules.as_is import truth_codes
from latticework.rules.cells import CATEGORICAL, NUMERIC
from latticework.rules.columns import (
    Table,
    as_tabular,
    column_name,
    read_table,
)
from latticework.rules.propositionalize import Propositionalizer
from latticework.rules.statistics import MULTICLASS
from latticework.search.limits import Limits, stopping_on_ctrl_c
from latticework.solvers import result as outcome
from latticework.solvers.cost_form import solve_for_cost
from latticework.solvers.lattice_path import LatticePath

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from latticework.estimators.targets import Targets
    from latticework.rules.ensemble import RuleEnsemble
    from latticework.solvers.result import Certificate, Solution

DEFAULT_ALPHA = 0.01


class BaseRuleEstimator(CallbackSupportMixin, TransformerMixin, BaseEstimator):
    """Parameters and fitting of the certified rule learners (rho = 1)."""

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
        "C": [Interval(Real, 0, None, closed="neither"), None],
        "rho": [Interval(Real, 1, 2, closed="both")],
        "length_penalty": [Interval(Real, 0, None, closed="left")],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "n_thresholds": [Interval(Integral, 1, None, closed="left")],
        "conditions": [StrOptions({"auto", "as-is"}), Propositionalizer],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "monotonic_cst": ["array-like", dict, None],
        "linear_terms": ["boolean"],
        "relax": [Interval(Real, 0, 1, closed="both")],
        "concavity": [Interval(Real, 0, None, closed="left")],
        "task_coupling": ["array-like", None],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "max_nodes": [Interval(Integral, 1, None, closed="left"), None],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    _loss_task: ClassVar[str]
    rules_: RuleEnsemble
    certificate_: Certificate

    # ---- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
    ) -> Self:
        """Learn the rules and their weights.

        Parameters
        ----------
        X : frame or array-like of shape (n, m)
            numpy, pandas, polars or pyarrow; numeric, categorical and missing cells together.
            With ``conditions="as-is"`` booleans, zeros and ones, or a scipy sparse matrix.
        y : array-like of shape (n,) or (n, T)
            Labels or targets.  A matrix holds several labels or targets per row, NaN where
            unknown.
        sample_weight : array-like of shape (n,), optional
            Whole-number weights give the same model as repeated rows.
        tasks : array-like of shape (n,), optional
            The task of each row, when several tasks have rows of their own.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        self._check_parameters()
        with stopping_on_ctrl_c():
            assembly = self._assemble(self._sample(X, y, sample_weight, tasks))
            return self._fit_assembly(assembly, started, (X, y, sample_weight))

    @with_callbacks
    def _fit_assembly(self, assembly: Assembly, started: float, given: tuple) -> Self:
        report = FitReport(self, *given)
        path = self._path(assembly, started)
        self._resume(path, assembly)
        if self.C is not None:
            solution = solve_for_cost(path, float(self.C) * assembly.total_weight)
        else:
            alpha = DEFAULT_ALPHA if self.alpha is None else float(self.alpha)
            for solution in path.approach(alpha):
                self._report(solution)
                attributes = partial(self._attributes_at, assembly, solution)
                if report.step("alpha", attributes) and solution.alpha != alpha:
                    solution = path.stopped_at(alpha)
                    break
        self._store(assembly, solution, refitted(path, solution, float(self.relax)))
        self._warn_if_open(stacklevel=5)
        report.end()
        return self

    def _attributes_at(self, assembly: Assembly, solution: Solution) -> dict[str, Any]:
        """The attributes of this estimator if its fit ended with ``solution``."""
        model = copy.copy(self)
        model._store(assembly, solution, solution)
        return dict(vars(model))

    def _path(self, assembly: Assembly, started: float) -> LatticePath:
        """The solver for the assembled problem, with this estimator's limits."""
        deadline = None if self.time_limit is None else started + float(self.time_limit)
        return LatticePath(
            assembly.problem,
            tol=max(float(self.tol), 1e-12),
            concavity=float(self.concavity),
            limits=Limits(self.max_nodes, deadline),
            n_jobs=self.n_jobs,
        )

    def _resume(self, path: LatticePath, assembly: Assembly) -> None:
        """With ``warm_start``, put the last fit's rules at hand."""
        if not (self.warm_start and hasattr(self, "_penalised")):
            return
        position = {c: k for k, c in enumerate(assembly.propositions.table_.conditions)}
        old = self._propositions.table_.conditions
        known = [
            tuple(sorted(position[old[c]] for c in conjunction))
            for conjunction in self._penalised.conjunctions
            if all(old[c] in position for c in conjunction)
        ]
        path.working_set.add(known)

    def _report(self, solution: Solution) -> None:
        if self.verbose:
            certificate = solution.certificate
            line = (
                f"[{type(self).__name__}] alpha {solution.alpha:.4g}: "
                f"{len(solution.conjunctions)} rules, objective {certificate.primal:.6g}, "
                f"relative gap {certificate.relative_gap:.2g}, "
                f"{certificate.nodes_searched} nodes searched\n"
            )
            _write(line)

    # ---- from data to a problem ---------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._validate_params()
        check_parameters(self)

    def _sample(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, tasks: ArrayLike | None
    ) -> Sample:
        """Validated columns, encoded targets and row weights."""
        data = self._read(X, reset=True)
        n_rows = data.n_rows if isinstance(data, Table) else data.shape[0]
        targets = self._encode(y, n_rows, tasks)
        weight = row_weights(sample_weight, n_rows)
        refuse_weightless(targets, weight)
        if isinstance(data, Table):
            return Sample(data, None, targets, weight)
        as_is = self._new_propositions().fit(data, sample_weight=weight)
        return Sample(as_is.encode_sparse(data), as_is, targets, weight)

    def _assemble(self, sample: Sample) -> Assembly:
        """The solver's problem for a sample, with everything that leads back from it."""
        sample = sample.counted()
        data, targets, weight = sample.data, sample.targets, sample.weight
        factors = self._factors(targets, weight)
        shares = weight * row_factors(targets, factors)
        propositions = sample.as_is
        if propositions is None:
            propositions = self._new_propositions().fit(data, sample_weight=shares)
        names = _names_of(propositions)
        monotonic = self._monotonic(propositions, targets)
        loss = self._loss(targets)
        terms, dense, dense_signs = self._linear(data, shares, targets, monotonic)
        codes = data if sample.as_is is not None else propositions.encode(data)
        rows = Rows.merged(codes, targets, weight, factors, dense)
        cells, total = cell_weights(rows.targets, rows.weight, rows.factors)
        lattice = ConjunctionLattice(
            rows.codes, propositions.table_, float(self.length_penalty), self.max_length,
            condition_signs(propositions, monotonic),
        )  # fmt: skip
        mixing = mixing_of(self.task_coupling, targets.values.shape[1])
        if mixing is not None and any(monotonic.values()):
            raise ValueError(
                "monotonic_cst and task_coupling exclude each other: a coupling mixes the signs "
                "of the tasks. Drop one of them."
            )
        problem = make_problem(rows.targets, loss, cells, lattice, mixing, rows.dense, dense_signs)
        return Assembly(propositions, names, loss, problem, rows, tuple(terms), total)

    def _read(self, X: Any, *, reset: bool) -> Any:
        """X as a Table, or as it is where it holds conditions already."""
        X = as_tabular(X)
        if isinstance(X, Table):
            return X
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            new = self._new_propositions()
            if new.conditions == "as-is":
                return X
            return read_table(X, categorical_features=new.categorical_features)
        fitted = self._propositions
        if fitted.conditions == "as-is":
            if not sparse.issparse(X):
                truth_codes(X, _names_of(fitted))  # refuses what is neither true nor false
            return X
        table = read_table(X, names=_names_of(fitted), kinds=fitted.kinds_)
        fitted.refuse_other_types(table)
        return table

    def _new_propositions(self) -> Propositionalizer:
        if isinstance(self.conditions, Propositionalizer):
            return clone(self.conditions)
        categorical = self.categorical_features
        return Propositionalizer(
            n_thresholds=int(self.n_thresholds),
            conditions=self.conditions,
            categorical_features="from_dtype" if categorical is None else categorical,
        )

    def _linear(
        self, data: Any, weight: NDArray, targets: Targets, monotonic: Mapping[str, int]
    ) -> tuple[list, NDArray | None, NDArray | None]:
        """Linear terms, their columns and their signs."""
        if not self.linear_terms:
            return [], None, None
        if not isinstance(data, Table):
            raise ValueError(
                "linear_terms=True needs numeric columns: conditions='as-is' has none."
            )
        if all(column.kind != NUMERIC for column in data.columns):
            raise ValueError("linear_terms=True needs numeric columns, but X has none.")
        terms = make_linear_terms(data, weight, targets.values.shape[1])
        if not terms:  # as where all numeric columns are constant
            return [], None, None
        signs = np.array([monotonic.get(term.feature, 0) for term in terms], np.int8)
        return terms, linear_columns(tuple(terms), data), signs

    def _monotonic(self, propositions: Propositionalizer, targets: Targets) -> dict[str, int]:
        """Monotone constraints by feature name."""
        given = self.monotonic_cst
        names = _names_of(propositions)
        if given is None:
            return {}
        if isinstance(given, Mapping):
            directions = {
                column_name(key, names, "monotonic_cst"): value for key, value in given.items()
            }
            if len(directions) < len(given):
                raise ValueError(
                    f"monotonic_cst mentions a column twice: {dict(given)!r}. Give it once."
                )
        else:
            if len(given) != len(names):
                raise ValueError(
                    f"monotonic_cst has {len(given)} entries, but X has {len(names)} columns."
                )
            directions = dict(zip(names, given, strict=True))
        kinds = dict(zip(names, propositions.kinds_, strict=True))
        for name, value in directions.items():
            if isinstance(value, (bool, str)) or value not in (-1, 0, 1):
                raise ValueError(
                    f"monotonic_cst of column {name!r} must be -1, 0 or 1, got {value!r}."
                )
            if value and kinds[name] == CATEGORICAL:
                raise ValueError(
                    f"monotonic_cst is given for column {name!r}, whose categories have no order: "
                    "leave it out, or make the column an ordered categorical."
                )
        if targets.output == MULTICLASS and any(directions.values()):
            raise ValueError(
                "monotonic_cst needs a single direction of the score, but y has more than two "
                "classes: fit one class against the rest."
            )
        return {name: int(value) for name, value in directions.items()}

    def _encode(self, y: Any, n_rows: int, tasks: ArrayLike | None) -> Targets:
        raise NotImplementedError

    def _loss(self, targets: Targets) -> Loss:
        if targets.joint:
            return get_loss("softmax")
        return self.loss if isinstance(self.loss, Loss) else get_loss(self.loss)

    def _factors(self, targets: Targets, weight: NDArray) -> NDArray[np.float64]:
        return np.ones_like(targets.values)

    def _plain(self) -> BaseRuleEstimator:
        """An unfitted estimator whose problem is the one that the certificate speaks of."""
        return clone(self)

    # ---- what a fit leaves behind -------------------------------------------------------------

    def _store(self, assembly: Assembly, penalised: Solution, solution: Solution) -> None:
        penalised, solution = centred(assembly, penalised), centred(assembly, solution)
        self.rules_, order = rules_of(assembly, solution)
        self._propositions = assembly.propositions
        nothing = np.empty((0, 0))
        self._penalised = replace(penalised, dual_point=nothing)
        self._set_weights(solution, order)
        certificate = solution.certificate
        self.alpha_ = solution.alpha
        self.n_iter_ = max(1, solution.n_iter)
        self.objective_ = certificate.primal
        self.lower_bound_ = certificate.dual
        self.dual_gap_ = certificate.gap
        self.status_ = solution.status
        self.certificate_ = certificate

    def _set_weights(self, solution: Solution, order: NDArray) -> None:
        coef, intercept = solution.coef[order], solution.intercept
        single = len(intercept) == 1
        self.coef_ = coef[:, 0].copy() if single else coef
        self.intercept_ = float(intercept[0]) if single else intercept.copy()

    def _warn_if_open(self, stacklevel: int) -> None:
        certificate = self.certificate_
        if certificate.relative_gap <= max(self.tol, 1e-9):
            return
        reason = {
            outcome.TIME_LIMIT: f"time_limit={self.time_limit} s was reached",
            outcome.NODE_LIMIT: f"max_nodes={self.max_nodes} was reached",
            outcome.INTERRUPTED: "the fit was interrupted",
        }.get(self.status_, "rounding stopped it")
        warnings.warn(
            f"The model is within {100 * certificate.relative_gap:.3g} % of the optimum, not "
            f"within tol={self.tol:g}: {reason} (objective {certificate.primal:.6g}, lower bound "
            f"{certificate.dual + 0.0:.6g}). It is the best one found and its certificate is "
            "valid; raise the limit or tol, or make alpha larger.",
            CertificateWarning,
            stacklevel=stacklevel,
        )

    # ---- using a fitted model -----------------------------------------------------------------

    def _table(self, X: Any) -> Any:
        check_is_fitted(self, "rules_")
        return self._read(X, reset=False)

    def transform(self, X: Any) -> NDArray[np.bool_]:
        """Which rules hold of which rows, shape (n, R)."""
        table = self._table(X)
        return self.rules_.indicators(table)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The rules in words, names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names for the columns of a model that was fitted without; else the names at fit.
        """
        check_is_fitted(self, "rules_")
        rules = self.rules_
        if input_features is not None:
            names = _check_feature_names_in(self, input_features)
            rules = rules.with_feature_names(names)
        return np.array(rules.rule_names, dtype=object)

    def explain(self, X: Any) -> Any:
        """What each rule and the intercept contribute to the score of each row.

        Returns
        -------
        frame of n rows
            Columns as in :meth:`RuleEnsemble.explain`; they sum to the score exactly.
        """
        check_is_fitted(self, "rules_")
        self._read(X, reset=False)
        return self.rules_.explain(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        as_is = (
            self.conditions.conditions == "as-is"
            if isinstance(self.conditions, Propositionalizer)
            else self.conditions == "as-is"
        )
        tags.input_tags.sparse = as_is
        tags.input_tags.allow_nan = not as_is
        tags.input_tags.string = not as_is
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _names_of(propositions: Propositionalizer) -> tuple[str, ...]:
    return tuple(propositions._names)


def _write(line: str) -> None:
    import sys

    sys.stdout.write(line)
    sys.stdout.flush()
