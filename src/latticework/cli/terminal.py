"""What a person sees: lines of text that fit, and a sign of life while a fit runs."""

from __future__ import annotations

import re
import shutil
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self, TextIO

from latticework.search.limits import ask_to_stop, forget

# A fit that ends sooner needs no sign of life; after that the line is renewed this often.
_QUIET_SECONDS = 0.5
_RENEWAL_SECONDS = 0.2
LABEL_WIDTH = 13
# What a terminal shows for Ctrl-C takes two places at the end of the line.
_ECHO_WIDTH = 3
_HINT = "Ctrl-C: best model so far"
# Between a number and its unit no line ends.
_GLUE = "\N{NO-BREAK SPACE}"
_UNIT = re.compile(r"(\d) (s|%)(?!\w)")
_STOPPING_HINT = "stopping; Ctrl-C again: quit"


def say(text: str = "") -> None:
    """A line on standard output; characters that it cannot encode are escaped."""
    _write(sys.stdout, text)


def say_error(text: str) -> None:
    """Lines on standard error, likewise; a terminal gets them folded between words.

    Lines that begin with spaces are commands to copy and stay whole.
    """
    sys.stdout.flush()
    if sys.stderr.isatty():
        lines = [line if line[:1] == " " else _folded(line) for line in text.split("\n")]
        text = "\n".join(lines)
    _write(sys.stderr, text)


def _write(stream: TextIO, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def terminal_width() -> int:
    """Columns of the terminal, 80 where that is unknown."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def say_labelled(label: str, text: str) -> None:
    """A short label, then text folded to the width of the terminal beside it."""
    say(_folded(text, f"{label:<{LABEL_WIDTH}}", " " * LABEL_WIDTH))


def say_list(label: str, texts: Sequence[str]) -> None:
    """Texts one below the other, with a label before the first."""
    for text in texts:
        say_labelled(label, text)
        label = ""


def _folded(text: str, first: str = "", other: str = "") -> str:
    """Lines that fit the terminal; units stay with their numbers."""
    filled = textwrap.fill(
        _UNIT.sub(rf"\1{_GLUE}\2", text),
        width=terminal_width(),
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_GLUE, " ")


def say_commands(label: str, *commands: str) -> None:
    """Commands to copy, one a line and never folded, with a label before or above them."""
    indent = LABEL_WIDTH
    if indent + max(map(len, commands)) > terminal_width():
        say(label)
        label, indent = "", 2
    for command in commands:
        say(f"{label:<{indent}}{command}")
        label = ""


class Interrupt:
    """Within it the first Ctrl-C asks for a stop; a second one raises KeyboardInterrupt.

    An exception in the middle of compiled code would surface as an error of that code's.

    Attributes
    ----------
    asked : bool
        Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        # Python hands signals to its main thread only, and elsewhere lets nobody change that.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
            forget()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            forget()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        ask_to_stop()


class Progress:
    """A line that is rewritten while a fit runs; nothing at all where there is no terminal.

    It is a callback of scikit-learn's too, and then counts the steps that a fit reports, alphas
    and folds, and stops the fit after the step in which Ctrl-C was pressed.

    Parameters
    ----------
    label : str
        What is going on.
    interrupt : Interrupt, optional
        Whether Ctrl-C was pressed.
    stream : text stream, optional
        Standard error by default.
    """

    def __init__(
        self, label: str, interrupt: Interrupt | None = None, stream: TextIO | None = None
    ) -> None:
        self.label = label
        self.interrupt = interrupt
        self.stream = sys.stderr if stream is None else stream
        self.n_steps: dict[str, int] = {}
        self._finished = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self.stream.isatty():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._finished.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        started = time.perf_counter()
        if self._finished.wait(_QUIET_SECONDS):
            return
        while not self._finished.is_set():
            width = terminal_width() - 1
            line = self._line(time.perf_counter() - started)[: width - _ECHO_WIDTH]
            self.stream.write("\r" + line + " " * (width - len(line)) + "\r" + line)
            self.stream.flush()
            self._finished.wait(_RENEWAL_SECONDS)
        self.stream.write("\r" + " " * (terminal_width() - 1) + "\r")
        self.stream.flush()

    def _line(self, seconds: float) -> str:
        done = [
            f"{number} {name}{'' if number == 1 else 's'}" for name, number in self.n_steps.items()
        ]
        steps = f", {' and '.join(done)} done" if done else ""
        hint = ""
        if self.interrupt is not None:
            hint = f"  ({_STOPPING_HINT if self.interrupt.asked else _HINT})"
        return f"{self.label}: {seconds:.0f} s{steps}{hint}"

    # ---- scikit-learn's callback protocol -----------------------------------------------------

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to prepare."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing to show before a task."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Count the step, unless it is the fit itself; says whether to stop."""
        if context.parent is not None:
            self.n_steps[context.task_name] = self.n_steps.get(context.task_name, 0) + 1
        return self.interrupt is not None and self.interrupt.asked

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to put away."""
