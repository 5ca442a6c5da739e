"""Files that commands write: checked before any work is done for them, never half written."""

from __future__ import annotations

import csv
import gzip
import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latticework.cli.errors import CommandError, optional
from latticework.cli.sheets import (
    CSV_ENDINGS,
    PARQUET_ENDINGS,
    STANDARD_STREAM,
    is_parquet,
    names_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Endings of files of tables that other programs write, and of models.
_OTHER_ENDINGS = (".xlsx", ".xls", ".ods", ".json", ".feather", ".arrow", ".sas7bdat")

_BEGINNING = 1000  # bytes


def check_writable(path: str, keep: Sequence[str], ours: Callable[[str], bool]) -> None:
    """Raise CommandError when a file could not or should not be written.

    Parameters
    ----------
    path : str
    keep : sequence of str
        Files that are read, which must not be written over.
    ours : callable
        Whether an existing file is of the kind that the command writes; others are somebody
        else's and must not be written over either.
    """
    if path == STANDARD_STREAM:
        return
    for other in keep:
        if os.path.realpath(other) == os.path.realpath(path):
            raise CommandError(f"{path}: this is the file to read; name another one to write")
    folder = Path(path).parent
    if Path(path).is_dir():
        raise CommandError(f"{path}: this is a folder; name a file in it")
    if not folder.is_dir():
        raise CommandError(f"{path}: the folder {str(folder)!r} does not exist; create it first")
    if not Path(path).exists():
        if not os.access(folder, os.W_OK):
            raise CommandError(f"{path}: no file can be written to this folder; name another one")
    elif not os.access(path, os.W_OK):
        raise CommandError(f"{path}: this file must not be changed; name another one")
    elif Path(path).is_file() and Path(path).stat().st_size and not ours(path):
        raise CommandError(
            f"{path}: this file exists, and nothing tells that this command wrote it: name "
            "another one, or remove it first"
        )


def check_table_file(path: str, keep: Sequence[str], ours: Callable[[list[str]], bool]) -> None:
    """The same for a table, which is recognised by the names of its columns."""
    ending = next((end for end in _OTHER_ENDINGS if path.lower().endswith(end)), None)
    if ending:
        raise CommandError(
            f"{path}: tables are written as CSV or Parquet, not as {ending}: let the name end in "
            ".csv or .parquet"
        )
    if is_parquet(path):
        optional("pyarrow.parquet", f"writing {path}")
    check_writable(path, keep, lambda path: ours(names_in(path)))


def begins_with(path: str, mark: bytes) -> bool:
    """Whether the beginning of a file holds a mark."""
    with Path(path).open("rb") as file:
        return mark in file.read(_BEGINNING)


def refuse_table_ending(path: str, what: str, ending: str) -> None:
    """Raise CommandError for a file named like a table that is to hold something else."""
    if path.lower().endswith((*CSV_ENDINGS, *PARQUET_ENDINGS)):
        raise CommandError(
            f"{path}: this is the name of a table, but {what}: let it end in {ending}"
        )


def write_text(path: str, text: str) -> None:
    """Write a file, or standard output."""
    if path == STANDARD_STREAM:
        _write_to_output(text)
        return
    with _replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def _write_to_output(text: str) -> None:
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError as error:
        raise CommandError(
            f"standard output is {error.encoding} and cannot hold {text[error.start]!r}: write to "
            "a file with -o FILE, or set PYTHONIOENCODING=utf-8"
        ) from error


def write_columns(path: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of equal length as CSV or Parquet, whichever the file's ending says."""
    if path == STANDARD_STREAM:
        try:
            _write_rows(sys.stdout, columns)
        except UnicodeEncodeError as error:
            raise CommandError(
                f"standard output is {error.encoding}: write to a file with -o FILE, or set "
                "PYTHONIOENCODING=utf-8"
            ) from error
        return
    with _replacing(path) as part:
        if is_parquet(path):
            parquet = optional("pyarrow.parquet", f"writing {path}")
            arrow = optional("pyarrow", f"writing {path}")
            parquet.write_table(arrow.table(dict(columns)), part)
            return
        delimiter = "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ","
        opened = gzip.open if path.lower().endswith(".gz") else open
        with opened(part, "wt", encoding="utf-8", newline="") as file:
            _write_rows(file, columns, delimiter)


def _write_rows(file: Any, columns: Mapping[str, Sequence[Any]], delimiter: str = ",") -> None:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


@contextmanager
def _replacing(path: str) -> Iterator[Path]:
    """A file to write, which takes the place of another once it is complete."""
    final = Path(os.path.realpath(path))
    if Path(path).exists() and not Path(path).is_file():  # a pipe or a device
        part = final = Path(path)
    else:
        part = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        yield part
        if part != final:
            part.replace(final)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{path}: this cannot be written: {error.strerror or error}") from error
    finally:
        if part != final:
            part.unlink(missing_ok=True)
