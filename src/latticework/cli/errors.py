"""Mistakes that a message on standard error explains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class CommandError(Exception):
    """A mistake in the command or its files; the message names it and the remedy."""


@contextmanager
def blamed_on(where: str) -> Iterator[None]:
    """Errors of the library about data become errors of the file (or option) they came from."""
    try:
        yield
    except (ValueError, TypeError, NotImplementedError) as error:
        message = " ".join(str(error).split())
        raise CommandError(f"{where}: {message}") from error


def optional(module: str, purpose: str) -> Any:
    """An optional library, or an error that says how to install it.

    Parameters
    ----------
    module : str
        Name of the module, such as ``"pyarrow.parquet"``.
    purpose : str
        What needs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise CommandError(
            f"{purpose} needs {library}, which is not installed. "
            'Install it with:  pip install "latticework[cli]"'
        ) from error


def listed(names: Sequence[str], at_most: int = 12) -> str:
    """Names in quotes; only the first where there are many.

    Examples
    --------
    >>> listed(["age", "bp"]), listed(["a", "b", "c"], at_most=2)
    ("'age', 'bp'", "'a', 'b' and 1 more")
    """
    shown = ", ".join(map(repr, names[:at_most]))
    return shown if len(names) <= at_most else f"{shown} and {len(names) - at_most} more"
