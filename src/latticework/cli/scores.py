"""How well a model does on some rows, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

from latticework.rules.statistics import BINARY, REGRESSION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latticework.rules.columns import Table
    from latticework.rules.ensemble import RuleEnsemble


def score_text(ensemble: RuleEnsemble, table: Table, y: NDArray[Any]) -> str:
    """Accuracy and, for two classes, the area under the ROC curve; R2 and error of a regression."""
    if ensemble.output == REGRESSION:
        predictions = ensemble.predict_mean(table)
        error = float(np.sqrt(np.mean((predictions - y) ** 2)))
        r2 = f"R2 {r2_score(y, predictions):.4g}, " if len(y) > 1 else ""
        return f"{r2}root mean squared error {error:.4g}"
    text = f"accuracy {accuracy_score(y, ensemble.predict(table)):.4g}"
    if ensemble.output == BINARY and len(np.unique(y)) == 2:
        assert ensemble.classes is not None
        area = roc_auc_score(y == ensemble.classes[1], ensemble.decision_function(table))
        text += f", area under the ROC curve {area:.4g}"
    return text
