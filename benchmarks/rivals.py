"""Every method of the benchmarks behind one face: fit, predict, predict_proba, sizes.

A method is named on the command line by its registry name, an optional limit on the number of
rules, and optional parameters: ``rulefit50``, ``latticework20``,
``latticework50:concavity=0.5,n_thresholds=16``.  Libraries are imported on first use, so an
environment needs only those of the methods that it runs.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.encoding import category_codes, mixed_array, one_hot


class Method:
    """A binary classifier with labels 0 and 1 on a frame of numeric and categorical columns.

    ``n_rules`` and ``mean_length`` are NaN where the model has no rules; ``details`` is written
    beside the scores.  ``seconds`` is set only by methods that run elsewhere and time themselves.
    """

    package = ""
    limited = False  # whether a number after the name limits its rules
    n_rules: float = np.nan
    mean_length: float = np.nan
    seconds: float | None = None
    cpu_seconds: float | None = None

    def __init__(self, max_rules: int | None, seed: int, n_jobs: int, **parameters: Any) -> None:
        self.max_rules, self.seed, self.n_jobs = max_rules, seed, n_jobs
        self.parameters = parameters
        self.details: dict[str, Any] = {}
        self.model: Any = None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        raise NotImplementedError

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Probability of label 1."""
        return self.model.predict_proba(self.encoded(X))[:, 1]

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict(self.encoded(X))).astype(int)

    def encoded(self, X: pd.DataFrame) -> Any:
        return X

    def version(self) -> str:
        return f"{self.package} {importlib.metadata.version(self.package)}"

    def set_lengths(self, lengths: list[int]) -> None:
        self.n_rules = float(len(lengths))
        self.mean_length = float(np.mean(lengths)) if lengths else 0.0


class Latticework(Method):
    package = "latticework"
    limited = True

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        from latticework import RuleClassifierCV

        limit = {} if self.max_rules is None else {"max_rules": self.max_rules}
        parameters = {"random_state": self.seed, "n_jobs": self.n_jobs, **limit, **self.parameters}
        self.model = RuleClassifierCV(**parameters).fit(X, y)
        self.set_lengths([len(rule) for rule in self.model.rules_])
        certificate = self.model.certificate_
        self.details = {
            "status": self.model.status_,
            "relative_gap": float(certificate.relative_gap),
            "complete": bool(certificate.complete),
        }
        return self

    def version(self) -> str:
        return f"{super().version()} at {commit()}"


class _OneHotMethod(Method):
    """Methods that want one numeric matrix without missing cells."""

    def encoded(self, X: pd.DataFrame) -> np.ndarray:
        return self.encoder.transform(X)

    def fit_encoded(self, X: pd.DataFrame) -> np.ndarray:
        self.encoder = one_hot(X).fit(X)
        return self.encoder.transform(X)


class _Imodels(_OneHotMethod):
    package = "imodels"
    limited = True

    def read_rules(self) -> None:
        rules = self.model.get_rules()
        if "type" in rules:
            used = rules["coef"] != 0
            self.details["linear_terms"] = int((used & (rules["type"] == "linear")).sum())
            rules = rules[used & (rules["type"] == "rule")]
        self.set_lengths([rule.count(" and ") + 1 for rule in rules["rule"]])

    def fit_model(self, model: Any, X: pd.DataFrame, y: np.ndarray) -> Method:
        self.model = model.fit(self.fit_encoded(X), y)
        self.read_rules()
        return self


class RuleFit(_Imodels):
    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        from imodels import RuleFitClassifier

        limit = {} if self.max_rules is None else {"max_rules": self.max_rules}
        return self.fit_model(
            RuleFitClassifier(random_state=self.seed, **limit, **self.parameters), X, y
        )


class Figs(_Imodels):
    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        from imodels import FIGSClassifier

        limit = {} if self.max_rules is None else {"max_rules": self.max_rules}
        return self.fit_model(
            FIGSClassifier(random_state=self.seed, **limit, **self.parameters), X, y
        )


class BoostedRules(_Imodels):
    """AdaBoost on stumps; every stump is two rules."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        from imodels import BoostedRulesClassifier

        limit = {} if self.max_rules is None else {"n_estimators": self.max_rules // 2}
        return self.fit_model(
            BoostedRulesClassifier(random_state=self.seed, **limit, **self.parameters), X, y
        )


class FastOgb(Method):
    """Orthogonal gradient boosting with its own conditions; labels are -1 and +1."""

    package = "fastogb"
    limited = True

    def encoded(self, X: pd.DataFrame) -> np.ndarray:
        return mixed_array(X)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        from fastogb import (
            FullyCorrective,
            GeneralRuleBoostingEstimator,
            OrthogonalBoostingObjective,
        )

        parameters = {"search": "ogb", "include_default_rule": True, **self.parameters}
        self.model = GeneralRuleBoostingEstimator(
            num_rules=self.max_rules or 10,
            objective_function=OrthogonalBoostingObjective,
            weight_update_method=FullyCorrective(),
            loss="logistic",
            n_jobs=self.n_jobs,
            **parameters,
        )
        self.model.fit(self.encoded(X), 2 * y - 1)
        self.set_lengths([len(rule.q) for rule in self.model.rules_ if len(rule.q)])
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return (self.predict_proba(X) > 0.5).astype(int)


class Boomer(Method):
    """BOOMER with 1,000 rules unless limited, run by the interpreter of ``--boomer-python``."""

    package = "mlrl-boomer"
    limited = True
    python: str | None = None
    _worker: subprocess.Popen[str] | None = None

    @classmethod
    def ask(cls, request: dict[str, Any]) -> dict[str, Any]:
        if cls._worker is None:
            if cls.python is None:
                raise RuntimeError("boomer needs --boomer-python PATH, the Python of its own venv")
            script = str(Path(__file__).with_name("boomer_worker.py"))
            cls._worker = subprocess.Popen(
                [cls.python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert cls._worker.stdin is not None
        assert cls._worker.stdout is not None
        cls._worker.stdin.write(json.dumps(request) + "\n")
        cls._worker.stdin.flush()
        reply = cls._worker.stdout.readline()
        if not reply:
            cls._worker = None
            raise RuntimeError("the BOOMER worker ended; its message is on standard error")
        return dict(json.loads(reply))

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        codes, self.nominal = category_codes(X)
        with tempfile.TemporaryDirectory() as folder:
            data = f"{folder}/fit.npz"
            np.savez(data, X=codes, y=y.astype(np.uint8))
            request = {"do": "fit", "data": data, "seed": self.seed, "nominal": self.nominal}
            # BOOMER counts its default rule among the rules.
            reply = self.ask({**request, "max_rules": self.max_rules})
        self.seconds, self.cpu_seconds = reply["seconds"], reply["cpu_seconds"]
        self.n_rules, self.mean_length = reply["n_rules"], reply["mean_length"]
        self._version = reply["version"]
        return self

    def answers(self, X: pd.DataFrame) -> dict[str, np.ndarray]:
        with tempfile.TemporaryDirectory() as folder:
            data, out = f"{folder}/new.npz", f"{folder}/out.npz"
            np.savez(data, X=category_codes(X)[0])
            self.ask({"do": "predict", "data": data, "out": out})
            return dict(np.load(out))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.answers(X)["probability"]

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.answers(X)["label"].ravel().astype(int)

    def version(self) -> str:
        return f"{self.package} {self._version}"


class Ebm(Method):
    package = "interpret-core"

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        from interpret.glassbox import ExplainableBoostingClassifier

        self.model = ExplainableBoostingClassifier(
            random_state=self.seed, n_jobs=self.n_jobs, **self.parameters
        ).fit(X, y)
        return self


class LightGbm(Method):
    package = "lightgbm"

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        from lightgbm import LGBMClassifier

        self.model = LGBMClassifier(
            random_state=self.seed, n_jobs=self.n_jobs, verbose=-1, **self.parameters
        ).fit(_plain_names(X), y)
        return self

    def encoded(self, X: pd.DataFrame) -> pd.DataFrame:
        return _plain_names(X)


class XGBoost(Method):
    package = "xgboost"

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        from xgboost import XGBClassifier

        self.model = XGBClassifier(
            random_state=self.seed,
            n_jobs=self.n_jobs,
            enable_categorical=True,
            **self.parameters,
        ).fit(_plain_names(X), y)
        return self

    def encoded(self, X: pd.DataFrame) -> pd.DataFrame:
        return _plain_names(X)


class L1Logistic(Method):
    """l1 logistic regression on this library's single conditions, penalty by cross-validation.

    The folds score AUC: on a few dozen rows log loss picks penalties that leave almost nothing
    (macro-F1 .710 over the twelve sets of Table 2, against .745).
    """

    package = "scikit-learn"

    def encoded(self, X: pd.DataFrame) -> np.ndarray:
        return self.conditions.transform(X).astype(float)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        from sklearn.linear_model import LogisticRegressionCV

        from latticework.rules.propositionalize import Propositionalizer

        self.conditions = Propositionalizer().fit(X)
        settings: dict[str, Any] = {
            "Cs": 10, "cv": 3, "solver": "liblinear", "scoring": "roc_auc",
            "l1_ratios": (1.0,), "use_legacy_attributes": False, "max_iter": 1000,
        }  # fmt: skip
        self.model = LogisticRegressionCV(
            random_state=self.seed, **{**settings, **self.parameters}
        ).fit(self.encoded(X), y)
        self.set_lengths([1] * int(np.count_nonzero(self.model.coef_)))
        return self


METHODS: dict[str, type[Method]] = {
    "latticework": Latticework,
    "rulefit": RuleFit,
    "figs": Figs,
    "boosted": BoostedRules,
    "fastogb": FastOgb,
    "boomer": Boomer,
    "ebm": Ebm,
    "lightgbm": LightGbm,
    "xgboost": XGBoost,
    "l1logit": L1Logistic,
}


def commit() -> str:
    """The commit of the working tree, marked when the tree differs from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    return done.stdout.strip() or "an unknown commit"


def _plain_names(X: pd.DataFrame) -> pd.DataFrame:
    """The frame with names x0, x1, ...: boosting libraries refuse some characters in names."""
    return X.set_axis([f"x{k}" for k in range(X.shape[1])], axis=1)


def method(spec: str) -> Callable[[int, int], Method]:
    """What builds the method that a command-line name stands for, given a seed and n_jobs.

    >>> method("rulefit50")(0, 1).max_rules
    50
    """
    name, _, settings = spec.partition(":")
    match = re.fullmatch(r"(\w*?)(\d*)", name)
    base, limit = match.groups() if match else (name, "")
    if base not in METHODS:
        raise SystemExit(f"unknown method {spec!r}: known are {', '.join(METHODS)}")
    if limit and not METHODS[base].limited:
        raise SystemExit(f"{spec!r}: {base} takes no limit on its number of rules")
    parameters = _literal_arguments(settings)

    def build(seed: int, n_jobs: int) -> Method:
        return METHODS[base](int(limit) if limit else None, seed, n_jobs, **parameters)

    return build


def _literal_arguments(text: str) -> dict[str, Any]:
    """Keyword arguments written as in a call, with literal values."""
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise SystemExit(f"write parameters as name=value,name=value; got {text!r}")
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
