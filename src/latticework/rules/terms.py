"""Linear terms: a feature itself, clipped and standardised, beside the rules."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latticework.rules.rule import finite
from latticework.rules.wording import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True)
class LinearTerm:
    """``weight * (clip(x, low, high) - mean) / scale``; nothing where x is missing.

    Parameters
    ----------
    feature : str
        Name of a numeric feature.
    mean, scale : float
        Weighted mean and standard deviation of the clipped feature over the training rows.
    low, high : float
        Values beyond these count as these, so that no far-out cell can dominate the score.
    weights : float or sequence of T floats
        One weight per output.

    Examples
    --------
    >>> import numpy as np
    >>> term = LinearTerm("age", mean=40.0, scale=10.0, low=20.0, high=80.0, weights=0.5)
    >>> str(term)
    'age (linear)'
    >>> term.standardised(np.array([50.0, 90.0, np.nan]))
    array([1., 4., 0.])
    """

    feature: str
    mean: float
    scale: float
    low: float
    high: float
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        weights = np.atleast_1d(np.asarray(self.weights, dtype=np.float64)).tolist()
        what = f"linear term of {self.feature!r}"
        object.__setattr__(self, "weights", finite(weights, f"weights of the {what}"))
        for name in ("mean", "scale", "low", "high"):
            [number] = finite([getattr(self, name)], f"{name} of the {what}")
            object.__setattr__(self, name, number)
        if self.scale <= 0 or self.low > self.high:
            raise ValueError(
                f"the {what} needs scale > 0 and low <= high, got scale={self.scale}, "
                f"low={self.low}, high={self.high}."
            )

    def __str__(self) -> str:
        return f"{visible(self.feature)} (linear)"

    @property
    def importance(self) -> float:
        """Size of the weights: the standard deviation of the contribution over training rows."""
        return float(np.linalg.norm(self.weights))

    @property
    def largest(self) -> float:
        """The largest absolute value that :meth:`standardised` can take."""
        return max(abs(self.low - self.mean), abs(self.high - self.mean)) / self.scale

    def standardised(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The clipped and standardised feature, shape (n,); 0 where it is missing."""
        return np.where(
            np.isnan(x), 0.0, (np.clip(x, self.low, self.high) - self.mean) / self.scale
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "weights": list(self.weights)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> LinearTerm:
        """The term that :meth:`to_dict` described."""
        return cls(**plain)
