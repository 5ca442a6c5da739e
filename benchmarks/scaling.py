"""Cost in rows, columns and depth on synthetic data with planted rules.

    python -m benchmarks.scaling                        # every series
    python -m benchmarks.scaling --series rows --largest 100000
    python -m benchmarks.scaling --series histogram

Each point is one process: seconds of a path of 20 alphas with its certificates after a warm-up, the
peak of memory beside what the data take, and whether the planted rules were found.  The exponent
is the slope of log seconds over log rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.runner import RESULTS, markdown, stamp

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS = (10, 30, 100, 300)
DEPTHS = (1, 2, 3, 4, 6)
BASE = {"rows": 30_000, "columns": 30, "max_length": None}
# To a tenth of the largest alpha: below, small tables have little but noise left to fit, and
# the search nothing to cut off.
N_ALPHAS, RATIO = 20, 10
PATH = {"n_thresholds": 7, "length_penalty": 1.0, "tol": 1e-3, "n_jobs": 2}
LEVELS = np.array(["red", "green", "blue", "grey"])
Indicator = Callable[[pd.DataFrame], pd.Series]
# Conjunctions of one to three conditions with the weight each adds to the log odds.
PLANTED: tuple[tuple[Indicator, float], ...] = (
    (lambda X: (X["x0"] > 0.5) & (X["x1"] <= 0.5), 2.0),
    (lambda X: (X["x3"] <= 0.25) & (X["x2"] == "red"), -2.5),
    (lambda X: X["x4"] > 0.75, 1.5),
    (lambda X: (X["x0"] <= 0.5) & (X["x5"] != "blue") & (X["x6"] > 0.25), -2.0),
    (lambda X: (X["x7"] > 0.5) & (X["x8"] == "green"), 2.0),
)
FOUND = 0.9  # Jaccard overlap of a planted rule with a learnt one


def synthetic(rows: int, columns: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Uniform numbers with every third column (x2, x5, ...) of four levels; labels by PLANTED."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            f"x{j}": pd.Categorical.from_codes(random.integers(4, size=rows), LEVELS)
            if j % 3 == 2
            else random.random(rows)
            for j in range(columns)
        }
    )
    score = sum(weight * rule(X).to_numpy() for rule, weight in PLANTED)
    return X, random.random(rows) < 1 / (1 + np.exp(-np.asarray(score, dtype=float)))


def overlap(model: Any, X: pd.DataFrame) -> list[float]:
    """For each planted rule the largest Jaccard overlap with a learnt one, on these rows."""
    learnt = np.asarray(model.transform(X), dtype=bool)
    best = []
    for rule, _ in PLANTED:
        planted = rule(X).to_numpy()[:, None]
        shared = (learnt & planted).sum(axis=0)
        best.append(float((shared / (learnt | planted).sum(axis=0)).max(initial=0.0)))
    return best


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def solve(point: dict[str, Any]) -> dict[str, Any]:
    """One path in this process."""
    import latticework

    settings = {**PATH, "max_length": point["max_length"]}
    # Compiles, or reads the cache.
    latticework.rule_path(*synthetic(500, 30, seed=1), n_alphas=3, **settings)
    X, y = synthetic(point["rows"], point["columns"])
    largest = latticework.rule_path(X, y, n_alphas=1, **settings)[0].alpha
    alphas = np.geomspace(largest, largest / RATIO, N_ALPHAS)
    before = peak_mb()
    start = time.perf_counter()
    path = list(latticework.rule_path(X, y, alphas=alphas, **settings))
    seconds = time.perf_counter() - start
    peak = peak_mb()  # before the check below takes memory of its own
    found = overlap(path[-1], synthetic(20_000, point["columns"], seed=2)[0])
    return {
        "seconds": seconds,
        "data_mb": float(X.memory_usage(deep=True).sum()) / 2**20,
        "before_mb": before,
        "peak_mb": peak,
        "found": sum(value >= FOUND for value in found),
        "rules": len(path[-1].rules_),
        "largest_gap": max(float(model.certificate_.relative_gap) for model in path),
        "complete": all(bool(model.certificate_.complete) for model in path),
        "nodes": int(path[-1].certificate_.nodes_searched),  # of the whole path
    }


def histogram(rows: int, columns: int = 30, n_codes: int = 16) -> dict[str, float]:
    """Best of five: one pass of histograms over all rows, beside numpy's sums of the same bytes."""
    from latticework._kernels.lattice import add_to_histogram

    random = np.random.default_rng(0)
    codes = random.integers(n_codes, size=(rows, columns)).astype(np.uint8)
    residual = random.normal(size=(rows, 1))
    every, chosen = np.arange(rows, dtype=np.int32), np.arange(columns, dtype=np.int32)
    offset = np.arange(0, (columns + 1) * n_codes, n_codes, dtype=np.int32)
    bins = np.zeros((columns * n_codes, 1, 2))
    words = codes.reshape(-1)[: codes.size // 8 * 8].view(np.uint64)

    def best(action: Callable[[], object]) -> float:
        action()
        times = []
        for _ in range(5):
            start = time.perf_counter()
            action()
            times.append(time.perf_counter() - start)
        return min(times)

    arguments = (codes, every, chosen, offset, residual, 1.0, bins)
    return {
        "histogram": best(lambda: add_to_histogram(*arguments)),
        "cells": best(lambda: (codes.sum(), residual.sum())),
        "words": best(lambda: (words.sum(), residual.sum())),
    }


def in_own_process(point: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scaling", "--worker", json.dumps(point)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {**point, **json.loads(done.stdout)}


def series(name: str, largest: int) -> list[dict[str, Any]]:
    values: dict[str, tuple[int, ...]] = {"rows": ROWS, "columns": COLUMNS, "max_length": DEPTHS}
    points = []
    for value in values[name]:
        if name != "rows" or value <= largest:
            points.append(in_own_process({**BASE, name: value}))
            print(f"{name} {value:,}: {points[-1]['seconds']:.2f} s", flush=True)
    return points


HEADER = [
    "rows", "columns", "depth", "s", "data MB", "peak MB", "added MB", "planted rules found",
    "rules", "largest relative gap", "complete", "nodes",
]  # fmt: skip


def table(points: list[dict[str, Any]]) -> str:
    return markdown(
        HEADER,
        [
            [f"{p['rows']:,}", str(p["columns"]), str(p["max_length"] or "any"),
             f"{p['seconds']:.2f}", f"{p['data_mb']:.0f}", f"{p['peak_mb']:.0f}",
             f"{p['peak_mb'] - p['before_mb']:.0f}", f"{p['found']} of {len(PLANTED)}",
             str(p["rules"]), f"{p['largest_gap']:.1e}", "yes" if p["complete"] else "no",
             f"{p['nodes']:,}"]
            for p in points
        ],
    )  # fmt: skip


def section(name: str, largest: int) -> str:
    if name == "histogram":
        times = histogram(min(largest, ROWS[-1]))
        return (
            f"## The root's histograms\n\n{min(largest, ROWS[-1]):,} rows x 30 columns: "
            f"{times['histogram'] * 1e3:.1f} ms; numpy's sum of the same codes and residuals "
            f"{times['cells'] * 1e3:.1f} ms ({times['histogram'] / times['cells']:.2f} times), "
            f"of the same bytes as 64-bit words {times['words'] * 1e3:.1f} ms."
        )
    points = series(name, largest)
    text = f"## By {name.replace('max_length', 'depth')}\n\n{table(points)}"
    if name == "rows" and len(points) > 1:
        rows, seconds = (np.log([p[key] for p in points]) for key in ("rows", "seconds"))
        text += f"\n\nExponent of the seconds in the rows: {np.polyfit(rows, seconds, 1)[0]:.2f}."
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", default="rows columns max_length histogram")
    parser.add_argument("--largest", type=int, default=ROWS[-1], help="largest number of rows")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(solve(json.loads(options.worker))))
        return
    sections = [section(name, options.largest) for name in options.series.split()]
    names = ("latticework", "numba", "numpy", "scikit-learn")
    text = "\n\n".join(["# Scaling", *sections, stamp(f"{name} {version(name)}" for name in names)])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scaling.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
