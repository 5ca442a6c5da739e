"""Certified paths of 20 alphas from alpha_max to alpha_max / 50, against the clock.

    python -m benchmarks.certified_paths --data DIR
    python -m benchmarks.certified_paths --data DIR --cases "magic spambase"

All rows of each set, log loss; every model of a path must come with a complete certificate and a
relative gap of at most 1e-3.  The best of ``--repeats`` runs after one path on a tenth of the rows.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.data import load
from benchmarks.runner import RESULTS, markdown, stamp

N_ALPHAS = 20
RATIO = 50
TOL = 1e-3


@dataclass(frozen=True)
class Case:
    """A path and the seconds it may take on two cores."""

    name: str
    target: float
    n_thresholds: int = 8
    length_penalty: float = 1.0


CASES = {
    "tic_tac_toe": Case("tic_tac_toe", 0.5, length_penalty=2.0),
    "kr_vs_kp": Case("kr_vs_kp", 0.5),
    "spambase": Case("spambase", 2.0),
    "magic": Case("magic", 6.0),
    "adult": Case("adult", 6.0),
    "magic-16": Case("magic", 60.0, n_thresholds=16, length_penalty=0.5),
}


def solve(case: Case, options: argparse.Namespace) -> tuple[list[Any], float]:
    """The models of the path, and the seconds of the fastest run."""
    import latticework

    data = load(case.name, options.data)
    settings = {
        "n_thresholds": case.n_thresholds, "length_penalty": case.length_penalty, "tol": TOL,
        "n_jobs": options.n_jobs,
    }  # fmt: skip
    latticework.rule_path(data.X[::10], data.y[::10], n_alphas=5, **settings)
    largest = next(iter(latticework.rule_path(data.X, data.y, n_alphas=1, **settings))).alpha
    alphas = np.geomspace(largest, largest / RATIO, N_ALPHAS)
    times = []
    for _ in range(options.repeats):
        start = time.perf_counter()
        path = list(latticework.rule_path(data.X, data.y, alphas=alphas, **settings))
        times.append(time.perf_counter() - start)
    return path, min(times)


def cross_validation(options: argparse.Namespace) -> str:
    """adult with 32 thresholds and what else RuleClassifierCV does by default."""
    from latticework import RuleClassifierCV

    data = load("adult", options.data)
    RuleClassifierCV(n_alphas=3, cv=2).fit(data.X[:2000], data.y[:2000])
    start = time.perf_counter()
    model = RuleClassifierCV(n_thresholds=32, n_jobs=options.n_jobs).fit(data.X, data.y)
    seconds = time.perf_counter() - start
    return (
        "## Cross-validation\n\nadult, 32 thresholds, RuleClassifierCV's defaults "
        f"({model.n_splits_} folds): {seconds:.1f} s (target 120 s); {len(model.rules_)} rules, "
        f"AUC over the folds {model.best_score_:.4f}, relative gap "
        f"{model.certificate_.relative_gap:.1e}."
    )


def row(name: str, case: Case, path: list[Any], seconds: float) -> list[str]:
    certificates = [model.certificate_ for model in path]
    gap = max(float(certificate.relative_gap) for certificate in certificates)
    complete = all(bool(certificate.complete) for certificate in certificates)
    kept = seconds <= case.target and complete and gap <= TOL
    return [
        name, str(case.n_thresholds), f"{case.length_penalty:g}", f"{seconds:.2f}",
        f"{case.target:g}", "yes" if kept else "no", f"{gap:.1e}", "yes" if complete else "no",
        str(len(path[-1].rules_)), f"{certificates[-1].nodes_searched:,}",
    ]  # fmt: skip


HEADER = [
    "case", "thresholds", "length penalty", "s", "target s", "kept", "largest relative gap",
    "complete", "rules at the end", "nodes of the path",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="DIR", help="folder with the sets; without it, OpenML")
    parser.add_argument("--cases", default=" ".join(CASES), help="space-separated")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=2, help="threads")
    options = parser.parse_args()
    rows = []
    for name in options.cases.split():
        rows.append(row(name, CASES[name], *solve(CASES[name], options)))
        print(" | ".join(rows[-1]), flush=True)
    names = ("latticework", "numba", "numpy", "scikit-learn")
    text = [
        "# Certified paths: 20 alphas to alpha_max / 50",
        markdown(HEADER, rows),
        cross_validation(options),
        f"{options.n_jobs} threads. " + stamp(f"{name} {version(name)}" for name in names),
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "certified_paths.md").write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
