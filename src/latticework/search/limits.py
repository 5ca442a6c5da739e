"""When to stop early: nodes, time, Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

# An exception in the middle of compiled code would surface as an error of that code's, and would
# leave half-made steps behind.  So Ctrl-C raises nothing: it is noted, and asked for.
_asked = threading.Event()


@dataclass(frozen=True)
class Limits:
    """When a solver should stop; it keeps the best model so far.

    Parameters
    ----------
    max_nodes : int or None
        Nodes of the search, over the whole path.
    deadline : float or None
        A ``time.perf_counter()``.
    """

    max_nodes: int | None = None
    deadline: float | None = None

    def is_interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return _asked.is_set()

    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.perf_counter() >= self.deadline

    def is_over(self) -> bool:
        """Whether to stop now, whatever the number of nodes."""
        return self.is_interrupted() or self.is_late()

    def nodes_left(self, n_nodes: int) -> int | None:
        """How many more nodes may be searched after so many."""
        return None if self.max_nodes is None else max(0, self.max_nodes - n_nodes)


NO_LIMITS = Limits()


def ask_to_stop() -> None:
    """Let all fits of this process stop at their next opportunity."""
    _asked.set()


def forget() -> None:
    """Take back what was asked."""
    _asked.clear()


@contextmanager
def stopping_on_ctrl_c() -> Iterator[None]:
    """Within it the first Ctrl-C asks fits to stop; a second one raises KeyboardInterrupt.

    Only in the main thread, as Python has it, and only where nobody else listens to Ctrl-C.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    forget()
    signal.signal(signal.SIGINT, _note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        forget()


def _note(number: int, frame: FrameType | None) -> None:
    if _asked.is_set():
        raise KeyboardInterrupt
    ask_to_stop()
