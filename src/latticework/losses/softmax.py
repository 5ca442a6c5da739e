"""Multinomial logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr
from scipy.special import softmax as softmax_of

from latticework.losses.base import EDGE_SLACK, EPS, CurvatureKind, FloatArray, Loss, Task


@dataclass(frozen=True)
class Softmax(Loss):
    """Multinomial logistic loss ``log(sum_k exp(f_k)) - f_y`` with y one-hot rows.

    The T columns are the classes, and the loss couples them: values and conjugates have shape
    (n, 1), weights c are one per row, (n, 1) or (n, T) with equal columns.  The domain of the
    conjugate is every u with ``p = y + u`` in the simplex; the conjugate is ``sum_k p_k log p_k``.

    Examples
    --------
    >>> import numpy as np
    >>> y, f = np.array([[0.0, 1.0]]), np.array([[2.0, 2.0]])
    >>> Softmax().gradient(y, f)
    array([[ 0.5, -0.5]])
    """

    name: ClassVar[str] = "softmax"
    task: ClassVar[Task] = "multiclass"
    joint: ClassVar[bool] = True
    has_probability: ClassVar[bool] = True
    curvature_kind: ClassVar[CurvatureKind] = "approximation"
    gradient_lipschitz: ClassVar[float] = 0.5

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Loss ``log(sum_k exp(f_k)) - f_y``, shape (n, 1)."""
        # Relative to the true class nothing is left to cancel when its score is large.
        relative = f - (y * f).sum(axis=1, keepdims=True)
        largest = relative.argmax(axis=1)[:, np.newaxis]
        shift = np.take_along_axis(relative, largest, axis=1)
        ratios = np.exp(relative - shift)
        # The largest term is exactly 1; log1p of the others keeps a loss far below rounding of 1.
        np.put_along_axis(ratios, largest, 0.0, axis=1)
        return shift + np.log1p(ratios.sum(axis=1, keepdims=True))

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Derivative ``p - y`` with p the class probabilities."""
        return softmax_of(f, axis=1) - y

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """The smaller in sum of two diagonal matrices above the Hessian ``diag(p) - p p'``.

        diag(p) is one; the other, ``2 p_k (1 - p_k)``, holds sums of the sizes of the Hessian's
        rows and goes to zero with it where a class is almost certain.
        """
        p = softmax_of(f, axis=1)
        undecided = (p * p).sum(axis=1, keepdims=True) <= 0.5
        return np.where(undecided, p, 2.0 * p * (1.0 - p))

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """``diag(p) - p p'`` with p the class probabilities, its upper triangle (.., n)."""
        p = np.ascontiguousarray(softmax_of(f, axis=1).T)
        first, second = np.triu_indices(len(p))
        return p[first] * np.where((first == second)[:, np.newaxis], 1.0 - p[second], -p[second])

    def conjugate(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """Negative entropy of ``p = y + u``, shape (n, 1)."""
        p = y + u
        # Each of the K entries brings its own rounding to the sum.
        slack = EDGE_SLACK * p.shape[1]
        on_plane = np.abs(p.sum(axis=1, keepdims=True) - 1.0) <= slack
        inside = on_plane & np.all(p >= -EDGE_SLACK, axis=1, keepdims=True)
        entropy = entr(np.clip(p, 0.0, 1.0)).sum(axis=1, keepdims=True)
        return np.where(inside, -entropy, np.inf)

    def dual_domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounding box [-y, 1 - y] of the domain {u : y + u in the simplex}."""
        return -y, 1.0 - y

    def best_constant(self, y: FloatArray, c: FloatArray) -> FloatArray:
        """Log of the class frequencies, with frequencies of at least 2e-16."""
        weights = row_weights(c)
        total = weights.sum()
        if total <= 0:
            return np.zeros(y.shape[1])
        return np.log(np.maximum((weights * y).sum(axis=0) / total, EPS))

    def balance(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        """Duals in the domain with ``sum_i c_i u_ik = 0`` for every class.

        The probabilities p = y + u are mixed with one distribution q for all rows,
        ``p' = (1 - eta) p + eta q``, such that every class has its observed weight, with the
        smallest eta for which q has no negative entry.  u must lie in the domain up to rounding.
        """
        weights = row_weights(c)
        p = np.maximum(y + u, 0.0)
        p /= p.sum(axis=1, keepdims=True)
        total = weights.sum()
        if total <= 0:
            return p - y
        observed, expected = (weights * y).sum(axis=0), (weights * p).sum(axis=0)
        ratios = np.divide(observed, expected, out=np.ones_like(observed), where=expected > 0)
        keep = min(1.0, float(ratios.min()))
        # eta q, without ever dividing by an eta that may be tiny.
        mixed_in = np.maximum(observed - keep * expected, 0.0) / total
        return keep * p + mixed_in - y

    def inverse_link(self, f: FloatArray) -> FloatArray:
        """Probabilities of the classes, rows summing to 1."""
        return softmax_of(f, axis=1)


def row_weights(c: FloatArray) -> FloatArray:
    """One weight per row, shape (n, 1), of weights whose columns must be equal."""
    first = c[:, :1]
    if not np.all(c == first):
        raise ValueError(
            "The softmax loss has one weight per row, but the columns of c differ; for weights "
            "per class and row use one-vs-rest tasks with the log_loss."
        )
    return first
