"""Piecewise linear losses on more rows than a linear program holds one by one."""

from __future__ import annotations

import numpy as np
import pytest

import latticework as lw


@pytest.mark.parametrize("noise", [0.3, 1.0])
@pytest.mark.parametrize("n", [1500, 3000])
def test_hinge_on_many_rows(n, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    y = X[:, 0] + noise * rng.normal(size=n) > 0
    model = lw.RuleClassifier(alpha=0.01, loss="hinge").fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.certificate_.complete
    assert lw.verify_certificate(model, X, y)


@pytest.mark.parametrize("seed", range(2))
def test_epsilon_insensitive_on_many_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 2))
    y = (X[:, 0] > 0.3) * 2.0 + 0.5 * rng.normal(size=2000)
    model = lw.RuleRegressor(alpha=0.02, loss="epsilon_insensitive").fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    assert lw.verify_certificate(model, X, y)
