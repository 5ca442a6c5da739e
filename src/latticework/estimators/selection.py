"""Choosing among the models of several paths by their scores on folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from latticework.estimators.assembly import Assembly, Sample, linear_columns, refitted
from latticework.solvers import result as outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from latticework.estimators.base import BaseRuleEstimator
    from latticework.estimators.scoring import Scorer
    from latticework.solvers.lattice_path import LatticePath
    from latticework.solvers.result import Solution

# A fold that a limit or an interrupt kept from being scored; NaN is a score that is not defined.
NOT_SCORED = -np.inf
# Models that are only scored are solved to this gap, which no score can tell from a smaller one,
# as long as it is no more than this share of what their rules explain.
_FOLD_TOL = 0.01
_FOLD_SHARE = 0.05


@dataclass(frozen=True)
class Candidate:
    """A model of all rows, and the settings that gave it.

    Parameters
    ----------
    length_penalty, concavity, relax : float
    penalised : Solution
        The certified model.
    solution : Solution
        The same after relaxing.
    """

    length_penalty: float
    concavity: float
    relax: float
    penalised: Solution
    solution: Solution

    @property
    def n_rules(self) -> int:
        return len(self.solution.conjunctions)


@dataclass(frozen=True)
class Family:
    """The candidates of one path: one length penalty, one concavity, all alphas and relaxations.

    Parameters
    ----------
    plain : BaseRuleEstimator
        Fits one of them.
    assembly : Assembly
        Of all rows.
    relaxes : list of float
    rows : list of list of Candidate
        Alphas by relaxations.
    """

    plain: BaseRuleEstimator
    assembly: Assembly
    relaxes: list[float]
    rows: list[list[Candidate]]

    @property
    def candidates(self) -> list[Candidate]:
        return [candidate for row in self.rows for candidate in row]

    def add(self, solution: Solution, path: LatticePath) -> None:
        """Enter a certified model and what relaxing makes of it."""
        self.rows.append([
            Candidate(
                float(self.plain.length_penalty), float(self.plain.concavity), relax, solution,
                refitted(path, solution, relax),
            )
            for relax in self.relaxes
        ])  # fmt: skip

    def scores(
        self,
        sample: Sample,
        train: NDArray[np.intp],
        test: NDArray[np.intp],
        rate: Scorer,
        started: float,
        time_limit: float | None,
    ) -> NDArray[np.float64]:
        """Scores of all candidates' settings on one fold, in the order of ``candidates``.

        Raises
        ------
        KeyboardInterrupt
            When interrupted.
        """
        plain = clone(self.plain).set_params(n_jobs=None, time_limit=time_limit)
        plain.set_params(tol=max(float(plain.tol), _FOLD_TOL))
        assembly = plain._assemble(sample.take(train))
        path = plain._path(assembly, started)
        predictor = _Predictor(assembly, sample.take(test))
        out = np.full((len(self.rows), len(self.relaxes)), NOT_SCORED)
        for a, solution in enumerate(
            _solutions(path, [row[0].solution.alpha for row in self.rows], float(self.plain.tol))
        ):
            if solution.status == outcome.INTERRUPTED:
                raise KeyboardInterrupt
            if solution.status != outcome.OPTIMAL:
                break
            for r, relax in enumerate(self.relaxes):
                out[a, r] = rate(predictor(refitted(path, solution, relax)), test)
        return out.ravel()


def _solutions(path: LatticePath, alphas: Sequence[float], tol: float) -> Iterator[Solution]:
    """The solutions of a grid of alphas, or of a single one, to a gap between ``tol`` and the
    path's own: where the first rules come in, a gap of one percent is the difference between a
    rule and none.
    """
    if len(alphas) == 1:
        *_, last = path.approach(alphas[0])
        yield last
        return
    constant = path.problem.total_loss(path.constant_model().predictions.T)
    explained = 0.0
    for k, alpha in enumerate(alphas):
        gap = min(path.tol, max(tol, _FOLD_SHARE * explained))
        following = alphas[k + 1] if k + 1 < len(alphas) else None
        solution = path.solve(alpha, tol=gap, next_alpha=following)
        yield solution
        if solution.status != outcome.OPTIMAL:
            return
        explained = 1.0 - solution.certificate.primal / constant if constant > 0.0 else 0.0


class _Predictor:
    """Scores the rows of one sample with solutions that were learnt from another."""

    def __init__(self, assembly: Assembly, sample: Sample) -> None:
        data = sample.data
        codes = data if sample.as_is is not None else assembly.propositions.encode(data)
        self._lattice = replace(assembly.problem.lattice, codes=codes)
        terms = assembly.linear_terms
        self._dense = linear_columns(terms, data) if terms else None
        self._held: dict[tuple[int, ...], NDArray[np.uint8]] = {}

    def __call__(self, solution: Solution) -> NDArray[np.float64]:
        """Scores (n, T)."""
        scores = np.tile(solution.intercept, (self._lattice.n_rows, 1))
        for conjunction, weights in zip(solution.conjunctions, solution.coef, strict=True):
            if conjunction not in self._held:
                self._held[conjunction] = self._lattice.indicator(conjunction)
            scores += self._held[conjunction][:, None] * weights
        return scores if self._dense is None else scores + self._dense.T @ solution.linear_coef


def mean_scores(scores: NDArray[np.float64]) -> tuple[NDArray, NDArray, int]:
    """Means over the folds and their standard errors, and the number of folds behind them.

    Parameters
    ----------
    scores : ndarray of shape (candidates, folds)

    Returns
    -------
    means, errors : ndarray of shape (candidates,)
        NaN where a candidate was not scored, or has no score.
    n_folds : int
        Folds in which all candidates were scored are used alone where there are any.
    """
    scored = scores > NOT_SCORED
    scored |= np.isnan(scores)
    whole = scored.all(axis=0)
    used = scores[:, whole] if whole.any() else scores[:, scored.any(axis=0)]
    means = np.full(len(scores), np.nan)
    errors = np.full(len(scores), np.nan)
    for k, row in enumerate(used):
        known = row[~np.isnan(row)]
        if len(known) and (known > NOT_SCORED).all():
            means[k] = known.mean()
            errors[k] = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else 0.0
    return means, errors, used.shape[1]


def choose(
    candidates: list[Candidate], scores: NDArray[np.float64], max_rules: int | None, selection: str
) -> int:
    """Index of the candidate to keep.

    "best": the largest mean score, the fewest rules among equals; "one-standard-error": the fewest
    rules among those whose mean is within one standard error of it.  Without any scores the last
    one that was solved.

    Raises
    ------
    ValueError
        When all have too many rules.
    """
    n_rules = np.array([candidate.n_rules for candidate in candidates])
    allowed = np.ones(len(candidates), bool) if max_rules is None else n_rules <= max_rules
    if not allowed.any():
        fewest = candidates[int(n_rules.argmin())]
        raise ValueError(
            f"no model of the path has at most max_rules={max_rules} rules: the smallest has "
            f"{fewest.n_rules}, at alpha={fewest.solution.alpha:.6g}. Give larger alphas or "
            "max_rules."
        )
    means, errors, _ = mean_scores(scores)
    rated = allowed & ~np.isnan(means)
    if np.isnan(scores).all() and scores.size:
        raise ValueError(
            "No model has a score in any fold (as where no fold scores rows of more than one "
            "class): give more rows of the rarest class, another scoring or cv, or use the "
            "estimator without CV and give alpha."
        )
    if not rated.any():
        solved = [
            k
            for k, candidate in enumerate(candidates)
            if allowed[k] and candidate.solution.status == outcome.OPTIMAL
        ]
        return (solved or list(np.flatnonzero(allowed)))[-1]
    best = means[rated].max()
    bar = best
    if selection == "one-standard-error":
        bar -= errors[rated & (means == best)].max()
    near = np.flatnonzero(rated & (means >= bar))
    return int(min(near, key=lambda k: (n_rules[k], -means[k], -candidates[k].solution.alpha)))


def results(candidates: list[Candidate], scores: NDArray[np.float64]) -> dict[str, Any]:
    """What was tried and how it scored, one entry per candidate in every array."""
    means, errors, n_folds = mean_scores(scores)
    order = np.argsort(np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable"))
    return {
        "length_penalty": np.array([c.length_penalty for c in candidates]),
        "concavity": np.array([c.concavity for c in candidates]),
        "alpha": np.array([c.solution.alpha for c in candidates]),
        "relax": np.array([c.relax for c in candidates]),
        "n_rules": np.array([c.n_rules for c in candidates]),
        "relative_gap": np.array([c.penalised.certificate.relative_gap for c in candidates]),
        **{
            f"split{k}_test_score": np.where(np.isneginf(column), np.nan, column)
            for k, column in enumerate(scores.T)
        },
        "mean_test_score": means,
        "std_test_score": errors * np.sqrt(max(1, n_folds)),
        "rank_test_score": order + 1,
    }
