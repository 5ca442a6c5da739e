"""Scores as sums of contributions that come out the same in whatever order they are added.

Floating-point addition is exact as long as all terms are multiples of one power of two and no
partial sum needs more than 53 bits.  So the contributions of one output are rounded to a common
grid, fine enough to change the score by about one part in 10^16 of the sum of their sizes.
After that ``frame.sum(axis=1)`` of an explanation is the score to the last bit, whether
pandas, polars, numpy or a matrix product does the adding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

IDENTITY, LOGIT, SOFTMAX, LOG = "identity", "logit", "softmax", "log"


def common_grid(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spacing of the grid for each output.

    Parameters
    ----------
    sizes : ndarray of shape (k, T)
        Largest absolute value that each of the k contributions to each output can take.

    Returns
    -------
    ndarray of shape (T,)
        Powers of two, at most ``2**-51`` times the sum of the sizes.
    """
    _, exponents = np.frexp(sizes.sum(axis=0))
    # Sums stay below 2^exponent before rounding, so below 2^(exponent + 1) after it.
    return np.ldexp(1.0, np.maximum(exponents + 1 - 53, -1074))


def on_grid(contributions: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Contributions (..., T) rounded to the nearest multiples of the grid (T,).

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.array([[0.1], [0.2], [0.3], [1e-17]])
    >>> exact = on_grid(weights, common_grid(np.abs(weights)))
    >>> (exact.sum() == exact[::-1].sum()).item(), np.abs(exact - weights).max() < 1e-16
    (True, np.True_)
    """
    return np.rint(contributions / grid) * grid


def inverse_link(scores: NDArray[np.float64], link: str | None, output: str) -> NDArray[np.float64]:
    """Means or probabilities, shape (n, T), that belong to scores of shape (n, T).

    ``softmax`` and, for one-vs-rest, ``logit`` give rows that sum to one when the output is
    "multiclass"; rows whose one-vs-rest probabilities all underflow are shared equally.
    """
    if link == IDENTITY:
        return scores
    if link == LOG:
        return np.exp(scores)
    if link == SOFTMAX:
        return np.asarray(softmax(scores, axis=1))
    if link != LOGIT:
        raise ValueError(
            "this model's loss has no probabilities (hinge losses only rank the classes): use "
            "decision_function, or fit with loss='log_loss'."
        )
    probabilities = np.asarray(expit(scores))
    if output == "multiclass":
        totals = probabilities.sum(axis=1, keepdims=True)
        shares = 1.0 / scores.shape[1]
        probabilities = np.divide(
            probabilities, totals, out=np.full_like(scores, shares), where=totals > 0
        )
    return probabilities
