"""The command line as a whole: help, exit codes, progress, Ctrl-C, files that must survive."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Any

import numpy as np
import pytest
from tests.commands import HEADER, Command, in_a_process, people, write_csv

from latticework.cli import outputs
from latticework.cli.terminal import Interrupt, Progress, say_error

COMMANDS = ("learn", "predict", "rules", "demo")


# ------------------------------------------------------------------------------------------ help


@pytest.mark.parametrize("command", ["", *COMMANDS])
@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_the_terminal(
    run: Command, monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    outcome = run(*command.split(), "--help")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].startswith(f"usage: latticework {command or 'COMMAND'} ")
    assert "\n  latticework " in outcome.out  # an example


def test_every_option_is_explained(run: Command) -> None:
    for command in COMMANDS:
        for line in run(command, "--help").out.splitlines():
            if line.startswith("  -"):
                assert len(line.split(maxsplit=2)) == 3 or len(line) < 30, line


def test_version(run: Command) -> None:
    outcome = run("--version")
    assert outcome.code == 0
    assert outcome.out.startswith("latticework ")


def test_a_command_is_wanted(run: Command) -> None:
    assert "name a command\n\nusage: latticework COMMAND ..." in run().error()
    assert "invalid choice: 'study'" in run("study").error()


def test_help_comes_without_the_library(tmp_path: Path) -> None:
    code = (
        "import sys; from latticework.cli import main; main(['learn', '--help'])\n"
        "sys.exit(sum(name in sys.modules for name in ('numpy', 'sklearn', 'numba')))"
    )
    assert in_a_process(cwd=tmp_path, code=code).code == 0


# ----------------------------------------------------------------------------------- a real shell


def test_an_error_in_a_process(tmp_path: Path) -> None:
    outcome = in_a_process("learn", "none.csv", "-t", "y", cwd=tmp_path)
    assert "none.csv: there is no such file" in outcome.error()
    assert outcome.out == ""


def test_a_reader_that_goes_away(people_csv: Path, people_model: Path) -> None:
    """``latticework predict ... | head`` ends without a word."""
    rows = people() * 40
    data = write_csv(people_csv.with_name("many.csv"), rows)
    command = [sys.executable, "-m", "latticework", "predict", str(people_model), str(data)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("prediction,")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 141


def test_output_that_the_encoding_cannot_hold(
    people_csv: Path, people_model: Path, tmp_path: Path
) -> None:
    write_csv(people_csv, [["30", "größe", "True", "1", "yes"]] * 3)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    options = ("predict", str(people_model), "people.csv", "--id", "colour")
    outcome = in_a_process(*options, cwd=tmp_path, env=environment)
    assert "standard output is ascii: write to a file with -o FILE, or set " in outcome.error()
    assert in_a_process(*options, "-o", "out.csv", cwd=tmp_path, env=environment).code == 0
    assert "größe,yes" in (tmp_path / "out.csv").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------ a real terminal


class Terminal:
    """A command on a terminal of 80 columns of its own."""

    def __init__(self, *command: str, cwd: Path) -> None:
        self.master, slave = pty.openpty()
        ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "latticework", *command],
            cwd=cwd, stdin=slave, stdout=slave, stderr=slave, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.end = time.monotonic() + 60.0
        self.seen = ""

    def wait_for(self, text: str) -> None:
        """Read until a text has been shown, or to the end of the command."""
        while text not in self.seen and self._read():
            pass
        assert text in self.seen, self.seen

    def finish(self) -> int:
        """Read what is left; the exit code."""
        while self._read():
            pass
        return self.process.wait(timeout=10)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.master], [], [], max(0.0, self.end - time.monotonic()))
        assert ready, f"nothing more in time after {self.seen}"
        try:
            read = os.read(self.master, 65536)
        except OSError:  # how Linux tells that the other side was closed
            return False
        self.seen += read.decode()
        return bool(read)


@contextmanager
def terminal_of(*command: str, cwd: Path) -> Iterator[Terminal]:
    """A command on a terminal, which does not outlive the test."""
    terminal = Terminal(*command, cwd=cwd)
    try:
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.master)


def hard(file: Path) -> Path:
    """A table from which nothing can be learnt, which takes long."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 12)).round(3)
    rows = [[*map(str, row), str(random.integers(2))] for row in X]
    return write_csv(file, rows, [*(f"x{k}" for k in range(12)), "y"])


def test_progress_and_an_interrupt_on_a_terminal(tmp_path: Path) -> None:
    hard(tmp_path / "hard.csv")
    options = ("-t", "y", "--max-length", "2", "--max-rules", "200", "-m", "m.json")
    with terminal_of("learn", "hard.csv", *options, cwd=tmp_path) as terminal:
        terminal.wait_for("Ctrl-C: best model so far")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.finish() == 0, terminal.seen
    assert "warning: stopped by Ctrl-C: this is the best model so far" in terminal.seen
    assert "Saved        m.json" in terminal.seen
    assert (tmp_path / "m.json").exists()
    shown = [line for part in terminal.seen.split("\n") for line in part.rstrip("\r").split("\r")]
    assert max(map(len, shown)) <= 80


def test_no_progress_without_a_terminal(people_csv: Path) -> None:
    code = (
        "import sys; from latticework.cli import main, terminal\n"
        "terminal._QUIET_SECONDS = 0.0\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    options = ("learn", "people.csv", "-t", "bought", "--alpha", "0.02")
    outcome = in_a_process(*options, cwd=people_csv.parent, code=code)
    assert (outcome.code, outcome.err) == (0, "")
    assert "\r" not in outcome.out


class Screen:
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        """Nothing is held back."""


def test_the_line_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latticework.cli.terminal._QUIET_SECONDS", 0.0)
    monkeypatch.setattr("latticework.cli.terminal._RENEWAL_SECONDS", 0.001)
    monkeypatch.setenv("COLUMNS", "60")
    screen: Any = Screen()
    with Progress("learning", Interrupt(), screen) as progress:
        for number in (1, 2):
            progress.n_steps = {"alpha": 20, "fold": number}
            shown = f"learning: 0 s, 20 alphas and {number} fold{'s' * (number > 1)} done  ("
            while shown not in screen.text:
                time.sleep(0.001)
    assert max(map(len, screen.text.split("\r"))) <= 59
    assert screen.text.endswith("\r" + " " * 59 + "\r")  # nothing is left of it


def test_errors_are_folded_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "error: " + "word " * 30 + "\n  a command to copy " + "x " * 40 + "100 s"
    say_error(text)
    assert capsys.readouterr().err == text + "\n"
    monkeypatch.setenv("COLUMNS", "50")
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    say_error(text)
    *lines, command = screen.text.splitlines()
    assert max(map(len, lines)) <= 50
    assert command == text.splitlines()[-1]


# ---------------------------------------------------------------------------------------- Ctrl-C


def press_at(monkeypatch: pytest.MonkeyPatch, step: str, number: int, times: int = 1) -> None:
    """Press Ctrl-C when a fit reports a step."""
    told = Progress.on_fit_task_end

    def pressed(progress: Progress, estimator: Any, context: Any) -> bool:
        told(progress, estimator, context)
        if progress.n_steps.get(step) == number:
            progress.n_steps = {}
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return progress.interrupt is not None and progress.interrupt.asked

    monkeypatch.setattr(Progress, "on_fit_task_end", pressed)


@pytest.mark.parametrize(
    ("step", "number", "chosen"),
    [
        ("alpha", 3, "it was chosen after 0 of 20 folds"),
        ("fold", 2, "it was chosen after 2 of 20 folds"),
    ],
)
def test_ctrl_c_keeps_the_best_model_so_far(
    run: Command,
    people_csv: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    number: int,
    chosen: str,
) -> None:
    press_at(monkeypatch, step, number)
    model = people_csv.with_name("m.json")
    outcome = run("learn", people_csv, "-t", "bought", "-m", model, "--max-rules", 3)
    assert outcome.code == 0
    assert "warning: stopped by Ctrl-C: this is the best model so far" in outcome.err
    assert chosen in outcome.err
    assert run("predict", model, people_csv).code == 0


def test_ctrl_c_twice_gives_up(
    run: Command, people_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    press_at(monkeypatch, "alpha", 2, times=2)
    model = people_csv.with_name("m.json")
    model.write_text('{"format": "latticework.RuleEnsemble"}')
    outcome = run("learn", people_csv, "-t", "bought", "-m", model)
    assert outcome.code == 130
    assert outcome.err == "interrupted before it was done: nothing was saved\n"
    assert model.read_text() == '{"format": "latticework.RuleEnsemble"}'


def test_ctrl_c_is_python_s_again_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGINT)
        assert interrupt.asked
    assert signal.getsignal(signal.SIGINT) is before


# -------------------------------------------------------------------------- files that must survive


def interrupted(*anything: object) -> None:
    raise KeyboardInterrupt


def full(*anything: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("failure", "code"), [(interrupted, 130), (full, 2)])
def test_files_are_replaced_whole_or_not_at_all(
    run: Command,
    people_model: Path,
    people_csv: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: Callable[..., None],
    code: int,
) -> None:
    file = people_csv.with_name("out.csv")
    file.write_text("prediction\nyes\n")
    monkeypatch.setattr(outputs, "_write_rows", failure)
    outcome = run("predict", people_model, people_csv, "-o", file)
    assert outcome.code == code
    assert ("this cannot be written: No space left on device" in outcome.err) == (code == 2)
    assert file.read_text() == "prediction\nyes\n"
    assert sorted(path.name for path in file.parent.iterdir()) == ["out.csv", "people.csv"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.txt", "my notes", "notes.txt: this file exists, and nothing tells that this co"),
        ("old.json", '{"a": 1}', "old.json: this file exists, and nothing tells that this comma"),
        ("people.csv", None, "people.csv: this is the name of a table, but a model is saved as"),
        ("new.csv", None, "new.csv: this is the name of a table, but a model is saved as JSON:"),
        ("no/m.json", None, "no/m.json: the folder 'no' does not exist; create it first"),
        (".", None, ".: this is a folder; name a file in it"),
    ],
)
def test_models_do_not_replace_other_files(
    run: Command,
    people_csv: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: str | None,
    message: str,
) -> None:
    monkeypatch.chdir(people_csv.parent)
    if content is not None:
        Path(name).write_text(content)
    assert message in run("learn", "people.csv", "-t", "bought", "-m", name).error()
    if content is not None:
        assert Path(name).read_text() == content


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other.csv", "other.csv: this file exists, and nothing tells that this command wrote"),
        ("other.parquet", "other.parquet: this file exists, and nothing tells that this comma"),
        ("people.csv", "people.csv: this is the file to read; name another one to write"),
        ("out.xlsx", "out.xlsx: tables are written as CSV or Parquet, not as .xlsx: let the name"),
        ("m.json", "m.json: tables are written as CSV or Parquet, not as .json: let the name end"),
    ],
)
def test_predictions_do_not_replace_other_files(
    run: Command,
    people_model: Path,
    people_csv: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    message: str,
) -> None:
    monkeypatch.chdir(people_csv.parent)
    if name.startswith("other"):
        Path(name).write_text(",".join(HEADER) + "\n")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert message in run("predict", people_model, "people.csv", "-o", name).error()
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.tsv", "out.parquet", "out"])
def test_predictions_replace_predictions(
    run: Command, people_model: Path, people_csv: Path, name: str
) -> None:
    file = people_csv.with_name(name)
    for identifiers in ((), ("--id", "age"), ()):
        outcome = run("predict", people_model, people_csv, "-o", file, *identifiers)
        assert outcome.code == 0, outcome.err


def test_models_replace_models_and_links_stay_links(
    run: Command, people_csv: Path, people_model: Path
) -> None:
    model, link = people_csv.with_name("m.json"), people_csv.with_name("link.json")
    link.symlink_to(model)
    model.write_bytes(people_model.read_bytes())
    outcome = run("learn", people_csv, "-t", "bought", "-m", link, "--alpha", 0.1)
    assert outcome.code == 0, outcome.err
    assert link.is_symlink()
    assert model.read_bytes() != people_model.read_bytes()


def test_devices_are_written_to(run: Command, people_model: Path, people_csv: Path) -> None:
    outcome = run("predict", people_model, people_csv, "-o", os.devnull)
    assert outcome.code == 0, outcome.err
    assert not Path(os.devnull).is_file()
