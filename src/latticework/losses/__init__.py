"""Losses: one file each, found by name in ``LOSSES``.

A new loss is a frozen dataclass derived from :class:`Loss` in a file of its own and one line in
``LOSSES``; the contract tests then pick it up.
"""

from __future__ import annotations

from dataclasses import fields

from latticework.losses.base import Loss
from latticework.losses.epsilon_insensitive import EpsilonInsensitive
from latticework.losses.hinge import Hinge
from latticework.losses.huber import Huber
from latticework.losses.log_loss import LogLoss
from latticework.losses.poisson import Poisson
from latticework.losses.softmax import Softmax
from latticework.losses.squared_error import SquaredError
from latticework.losses.squared_hinge import SquaredHinge

LOSSES: dict[str, type[Loss]] = {
    LogLoss.name: LogLoss,
    Softmax.name: Softmax,
    Hinge.name: Hinge,
    SquaredHinge.name: SquaredHinge,
    SquaredError.name: SquaredError,
    Huber.name: Huber,
    EpsilonInsensitive.name: EpsilonInsensitive,
    Poisson.name: Poisson,
}


def get_loss(loss: str | Loss, **params: float) -> Loss:
    """Loss with this name and these parameters; a loss object is returned as it is.

    Parameters
    ----------
    loss : str or Loss
        A name in ``LOSSES``, or a loss.
    **params
        Parameters of the named loss, such as ``delta`` of ``"huber"``.

    Returns
    -------
    Loss

    Examples
    --------
    >>> get_loss("huber", delta=2.0)
    Huber(delta=2.0)
    >>> get_loss(get_loss("hinge"))
    Hinge()
    """
    if isinstance(loss, Loss):
        if params:
            raise ValueError(
                f"Parameters {', '.join(sorted(params))} were given beside the loss {loss!r}; "
                "set them where it is made."
            )
        return loss
    if loss not in LOSSES:
        raise ValueError(f"loss {loss!r} is not one of {', '.join(LOSSES)}.")
    loss_class = LOSSES[loss]
    known = [field.name for field in fields(loss_class)]
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ValueError(
            f"The {loss} loss has no parameter {', '.join(unknown)}; "
            + (f"its parameters are {', '.join(known)}." if known else "it has no parameters.")
        )
    return loss_class(**params)


__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "LogLoss",
    "Loss",
    "Poisson",
    "Softmax",
    "SquaredError",
    "SquaredHinge",
    "get_loss",
]
