"""What every loss offers: values, derivatives, the conjugate and what a dual solution needs.

A loss is used twice.  The primal side asks for ``value``, ``gradient`` and ``curvature`` at
predictions f.  The certificate asks for the conjugate ``sup_f u f - l(y, f)`` at dual variables
u, and for a way to make duals fit a free intercept (``balance``).  Targets and predictions have
shape (n, T): n rows, T tasks.  A label that is unknown is given any valid target and weight 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

Task = Literal["binary", "multiclass", "regression"]
CurvatureKind = Literal["second derivative", "majoriser", "approximation", "none"]

EPS = float(np.finfo(np.float64).eps)
# Dual variables come out of a few roundings; this close to an edge of the domain is on the edge.
EDGE_SLACK = 4.0 * EPS
# The log-odds of the closest probability to one that is not one: where unbounded intercepts stop.
LOGIT_LIMIT = float(-np.log(EPS))


@dataclass(frozen=True)
class Loss(ABC):
    """A convex loss l(y, f) of a target and a prediction.

    Subclasses are frozen dataclasses: two losses are equal when they are of one class and have
    equal parameters, and they pickle.  Every method is vectorised, leaves its arguments as they
    are, and neither overflows nor warns for ``|f|`` up to 1e4.

    Attributes
    ----------
    name : str
        Name in ``LOSSES``.
    task : {"binary", "multiclass", "regression"}
        What targets look like: -1 and +1; one-hot rows; real numbers.
    joint : bool
        Whether the loss couples the T columns of a row.  ``value`` and ``conjugate`` then have
        shape (n, 1), and weights are per row.
    smooth : bool
        False for piecewise linear losses, which offer ``pieces`` and no ``curvature``.
    has_probability : bool
        Whether ``inverse_link`` returns class probabilities.
    curvature_kind : {"second derivative", "majoriser", "approximation", "none"}
        What ``curvature`` returns.  ``"second derivative"`` may be one of the two one-sided ones
        where they differ; a ``"majoriser"`` is a diagonal matrix above the Hessian, an
        ``"approximation"`` lies between the diagonal of the Hessian and twice that.
    gradient_lipschitz : float
        Smallest L with ``||gradient(y, f) - gradient(y, g)|| <= L ||f - g||`` row by row;
        inf when there is none.  The conjugate is then 1/L-strongly convex.
    """

    name: ClassVar[str]
    task: ClassVar[Task]
    joint: ClassVar[bool] = False
    smooth: ClassVar[bool] = True
    has_probability: ClassVar[bool] = False
    curvature_kind: ClassVar[CurvatureKind] = "second derivative"
    gradient_lipschitz: ClassVar[float] = np.inf

    @abstractmethod
    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Loss of each prediction.

        Parameters
        ----------
        y, f : ndarray of shape (n, T)
            Targets and predictions.

        Returns
        -------
        ndarray of shape (n, T), or (n, 1) for a joint loss
        """

    @abstractmethod
    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Derivative dl/df, shape (n, T); a subgradient where there is no derivative."""

    @abstractmethod
    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Newton weights, shape (n, T), all >= 0: see ``curvature_kind``."""

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Second derivatives d²l / df_s df_t of a joint loss, for the pairs s <= t of tasks.

        Returns
        -------
        ndarray of shape (T (T + 1) / 2, n)
            In the order of ``np.triu_indices(T)``.
        """
        raise NotImplementedError(
            f"The {self.name} loss is a sum over tasks; its second derivatives are its curvature."
        )

    @abstractmethod
    def conjugate(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """Conjugate ``sup_f u f - l(y, f)``; +inf outside the dual domain.

        A u within 4 units of rounding of an edge of the domain counts as the edge.

        Parameters
        ----------
        y, u : ndarray of shape (n, T)
            Targets and dual variables.

        Returns
        -------
        ndarray of shape (n, T), or (n, 1) for a joint loss
        """

    @abstractmethod
    def dual_domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends ``low <= 0 <= high`` of the interval of u whose conjugate is finite.

        Both have the shape of y.  For a joint loss they are the bounding box of the domain.
        """

    @abstractmethod
    def best_constant(self, y: FloatArray, c: FloatArray) -> FloatArray:
        """Intercepts b that minimise ``sum_i c_it l(y_it, b_t)``, always finite.

        Parameters
        ----------
        y : ndarray of shape (n, T)
            Targets.
        c : ndarray of shape (n, T), or (n, 1) for a joint loss
            Weights >= 0.

        Returns
        -------
        ndarray of shape (T,)
            Where the best intercept is infinite (one class only), one so large that a larger one
            changes nothing in double precision; 0 for a task without weight.
        """

    def balance(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        """Duals near u, in the dual domain, with ``sum_i c_it u_it = 0`` for every task.

        That equality is what makes duals feasible when the intercept is free.  Per task the
        heavier of the two signs is scaled towards 0, which cannot leave an interval around 0.

        Parameters
        ----------
        u, y : ndarray of shape (n, T)
            Dual variables, clipped to the domain first, and targets.
        c : ndarray of shape (n, T), or (n, 1) for a joint loss
            Weights >= 0.

        Returns
        -------
        ndarray of shape (n, T)
        """
        low, high = self.dual_domain(y)
        feasible = np.clip(u, low, high)
        weighted = c * feasible
        positive = np.maximum(weighted, 0.0).sum(axis=0)
        negative = -np.minimum(weighted, 0.0).sum(axis=0)
        common = np.minimum(positive, negative)
        shrink_positive = np.divide(common, positive, out=np.ones_like(common), where=positive > 0)
        shrink_negative = np.divide(common, negative, out=np.ones_like(common), where=negative > 0)
        return feasible * np.where(feasible > 0, shrink_positive, shrink_negative)

    def inverse_link(self, f: FloatArray) -> FloatArray:
        """Mean of the target at predictions f, shape (n, T); probabilities of +1 for two classes.

        Raises
        ------
        NotImplementedError
            When predictions of this loss have no such reading.
        """
        if self.task == "regression":
            return f.copy()
        raise NotImplementedError(
            f"The {self.name} loss has no probabilities; fit with loss='log_loss' to get them."
        )

    def check_targets(self, y_raw: FloatArray) -> None:
        """Raise a ValueError when targets are outside the loss's range; NaN marks unknown ones.

        Regression losses take every finite number unless their own documentation says otherwise.
        """
        if self.task == "regression" and np.isinf(y_raw).any():
            raise ValueError(
                f"The {self.name} loss needs finite targets, but {int(np.isinf(y_raw).sum())} are "
                "infinite; set them to NaN where they are unknown, or leave out their rows."
            )

    def pieces(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes and offsets, each (P, n, T), with ``l(y, f) = max_p slope_p f + offset_p``.

        Raises
        ------
        NotImplementedError
            For losses that are not piecewise linear.
        """
        raise NotImplementedError(
            f"The {self.name} loss is not piecewise linear; use its gradient and curvature."
        )

    def _snap(self, y: FloatArray, u: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Duals moved into the domain, and which were in it or within rounding of its edges."""
        low, high = self.dual_domain(y)
        slack_low = EDGE_SLACK * np.maximum(1.0, np.abs(low))
        slack_high = EDGE_SLACK * np.maximum(1.0, np.abs(high))
        inside = (u >= low - slack_low) & (u <= high + slack_high)
        return np.clip(u, low, high), inside

    def _no_curvature(self) -> NoReturn:
        raise NotImplementedError(
            f"The {self.name} loss is piecewise linear and has no curvature; use its pieces."
        )


def margin_domain(y: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Dual domain ``0 <= -y u <= largest`` of a decreasing loss of the margin ``y f``.

    Examples
    --------
    >>> margin_domain(np.array([[1.0], [-1.0]]), 1.0)
    (array([[-1.], [ 0.]]), array([[0.], [1.]]))
    """
    positive = y > 0
    return np.where(positive, -largest, 0.0), np.where(positive, 0.0, largest)


def class_weights(y: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of the rows of class +1 and of class -1, each of shape (T,)."""
    positive = y > 0
    return np.where(positive, c, 0.0).sum(axis=0), np.where(positive, 0.0, c).sum(axis=0)


def weighted_mean(y: FloatArray, c: FloatArray) -> FloatArray:
    """Weighted column means of y, shape (T,); 0 for a column without weight."""
    total = np.broadcast_to(c, y.shape).sum(axis=0)
    return np.divide((c * y).sum(axis=0), total, out=np.zeros(y.shape[1]), where=total > 0)


__all__ = [
    "EDGE_SLACK",
    "EPS",
    "LOGIT_LIMIT",
    "BoolArray",
    "CurvatureKind",
    "FloatArray",
    "Loss",
    "Task",
    "class_weights",
    "margin_domain",
    "weighted_mean",
]
