"""Reading CSV without any other library: one pass, cells kept as numbers of their distinct texts.

A column is typed by its distinct texts: numbers where all of them are numbers, truth values where
all are ``True`` or ``False`` in any case, otherwise text.  Empty cells and the usual marks
(``NA``, ``N/A``, ``NaN``, ``null``, in any case) are missing.
"""

from __future__ import annotations

import csv
import gzip
import io
import shlex
import sys
import zlib
from array import array
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import numpy as np

from latticework.cli.errors import CommandError, listed
from latticework.rules.cells import (
    CATEGORICAL,
    LARGEST_EXACT_INTEGER,
    NUMERIC,
    Column,
    as_kind,
    column_of_codes,
    column_of_numbers,
    column_of_truths,
    refuse_inexact_integers,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

MISSING = frozenset({"", "na", "n/a", "nan", "null"})
_TRUTHS = {"true": True, "false": False}
_DELIMITER_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
_ROWS_AT_A_TIME = 4096
_LONGEST_HEADER = 1_000_000  # characters
# At most so many texts among the numbers of a column are taken for marks of missing cells.
_MOST_ODD_TEXTS = 3
# How files begin that are no CSV whatever their names say, and what to do about them.
_OTHER_KINDS = {
    b"PK\x03\x04": "an Excel workbook or another zip archive: save it as CSV",
    b"PAR1": "a Parquet file: let its name end in .parquet",
    b"\xff\xfe": "UTF-16 text. Convert it:\n  iconv -f utf-16 -t utf-8 {path} > utf8.csv",
    b"\xfe\xff": "UTF-16 text. Convert it:\n  iconv -f utf-16 -t utf-8 {path} > utf8.csv",
    b"\x1f\x8b": "compressed with gzip: let its name end in .csv.gz",
}


class _Numbering(dict[str, int]):
    """Numbers for texts, given in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


class CsvSheet:
    """The cells of a CSV file.

    Parameters
    ----------
    path : str
        A file, perhaps compressed (``.gz``), or ``-`` for standard input.
    missing : collection of str
        Further texts that mean a missing cell.
    """

    def __init__(self, path: str, missing: Collection[str] = ()) -> None:
        self.path = path if path != "-" else "standard input"
        self._marks = set(missing)
        try:
            with _opened(path) as file:
                self._read(file)
        except UnicodeDecodeError as error:
            raise CommandError(
                f"{self.path}: this is not UTF-8 text ({error.reason}). If it is Latin-1 "
                "(Windows-1252), as many files from Excel are, convert it:\n"
                f"  iconv -f windows-1252 -t utf-8 {shlex.quote(path)} > utf8.csv"
            ) from error
        except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CommandError(f"{self.path}: this is not readable as CSV: {error}") from error

    def _read(self, file: TextIO) -> None:
        header = next((line for line in file if line.strip()), "")
        if not header:
            raise CommandError(
                f"{self.path}: the file is empty; a line of column names must come first"
            )
        self._delimiter = delimiter = _delimiter_of(header)
        rows = csv.reader(chain([header], file), delimiter=delimiter)
        self.names = self._names(next(rows))
        numberings = [_Numbering() for _ in self.names]
        codes = [array("i") for _ in self.names]
        full_rows = self._full_rows(rows)
        while block := list(islice(full_rows, _ROWS_AT_A_TIME)):
            columns = zip(*block, strict=True)
            for cells, column, numbering in zip(columns, codes, numberings, strict=True):
                column.extend(map(numbering.__getitem__, cells))
        self._codes = dict(zip(self.names, codes, strict=True))
        self._texts = dict(zip(self.names, map(list, numberings), strict=True))
        self.n_rows = len(codes[0])

    def _names(self, header: list[str]) -> list[str]:
        names = [name.strip() or f"unnamed_{k}" for k, name in enumerate(header, start=1)]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise CommandError(
                f"{self.path}: several columns are called {repeated[0]!r}; give every column a "
                "name of its own"
            )
        return names

    def _full_rows(self, rows: Any) -> Iterator[list[str]]:
        width = len(self.names)
        before = rows.line_num
        for row in rows:
            if len(row) == width:
                yield row
            elif row:  # else a blank line
                self._refuse_row(row, before + 1, rows.line_num)
            before = rows.line_num

    def _refuse_row(self, row: list[str], first: int, last: int) -> NoReturn:
        cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
        columns = "1 column" if len(self.names) == 1 else f"{len(self.names)} columns"
        remedy = f"put quotes around cells that hold {_DELIMITER_NAMES[self._delimiter]}"
        lines = f"line {first}"
        if last > first:
            lines = f"lines {first} to {last}"
            remedy = "close the quotation mark that opens there"
        raise CommandError(
            f"{self.path}, {lines}: {cells}, but the header names {columns}; correct the line, or "
            f"{remedy}"
        )

    # ---- columns ------------------------------------------------------------------------------

    def column(self, name: str) -> Column:
        """A column, typed by its cells."""
        texts, codes, absent = self._column_parts(name)
        present = [text for text, gone in zip(texts, absent, strict=True) if not gone]
        numbers = [_number(text) for text in present]
        if None not in numbers:
            values = np.full(len(texts), np.nan)
            values[~absent] = numbers
            _refuse_inexact(name, present, values)
            return column_of_numbers(name, values[codes])
        if all(text.lower() in _TRUTHS for text in present):
            truths = np.array([_TRUTHS.get(text.lower(), False) for text in texts])
            return column_of_truths(name, truths[codes], absent[codes])
        return self._text_column(name)

    def column_as(self, name: str, kind: str, levels: Collection[Any]) -> Column:
        """A column read as a model reads it.

        Parameters
        ----------
        name, kind : str
            As in the model.
        levels : collection
            Levels that the model's rules mention: where one is a text, cells are texts, even
            those that look like numbers.
        """
        if kind == CATEGORICAL and any(isinstance(level, str) for level in levels):
            return self._text_column(name)
        if kind == NUMERIC:
            self._require_numbers(name)
        return as_kind(self.column(name), kind)

    def why_text(self, name: str) -> str:
        """Why a column that looks like numbers is text, and the remedy; empty for others."""
        texts, codes, absent = self._column_parts(name)
        odd = self._odd_codes(texts, absent)
        if not odd:
            return ""
        present = [text for text, gone in zip(texts, absent, strict=True) if not gone]
        if all(_number(text.replace(",", ".")) is not None for text in present):
            return "its numbers have decimal commas: write them with decimal points"
        n_odd = int(np.isin(codes, odd).sum())
        if len(odd) > _MOST_ODD_TEXTS or 2 * n_odd > len(codes) - int(absent[codes].sum()):
            return ""
        marks = [texts[code] for code in odd]
        options = " ".join(f"--missing {shlex.quote(mark)}" for mark in marks)
        return f"of {listed(marks)} in {n_odd:,} cells; if that means missing, add  {options}"

    @staticmethod
    def _odd_codes(texts: list[str], absent: NDArray[np.bool_]) -> list[int]:
        """Which of the distinct texts are neither numbers nor missing."""
        return [
            code for code, text in enumerate(texts) if not absent[code] and _number(text) is None
        ]

    def _require_numbers(self, name: str) -> None:
        texts, codes, absent = self._column_parts(name)
        odd = self._odd_codes(texts, absent)
        if odd:
            first = int(np.isin(codes, odd).argmax())
            text = texts[codes[first]]
            raise CommandError(
                f"{self.path}, row {first + 1:,} after the header: column {name!r} holds {text!r}, "
                "but the model compares it with numbers; correct the cell, or, if that means "
                f"missing, add  --missing {shlex.quote(text)}"
            )

    def cells(self, name: str) -> list[Any]:
        """The cells of a column as they are in the file."""
        texts = self._texts[name]
        return [texts[code] for code in self._codes[name]]

    def _text_column(self, name: str) -> Column:
        texts, codes, absent = self._column_parts(name)
        return column_of_codes(name, np.where(absent[codes], -1, codes), texts)

    def _column_parts(self, name: str) -> tuple[list[str], NDArray[np.int32], NDArray[np.bool_]]:
        """Distinct texts without outer spaces, the number of each cell's, and which are missing."""
        texts = [text.strip() for text in self._texts[name]]
        distinct = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        renumbered = np.array([distinct[text] for text in texts], dtype=np.int32)
        absent = [text.lower() in MISSING or text in self._marks for text in distinct]
        codes = renumbered[np.array(self._codes[name], dtype=np.intp)]
        return list(distinct), codes, np.array(absent, dtype=bool)


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    """A CSV file as text; errors of the operating system are the caller's to explain."""
    with ExitStack() as stack:
        binary: Any
        if path == "-":
            binary = sys.stdin.buffer
        elif path.endswith(".gz"):
            binary = stack.enter_context(gzip.open(path, "rb"))
        else:
            binary = stack.enter_context(Path(path).open("rb"))
        start = binary.peek(4)
        for magic, kind in _OTHER_KINDS.items():
            if start.startswith(magic):
                raise CommandError(f"{path}: this is {kind.format(path=shlex.quote(path))}")
        text = io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
        try:
            yield text
        finally:
            text.detach()  # standard input stays open


def header_of(path: str) -> list[str]:
    """The cells of the first line of a CSV file."""
    with _opened(path) as file:
        line = file.readline(_LONGEST_HEADER)
    return next(csv.reader([line], delimiter=_delimiter_of(line)), [])


def _delimiter_of(header: str) -> str:
    return max(_DELIMITER_NAMES, key=header.count)


def _number(text: str) -> float | None:
    """The number that a text writes, or None."""
    try:
        return float(text) if "_" not in text and text.isascii() else None
    except ValueError:
        return None


def _refuse_inexact(name: str, texts: list[str], values: NDArray[np.float64]) -> None:
    """Raise ValueError for whole numbers that 64-bit floats cannot tell apart."""
    sizes = np.abs(values[np.isfinite(values)])
    if sizes.max(initial=0.0) >= LARGEST_EXACT_INTEGER:
        digits = [int(text) for text in texts if text.lstrip("+-").isdecimal()]
        refuse_inexact_integers(name, min(digits, default=0), max(digits, default=0))
