"""Warnings and errors of the library."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning


class LatticeworkWarning(UserWarning):
    """Base class of the warnings that latticework issues."""


class CertificateWarning(LatticeworkWarning, ConvergenceWarning):
    """A fit stopped before its duality gap met the tolerance.

    The message gives the gap that was reached; the model is the best one found and its
    certificate is still valid.
    """


__all__ = ["CertificateWarning", "LatticeworkWarning"]
