"""Certified-optimal rule ensembles and structured sparse learning on lattices.

>>> import latticework as lw
>>> sorted(lw.__all__)[:3]
['Certificate', 'Propositionalizer', 'Rule']
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public names and the modules that hold them: imported at first use, so that importing the
# package costs next to nothing.
_HOMES = {
    "Certificate": "latticework.solvers.result",
    "Propositionalizer": "latticework.rules.propositionalize",
    "Rule": "latticework.rules.rule",
    "RuleClassifier": "latticework.estimators.rules",
    "RuleClassifierCV": "latticework.estimators.cv",
    "RuleEnsemble": "latticework.rules.ensemble",
    "RulePath": "latticework.estimators.path",
    "RuleRegressor": "latticework.estimators.rules",
    "RuleRegressorCV": "latticework.estimators.cv",
    "rule_path": "latticework.estimators.path",
    "verify_certificate": "latticework.estimators.verify",
}
_MODULES = ("exceptions", "losses")

__all__ = [*sorted(_HOMES), "exceptions", "losses"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"latticework.{name}")
    else:
        raise AttributeError(f"module 'latticework' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
