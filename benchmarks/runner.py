"""What the accuracy benchmarks share: one measurement, the file of results, tables, the stamp."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

from benchmarks.data import Dataset
from benchmarks.rivals import Boomer, commit, method

RESULTS = Path(__file__).parent / "results"
Cell = tuple[str, str, int]


def arguments(description: str, default_methods: str, default_sets: Sequence[str]) -> Any:
    """The command line that the accuracy benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", metavar="DIR", help="folder with the sets; without it, OpenML")
    parser.add_argument(
        "--methods", default=default_methods, help="space-separated, in one string: 'rulefit50 ebm'"
    )
    parser.add_argument("--sets", default=" ".join(default_sets), help="space-separated")
    parser.add_argument("--quick", action="store_true", help="one split of each set")
    parser.add_argument(
        "--seed-base",
        type=int,
        default=0,
        help="seeds are this number and the ones after it: 0 for what is reported, 1000 for "
        "development, so that no choice is made on the reported splits",
    )
    parser.add_argument("--boomer-python", metavar="PATH", help="Python of BOOMER's own venv")
    parser.add_argument("--n-jobs", type=int, default=1, help="cores for methods that take them")
    parser.add_argument("--out", type=Path, help="file of results (.jsonl); the table goes beside")
    parser.add_argument("--redo", action="store_true", help="measure again what the file has")
    options = parser.parse_args()
    Boomer.python = options.boomer_python
    if "boomer" in options.methods and not options.boomer_python:
        parser.error("boomer needs --boomer-python PATH, the Python of its own environment")
    options.methods, options.sets = options.methods.split(), options.sets.split()
    return options


class Store:
    """Results, one JSON object a line, appended as they come; the last line of a cell counts."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self.rows: dict[Cell, dict[str, Any]] = {}
        for line in lines:
            row = json.loads(line)
            self.rows[row["method"], row["set"], row["seed"]] = row

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["method"], row["set"], row["seed"]] = row
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as out:
            out.write(json.dumps(row) + "\n")

    def frame(self, methods: Iterable[str] | None = None) -> pd.DataFrame:
        """Rows without an error, of these methods or of all."""
        rows = pd.DataFrame(list(self.rows.values()))
        if rows.empty:
            return rows
        keep = rows["error"].isna() if "error" in rows else np.full(len(rows), True)
        return rows[keep & (rows["method"].isin(methods) if methods is not None else True)]


def measure(
    spec: str, train: tuple[pd.DataFrame, np.ndarray], test: tuple[pd.DataFrame, np.ndarray],
    seed: int, n_jobs: int,
) -> dict[str, Any]:  # fmt: skip
    """Fit one method on one split; its scores on the test part, sizes and seconds."""
    classes, y = np.unique(train[1], return_inverse=True)
    truth = np.searchsorted(classes, test[1])
    model = method(spec)(seed, n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start, start_cpu = time.perf_counter(), time.process_time()
        model.fit(train[0], y)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
        probability, label = model.predict_proba(test[0]), model.predict(test[0])
    return {
        "f1": f1_score(truth, label, average="macro"),
        "auc": roc_auc_score(truth, probability),
        "log_loss": log_loss(truth, np.clip(probability, 1e-6, 1 - 1e-6)),
        "accuracy": accuracy_score(truth, label),
        "rules": None if np.isnan(model.n_rules) else model.n_rules,
        "length": None if np.isnan(model.mean_length) else model.mean_length,
        "seconds": seconds if model.seconds is None else model.seconds,
        "cpu_seconds": cpu_seconds if model.cpu_seconds is None else model.cpu_seconds,
        "version": model.version(),
        "details": model.details,
    }


def warm_up(specs: Iterable[str], n_jobs: int) -> None:
    """One small untimed fit each, so that no timed fit pays for compiling or importing."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(200, 4)), columns=list("abcd"))
    X["e"] = pd.Categorical(random.choice(["u", "v", "w"], 200))
    y = ((X["a"] > 0) ^ (random.random(200) < 0.2)).to_numpy()
    for spec in specs:
        measure(spec, (X, y), (X, y), 0, n_jobs)


def run(options: Any, splits: Iterator[tuple[Dataset, int, np.ndarray]], store: Store) -> None:
    """Measure every method that the store lacks on every split, one split after the other.

    ``splits`` yields (set, seed, mask of its training rows); a set with its own test part has all
    rows in the mask.
    """
    done = {cell for cell, row in store.rows.items() if "error" not in row and not options.redo}
    ready: set[str] = set()
    for data, seed, mask in splits:
        own = data.test
        test = (data.X[~mask], data.y[~mask]) if own is None else (own.X, own.y)
        for spec in options.methods:
            if (spec, data.name, seed) in done:
                continue
            row = {"method": spec, "set": data.name, "seed": seed, "train_rows": int(mask.sum())}
            try:
                if spec not in ready:
                    warm_up([spec], options.n_jobs)
                    ready.add(spec)
                row |= measure(spec, (data.X[mask], data.y[mask]), test, seed, options.n_jobs)
            except Exception as error:  # a rival's failure is a result, not the end of the run
                row["error"] = f"{type(error).__name__}: {error}"[:300]
            store.add(row)
            print(progress(row), flush=True)


def progress(row: dict[str, Any]) -> str:
    head = f"{row['set']:>18} {row['seed']:>5} {row['method']:<20}"
    if "error" in row:
        return f"{head} {row['error']}"
    rules = "" if row["rules"] is None else f"{row['rules']:4.0f} rules"
    return f"{head} F1 {row['f1']:.3f}  AUC {row['auc']:.3f}  {rules:>10}  {row['seconds']:.2f} s"


def stamp(versions: Iterable[str]) -> str:
    """Where and with what the numbers were made."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Machine: {cpu}, {joblib.cpu_count()} cores usable, {memory:.0f} GiB; "
        f"Python {platform.python_version()}; {', '.join(sorted(set(versions)))}; "
        f"written at {commit()} on {time.strftime('%Y-%m-%d')}."
    )


def mean_std(values: pd.Series, digits: int = 3) -> str:
    """``0.748 ± 0.021`` over splits; only the mean when there is one; empty when there is none."""
    values = values.dropna()
    if values.empty:
        return ""
    mean = f"{values.mean():.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {values.std():.{digits}f}"


def number(value: float, digits: int = 3) -> str:
    return "" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
