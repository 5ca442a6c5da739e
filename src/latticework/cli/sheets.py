"""Tables in files: CSV with nothing but Python, Parquet with pyarrow."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from latticework.cli.csv_sheet import CsvSheet, header_of
from latticework.cli.errors import CommandError, blamed_on, listed, optional
from latticework.rules.columns import Table, read_table

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from latticework.rules.cells import Column

STANDARD_STREAM = "-"
PARQUET_ENDINGS = (".parquet", ".pq")
CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


class Sheet(Protocol):
    """A table in a file, whose columns are typed when they are asked for."""

    path: str
    names: list[str]
    n_rows: int

    def column(self, name: str) -> Column:
        """A column, typed by its cells."""

    def column_as(self, name: str, kind: str, levels: Collection[Any]) -> Column:
        """A column read as a model reads it, whose rules mention these levels."""

    def cells(self, name: str) -> list[Any]:
        """The cells of a column as they are in the file."""

    def why_text(self, name: str) -> str:
        """Why a column that looks like numbers is text, and the remedy; empty for others."""


class ParquetSheet:
    """The cells of a Parquet file.

    Parameters
    ----------
    path : str
    missing : collection of str
        Texts that mean a missing cell, beside the missing cells of the file.
    """

    def __init__(self, path: str, missing: Collection[str] = ()) -> None:
        parquet = optional("pyarrow.parquet", f"reading {path}")
        arrow = optional("pyarrow", f"reading {path}")
        self.path = path
        try:
            table = parquet.read_table(path)
        except arrow.ArrowException as error:
            raise CommandError(f"{path}: this is not readable as Parquet: {error}") from error
        # Where pandas stores an index it is no column.
        self.names = [name for name in table.column_names if not name.startswith("__index_level_")]
        self.n_rows = table.num_rows
        self._table = table
        self._missing = list(missing)
        self._arrow = arrow

    def column(self, name: str) -> Column:
        """A column, typed by its type in the file."""
        return read_table(self._one(name))[name]

    def column_as(self, name: str, kind: str, levels: Collection[Any]) -> Column:
        """A column read as a model reads it; the levels make no difference here."""
        return read_table(self._one(name), names=[name], kinds=[kind])[name]

    def cells(self, name: str) -> list[Any]:
        """The cells of a column as they are in the file."""
        return list(self._table[name].to_pylist())

    def why_text(self, name: str) -> str:
        """Nothing: the file says which columns are numbers."""
        return ""

    def _one(self, name: str) -> Any:
        """A table of one column, with nulls for texts that mean a missing cell."""
        column = self._table[name]
        if self._arrow.types.is_string_view(column.type):
            column = column.cast("large_string")  # few functions take views
        if self._missing and self._is_text(column.type):
            compute = optional("pyarrow.compute", "--missing")
            column = column.cast("large_string")
            marks = self._arrow.array(self._missing, type=column.type)
            none = self._arrow.scalar(None, column.type)
            column = compute.if_else(compute.is_in(column, value_set=marks), none, column)
        return self._arrow.table({name: column})

    def _is_text(self, kind: Any) -> bool:
        types = self._arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        return bool(types.is_string(kind) or types.is_large_string(kind))


def is_parquet(path: str) -> bool:
    """Whether a file's name says that it holds Parquet."""
    return path.lower().endswith(PARQUET_ENDINGS)


def names_in(path: str) -> list[str]:
    """The names of the columns of a file; none where it is no table."""
    try:
        if is_parquet(path):
            return list(optional("pyarrow.parquet", f"writing {path}").read_schema(path).names)
        return header_of(path)
    except (OSError, ValueError, CommandError):
        return []


def open_sheet(path: str, missing: Sequence[str] = ()) -> Sheet:
    """The table of a file; its ending says which kind it is.

    Raises
    ------
    CommandError
        When there is no such file, or it is not what its ending says, or it has no rows.
    """
    kind = ParquetSheet if is_parquet(path) else CsvSheet
    try:
        sheet: Sheet = kind(path, missing)
    except FileNotFoundError as error:
        raise CommandError(f"{path}: there is no such file{_similar_files(path)}") from error
    except IsADirectoryError as error:
        raise CommandError(f"{path}: this is a folder; name a file in it") from error
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    if sheet.n_rows == 0:
        raise CommandError(f"{path}: the file has column names, but no rows")
    return sheet


def _similar_files(path: str) -> str:
    """A hint at the tables in the folder that was searched."""
    folder = Path(path).parent
    endings = (*CSV_ENDINGS, *PARQUET_ENDINGS)
    try:
        found = sorted(name for name in os.listdir(folder) if name.lower().endswith(endings))
    except OSError:
        return ", nor the folder it should be in"
    near = get_close_matches(Path(path).name, found, n=1, cutoff=0.75)
    if near:
        return f"; did you mean {str(folder / near[0])!r}?"
    return f"; the folder holds {listed(found, 5)}" if found else "; the folder holds no table"


def require_columns(sheet: Sheet, names: Sequence[str], what: str) -> None:
    """Raise CommandError unless a file has all these columns.

    Parameters
    ----------
    sheet : Sheet
    names : sequence of str
    what : str
        Who wants them: the error is ``<file>: there is no column 'x', <what>; ...``.
    """
    absent = [name for name in names if name not in sheet.names]
    if absent:
        noun = "is no column" if len(absent) == 1 else "are no columns"
        near = get_close_matches(absent[0], sheet.names, n=1)
        hint = f"did you mean {near[0]!r}? The" if near else "the"
        raise CommandError(
            f"{sheet.path}: there {noun} {listed(absent)}, {what}; {hint} file has "
            f"{listed(sheet.names)}"
        )


def table_of(sheet: Sheet, names: Sequence[str]) -> Table:
    """Columns of a file, each typed by its cells."""
    with blamed_on(sheet.path):
        return Table(tuple(sheet.column(name) for name in names), sheet.n_rows)
