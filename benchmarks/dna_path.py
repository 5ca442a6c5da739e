"""Exact regularisation paths over all conjunctions of `dna` (2,000 rows, 180 binary columns).

    python -m benchmarks.dna_path --data DIR                      # every case of the table
    python -m benchmarks.dna_path --data DIR --cases d3x100

The problem is that of safe pattern pruning (Nakagawa et al., KDD 2016):
1/2 sum (y - f)^2 + lambda * sum |w| with a free intercept, over all conjunctions of at most D
conditions "column = 1", on a grid of lambdas from lambda_max down to lambda_max / 100.  The
objective is computed here from each model's predictions and coefficients, on that scale.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.data import load
from benchmarks.runner import RESULTS, markdown, stamp

LAMBDA_MAX = 502.733
TOL = 1e-8  # the published program's


@dataclass(frozen=True)
class Case:
    """A path and what is known about it: the optimum at its end, the published program's time."""

    max_length: int
    n_lambdas: int
    optimum: float | None
    published_seconds: str
    target_seconds: float | None


CASES = {
    "d2x20": Case(2, 20, 115.7844084, "14.5", None),
    "d3x20": Case(3, 20, 106.8333663, "205", None),
    "d3x100": Case(3, 100, 106.8333663, "311", 15.0),
    "d4x20": Case(4, 20, None, "not done in 400", 60.0),
}


def solve(case: Case, folder: str | None, n_jobs: int) -> dict[str, Any]:
    """One path in this process: seconds (after a warm-up path), memory, optimum and certificate."""
    import latticework

    data = load("dna", folder)
    n = len(data.y)
    settings = {
        "loss": "squared_error", "conditions": "as-is", "length_penalty": 0.0,
        "max_length": case.max_length, "tol": TOL, "n_jobs": n_jobs,
    }  # fmt: skip
    # The library's objective is the mean loss plus alpha times the penalty: alpha = lambda / n.
    alphas = np.geomspace(LAMBDA_MAX, LAMBDA_MAX / 100, case.n_lambdas) / n
    latticework.rule_path(data.X[:200], data.y[:200], n_alphas=3, **{**settings, "max_length": 2})
    start = time.perf_counter()
    path = list(latticework.rule_path(data.X, data.y, alphas=alphas, **settings))
    seconds = time.perf_counter() - start
    last = path[-1]
    residual = data.y - last.predict(data.X)
    objective = 0.5 * residual @ residual + LAMBDA_MAX / 100 * np.abs(last.coef_).sum()
    return {
        "seconds": seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "objective": float(objective),
        "rules": len(last.rules_),
        "largest_gap": max(float(model.certificate_.relative_gap) for model in path),
        "complete": all(bool(model.certificate_.complete) for model in path),
        "nodes": int(path[-1].certificate_.nodes_searched),  # of the whole path
    }


def row(name: str, case: Case, found: dict[str, Any]) -> list[str]:
    error = "" if case.optimum is None else f"{found['objective'] / case.optimum - 1:+.1e}"
    return [
        name, str(case.max_length), str(case.n_lambdas), f"{found['seconds']:.1f}",
        "" if case.target_seconds is None else f"{case.target_seconds:.0f}",
        case.published_seconds, f"{found['peak_mb']:.0f}", f"{found['objective']:.7f}", error,
        str(found["rules"]), f"{found['largest_gap']:.1e}", "yes" if found["complete"] else "no",
        f"{found['nodes']:,}",
    ]  # fmt: skip


HEADER = [
    "case", "D", "lambdas", "s", "target s", "published C++ s", "peak MB", "objective at the end",
    "relative to the known optimum", "rules", "largest relative gap", "complete", "nodes",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="DIR", required=True, help="folder that holds dna.csv.gz")
    parser.add_argument("--cases", default=" ".join(CASES), help="space-separated")
    parser.add_argument("--n-jobs", type=int, default=2, help="threads")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(solve(Case(**json.loads(options.worker)), options.data, options.n_jobs)))
        return
    rows = []
    for name in options.cases.split():
        # A process of its own each, so that the peak of memory is that of one path.
        command = [
            sys.executable, "-m", "benchmarks.dna_path", "--data", options.data,
            "--n-jobs", str(options.n_jobs), "--worker", json.dumps(asdict(CASES[name])),
        ]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(row(name, CASES[name], json.loads(done.stdout)))
        print(" | ".join(rows[-1]), flush=True)
    title = "# Exact paths over all conjunctions of dna\n\n"
    note = (
        "\n\nThe published program ran on one core; seconds here are of "
        f"{options.n_jobs} threads. Relative gap asked for: {TOL:g}, as the published program's."
    )
    versions = f"\n\n{stamp(_versions())}\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "dna_path.md").write_text(title + markdown(HEADER, rows) + note + versions)


def _versions() -> list[str]:
    from importlib.metadata import version

    return [f"{name} {version(name)}" for name in ("latticework", "numba", "numpy", "scikit-learn")]


if __name__ == "__main__":
    main()
