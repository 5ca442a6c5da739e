"""What a fit tells scikit-learn's callbacks, such as progress bars and score monitors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike
    from sklearn.callback import CallbackSupportMixin


class FitReport:
    """Tells the callbacks of an estimator how its fit goes on.

    To be made inside a method that is decorated with ``sklearn.callback.with_callbacks``.

    Parameters
    ----------
    estimator : estimator
    X, y : array-like
        As given to ``fit``.
    sample_weight : array-like or None
    """

    def __init__(
        self, estimator: CallbackSupportMixin, X: Any, y: Any, sample_weight: ArrayLike | None
    ) -> None:
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.stopped = False  # whether a callback has asked to stop
        self._told = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._context = estimator._init_callback_context(max_subtasks=None)
        self._context.call_on_fit_task_begin(**self._told)

    def step(self, name: str, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Tell that a step is done; returns whether a callback asks to stop.

        Parameters
        ----------
        name : str
        attributes : callable, optional
            Gives the attributes that the estimator would have if the fit ended here; called only
            when a callback wants them.
        """
        task = self._context.subcontext(task_name=name)
        task.call_on_fit_task_begin(**self._told)
        asked = task.call_on_fit_task_end(**self._told, reconstruction_attributes=attributes)
        self.stopped = self.stopped or bool(asked)
        return bool(asked)

    def end(self) -> None:
        """Tell that the estimator is fitted."""
        self._context.call_on_fit_task_end(**self._told, reconstruction_attributes={})
