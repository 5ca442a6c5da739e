"""Ctrl-C, as a real signal at any moment of a fit, keeps the best model with its gap."""

from __future__ import annotations

import os
import signal
import threading
import warnings

import numpy as np
import pytest

import latticework as lw
from latticework.exceptions import CertificateWarning
from latticework.search.limits import stopping_on_ctrl_c


def noise(n=300, m=12):
    """Noise at a small alpha keeps a fit busy for minutes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, m)), rng.normal(size=n) > 0


@pytest.fixture
def ctrl_c():
    """Sends SIGINT to this process after so many seconds."""
    timers = []

    def after(seconds):
        timers.append(threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield after
    for timer in timers:
        timer.cancel()


@pytest.mark.parametrize("seconds", [0.01, 0.1, 0.2, 0.5])
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_ctrl_c_keeps_the_model(ctrl_c, loss, seconds):
    X, y = noise()
    model = lw.RuleClassifier(alpha=1e-4, length_penalty=0.2, loss=loss)
    with stopping_on_ctrl_c():  # a signal before the fit or after it is caught here
        ctrl_c(seconds)
        with pytest.warns(CertificateWarning, match="interrupted"):
            model.fit(X, y)
    assert model.status_ == "interrupted"
    assert 0.0 <= model.lower_bound_ <= model.objective_
    assert model.certificate_.relative_gap > 1e-3
    assert len(model.predict(X)) == len(y)


def test_ctrl_c_among_folds(ctrl_c):
    X, y = noise()
    lw.RuleClassifierCV(n_alphas=3, cv=2).fit(X[:50], y[:50])
    model = lw.RuleClassifierCV(n_alphas=40, cv=20, length_penalty=0.5)
    with stopping_on_ctrl_c(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ctrl_c(1.0)
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert any("cut short" in str(warning.message) for warning in seen)


def test_ctrl_c_shortens_a_path(ctrl_c):
    X, y = noise()
    with stopping_on_ctrl_c():
        ctrl_c(0.5)
        with pytest.warns(CertificateWarning, match=r"path stopped after \d+ of 60 alphas"):
            path = lw.rule_path(X, y, n_alphas=60, length_penalty=0.2)
    assert path[-1].status_ == "interrupted"
    assert all(model.status_ == "optimal" for model in path[:-1])


def test_afterwards_ctrl_c_is_what_it_was(ctrl_c):
    X, y = noise(60, 3)
    before = signal.getsignal(signal.SIGINT)
    lw.RuleClassifier().fit(X, y)
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert lw.RuleClassifier().fit(X, y).status_ == "optimal"


def test_a_second_ctrl_c_gives_up():
    def twice():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with stopping_on_ctrl_c(), pytest.raises(KeyboardInterrupt):
        twice()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_fits_in_other_threads_leave_signals_alone():
    X, y = noise(60, 3)
    models = []
    thread = threading.Thread(target=lambda: models.append(lw.RuleClassifier().fit(X, y)))
    thread.start()
    thread.join()
    assert models[0].status_ == "optimal"


def test_somebody_elses_handler_stays():
    calls = []
    before = signal.signal(signal.SIGINT, lambda *_: calls.append(None))
    try:
        with stopping_on_ctrl_c():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == [None]
