"""From scores to what a user asks for: labels and probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latticework.rules.description import label_array
from latticework.rules.scores import inverse_link
from latticework.rules.statistics import BINARY, MULTICLASS

if TYPE_CHECKING:
    from numpy.typing import NDArray


def probabilities_of(
    scores: NDArray[np.float64], link: str | None, output: str
) -> NDArray[np.float64]:
    """Probabilities of the classes (n, K), or of each label (n, T), from scores (n, T)."""
    if output == BINARY:  # each probability from its own side, so that none rounds to 0
        scores = np.hstack([-scores, scores])
    return inverse_link(scores, link, output)


def labels_of(scores: NDArray[np.float64], output: str, classes: tuple[Any, ...]) -> NDArray[Any]:
    """Labels (n,), or label indicators (n, T), from scores (n, T).

    Examples
    --------
    >>> labels_of(np.array([[0.3], [-1.0]]), "binary", ("ill", "healthy"))
    array(['healthy', 'ill'], dtype='<U7')
    """
    if output == MULTICLASS:
        return label_array(classes)[scores.argmax(axis=1)]
    above = (scores > 0).astype(np.intp)
    if output == BINARY:
        return label_array(classes)[above[:, 0]]
    pairs = zip(classes, above.T, strict=True)
    return np.column_stack([label_array(pair)[chosen] for pair, chosen in pairs])
