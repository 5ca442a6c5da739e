"""What the tests of the command line share: running a command, and a table to run it on."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from latticework.cli import main
from latticework.cli.terminal import LABEL_WIDTH

HEADER = ("age", "colour", "member", "income", "bought")


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    def error(self) -> str:
        """The message of a command that refuses its input: one, and no traceback."""
        assert self.code == 2, self
        assert self.err.count("error: ") == 1, self.err
        assert "Traceback" not in self.err
        return self.err

    def flat(self) -> str:
        """Standard output with its lines unfolded."""
        assert self.code == 0, self.err
        return " ".join(self.out.split())


def labelled(outcome: Outcome) -> dict[str, str]:
    """The parts of an output that begin with a label, unfolded."""
    parts: dict[str, str] = {}
    label = ""
    for line in outcome.out.splitlines():
        label = line[:LABEL_WIDTH].strip() or label
        parts[label] = f"{parts.get(label, '')} {line[LABEL_WIDTH:].strip()}".strip()
    return parts


class Command:
    """Runs commands in this process, on a terminal that is wide enough for everything."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.patch = patch
        patch.setenv("COLUMNS", "300")

    def __call__(self, *arguments: object, stdin: bytes | None = None) -> Outcome:
        if stdin is not None:
            buffer: Any = io.BufferedReader(io.BytesIO(stdin))  # type: ignore[arg-type]
            self.patch.setattr(sys, "stdin", io.TextIOWrapper(buffer))
        self.capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = self.capsys.readouterr()
        return Outcome(code, out, err)


def learn_into(file: Path, *arguments: object) -> Path:
    """A model, learnt outside of any test's output."""
    with redirect_stdout(io.StringIO()):
        code = main(["learn", *map(str, arguments), "--model", str(file)])
    assert code == 0
    return file


def in_a_process(*command: str, cwd: Path, code: str | None = None, **options: Any) -> Outcome:
    """Run a command, or code with arguments, in a process of its own."""
    start = ["-m", "latticework"] if code is None else ["-c", code]
    done = subprocess.run(
        [sys.executable, *start, *command],
        cwd=cwd, capture_output=True, text=True, timeout=120, **options,
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout, done.stderr)


def people(n: int = 240) -> list[list[str]]:
    """Rows for HEADER; bought is yes for red and over 50, or for a large income."""
    random = np.random.default_rng(0)
    rows = []
    for k in range(n):
        age = int(random.integers(18, 80))
        colour = str(random.choice(["red", "blue, dark", 'gr"een']))
        income = float(random.normal())
        bought = (age > 50 and colour == "red") or income > 1
        member = str(random.random() < 0.5)
        shown = "" if k % 9 == 0 else f"{income:.4f}"
        rows.append([str(age), colour, member, shown, "yes" if bought else "no"])
    return rows


def write_csv(
    file: Path,
    rows: Iterable[Sequence[str]] | None = None,
    header: Sequence[str] = HEADER,
    delimiter: str = ",",
    encoding: str = "utf-8",
    newline: str = "\n",
) -> Path:
    """A CSV file, by default of :func:`people`."""
    with file.open("w", newline="", encoding=encoding) as out:
        writer = csv.writer(out, delimiter=delimiter, lineterminator=newline)
        writer.writerow(header)
        writer.writerows(people() if rows is None else rows)
    return file


def changed(column: str, *cells: str) -> list[list[str]]:
    """The people, with the first cells of a column replaced."""
    rows = people()
    for row, cell in zip(rows, cells, strict=False):
        row[HEADER.index(column)] = cell
    return rows


def filled(column: str, cell: str) -> list[list[str]]:
    """The people, with all cells of a column the same."""
    return changed(column, *[cell] * len(people()))


def read_csv(text: str, delimiter: str = ",") -> list[dict[str, str]]:
    """The rows of a CSV text."""
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
