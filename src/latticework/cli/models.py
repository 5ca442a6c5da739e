"""Models in files and on the screen."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from latticework.cli.errors import CommandError
from latticework.cli.outputs import begins_with, check_writable, refuse_table_ending
from latticework.cli.sheets import CSV_ENDINGS, PARQUET_ENDINGS
from latticework.cli.terminal import terminal_width
from latticework.rules.ensemble import RuleEnsemble
from latticework.rules.export.presentation import sheet_of
from latticework.rules.export.text import aligned, rule_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latticework.solvers.result import Certificate

_LEAST_RULE_WIDTH = 24
# What tells a file with a model from others.
MODEL_MARK = b'"latticework.RuleEnsemble"'


def load_model(path: str) -> RuleEnsemble:
    """The model of a file that ``latticework learn`` or ``RuleEnsemble.to_json`` wrote."""
    if path.lower().endswith((*CSV_ENDINGS, *PARQUET_ENDINGS)):
        raise CommandError(
            f"{path}: this is the name of a table, not of a model; the model comes first, such as "
            "model.json"
        )
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CommandError(
            f"{path}: there is no such file; 'latticework learn ... --model {path}' writes it"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise CommandError(f"{path}: this cannot be read as a model: {reason}") from error
    try:
        return RuleEnsemble.from_json(text)
    except ValueError as error:
        raise CommandError(
            f"{path}: this is not a model that latticework can read: {error}"
        ) from error


def check_model_file(path: str, keep: Sequence[str]) -> None:
    """Raise CommandError when a model could not or should not be written to a file."""
    refuse_table_ending(path, "a model is saved as JSON", ".json")
    check_writable(path, keep, lambda path: begins_with(path, MODEL_MARK))


def model_text(ensemble: RuleEnsemble) -> str:
    """The table of rules, most important first; long rules are folded on a narrow terminal."""
    text = ensemble.to_text(sort_by="importance")
    width = terminal_width()
    widest = max(map(len, text.splitlines()))
    return _folded(ensemble, width) if sys.stdout.isatty() and widest > width else text


def _folded(ensemble: RuleEnsemble, width: int) -> str:
    """The same table with the rules last, where they can take several lines."""
    sheet = sheet_of(ensemble, 3, "importance")
    n_weights = ensemble.n_outputs
    headers = (*sheet.headers[:n_weights], *sheet.headers[n_weights + 1 :])
    rows = [headers, *((*line.weights, *sheet.statistics(line)) for line in sheet.lines)]
    figures = aligned(rows, left_aligned={n_weights + 2})
    indent = max(map(len, figures))
    room = max(_LEAST_RULE_WIDTH, width - indent - 2)
    table = []
    rules = [sheet.headers[n_weights], *map(rule_text, sheet.lines)]
    for figure, rule in zip(figures, rules, strict=True):
        first, *others = textwrap.wrap(
            rule, room, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        ) or [""]
        table.append(f"{figure:<{indent}}  {first}")
        table += [f"{'':<{indent}}  {part}" for part in others]
    title, note = (textwrap.fill(part, width) for part in (sheet.title, sheet.note))
    return "\n".join([title, "", *table, "", note])


def size_text(size: int) -> str:
    """How many conjunctions there are, briefly.

    Examples
    --------
    >>> size_text(2**54), size_text(24_805), size_text(3 * 10**20)
    ('2^54', '24,805', '3.0e+20')
    """
    exponent = size.bit_length() - 1
    if size == 2**exponent and exponent >= 10:
        return f"2^{exponent}"
    return f"{size:,}" if size < 10**9 else f"{size:.1e}"


def certificate_text(certificate: Certificate, *, relaxed: bool) -> str:
    """What the certificate proves, in a sentence or two."""
    staged = "stage" in certificate.method
    share = 100.0 * certificate.relative_gap
    bound = f"{share:.2g}" if share < 10 else f"{share:.0f}"
    searched = f"{certificate.nodes_searched:,} of them searched"
    if not certificate.complete:
        searched = f"the search was cut short after {certificate.nodes_searched:,} of them"
    sentences = [
        f"Among all weighted sums of the {size_text(certificate.lattice_size)} possible rules "
        f"({searched}) none has a penalised loss more than {bound} % below that of this model."
    ]
    if staged:
        sentences.append("The penalty is the last weighted stage of the concave one.")
    if relaxed:
        sentences.append(
            "This is about the choice of the rules; their weights were then refitted with less of "
            "the penalty."
        )
    return " ".join(sentences)
