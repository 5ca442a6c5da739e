"""Small tables with planted rules, for tests of the estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd

LOSSES_OF_CLASSES = ("log_loss", "hinge", "squared_hinge")
LOSSES_OF_NUMBERS = ("squared_error", "huber", "epsilon_insensitive", "poisson")


def mixed_frame(n=80, seed=0):
    """Numbers, whole numbers, strings, an ordered category and booleans; some cells missing."""
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 12, n).round(1)
    age[rng.random(n) < 0.1] = np.nan
    colour = rng.choice(["red", "green", "blue"], n).astype(object)
    colour[rng.random(n) < 0.1] = None
    size = pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True)
    return pd.DataFrame({
        "age": age,
        "count": rng.integers(0, 6, n),
        "colour": pd.Series(colour, dtype="str"),
        "size": size,
        "smoker": rng.random(n) < 0.4,
    })  # fmt: skip


def planted_scores(frame, seed=0, noise=0.5):
    """A score that two rules and noise make."""
    rng = np.random.default_rng(seed + 1000)
    first = (frame["age"] > 48) & (frame["colour"] == "red").fillna(False)
    second = (frame["count"] <= 2) & frame["smoker"]
    rules = 2.0 * first.to_numpy(float) - 1.5 * second.to_numpy(float)
    return rules + rng.normal(0.0, noise, len(frame))


def numeric_sample(n=60, m=3, seed=0):
    """Numbers with two decimals, and a score of two rules and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)).round(2)
    score = 1.5 * ((X[:, 0] > 0) & (X[:, 1] <= 0.5)) - (X[:, m - 1] > 0.3)
    return X, score + rng.normal(0.0, 0.4, n)


def target_for(loss, score):
    """A target that suits a loss: two classes, counts or numbers."""
    if loss in LOSSES_OF_CLASSES:
        return np.where(score > np.median(score), "yes", "no")
    if loss == "poisson":
        return np.random.default_rng(3).poisson(np.exp(0.5 * score)).astype(float)
    return score
