"""What text, Markdown, LaTeX and HTML all show: the same lines, dressed differently by each."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING

import numpy as np

from latticework.rules.conditions import format_value
from latticework.rules.scores import LOG, LOGIT, SOFTMAX
from latticework.rules.statistics import BINARY, MULTICLASS, MULTILABEL, REGRESSION, votes
from latticework.rules.wording import Token, clauses, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latticework.rules.ensemble import RuleEnsemble
    from latticework.rules.rule import Rule
    from latticework.rules.terms import LinearTerm

INTERCEPT = "intercept"


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table: a rule, a linear term or the intercept.

    Parameters
    ----------
    weights : tuple of T str
        The weights, rounded.
    clauses : list of lists of Token
        The rule's conditions; empty for what is no rule.
    label : str
        What the line is when it is no rule (or a rule without conditions).
    support, quality, vote : str
        The rule's statistics and what it votes for; empty where there are none.
    strengths : tuple of T float
        The weights divided by the largest absolute one, for bars.
    """

    weights: tuple[str, ...]
    clauses: list[list[Token]]
    label: str
    support: str
    quality: str
    vote: str
    strengths: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything that a presentation shows.

    Parameters
    ----------
    title : str
        What the score is.
    headers : tuple of str
        T headers of weights, then those of rule, support, quality and, unless no line has one,
        vote.
    lines : list of Line
        Rules, linear terms, intercept.
    note : str
        What follows from the score.
    """

    title: str
    headers: tuple[str, ...]
    lines: list[Line]
    note: str

    def statistics(self, line: Line) -> tuple[str, ...]:
        """The cells of a line that follow its rule, as many as there are headers."""
        n_shown = len(self.headers) - len(line.weights) - 1
        return (line.support, line.quality, line.vote)[:n_shown]


def sheet_of(ensemble: RuleEnsemble, digits: int, sort_by: str | None) -> Sheet:
    """The lines of an ensemble, its rules in the order asked for."""
    if digits < 1:
        raise ValueError(f"digits must be at least 1, got {digits}.")
    write = _Writer(ensemble, digits)
    lines = [write.rule(rule) for rule in rules_in_order(ensemble, sort_by)]
    lines += [write.term(term) for term in ensemble.linear_terms]
    lines.append(write.other(ensemble.intercept, INTERCEPT))
    headers = [*map(visible, ensemble.outputs)] if ensemble.n_outputs > 1 else ["weight"]
    headers += ["rule", "support", "mean" if ensemble.output == REGRESSION else "precision"]
    if any(line.vote for line in lines):
        headers.append("of target" if ensemble.output == REGRESSION else "votes for")
    return Sheet(_title(ensemble), tuple(headers), lines, _note(ensemble))


def rules_in_order(ensemble: RuleEnsemble, sort_by: str | None) -> list[Rule]:
    """The rules as they are, or by descending importance (unknown ones last)."""
    if sort_by not in (None, "importance"):
        raise ValueError(f"sort_by must be 'importance' or None, got {sort_by!r}.")
    if sort_by is None:
        return list(ensemble.rules)
    importances = np.nan_to_num(ensemble.importances, nan=-1.0)
    return [ensemble.rules[r] for r in np.argsort(-importances, kind="stable")]


def number_format(largest: float, digits: int) -> str:
    """Format with the decimals that show a number of this size with so many digits.

    Examples
    --------
    >>> number_format(1.31, 3), number_format(12031.2, 3), number_format(1e-12, 3)
    ('.2f', '.0f', '.2e')
    """
    power = floor(log10(largest)) if largest else 0
    if not -6 <= power <= 9:
        return f".{digits - 1}e"
    return f".{max(0, digits - 1 - power)}f"


class _Writer:
    """Writes the lines of one ensemble, whose weights all get the same number of decimals."""

    def __init__(self, ensemble: RuleEnsemble, digits: int) -> None:
        self.ensemble = ensemble
        self.largest = float(np.abs(ensemble.weights).max(initial=0.0))
        others = [abs(weight) for term in ensemble.linear_terms for weight in term.weights]
        largest = max([self.largest, *others]) or max(map(abs, ensemble.intercept))
        self.weight_format = number_format(largest, digits)
        # Means of one target get the same number of decimals.
        largest_means = [0.0] * ensemble.n_outputs
        if ensemble.output == REGRESSION:
            chosen, _ = votes(ensemble.weights, ensemble.output)
            for rule, target in zip(ensemble.rules, chosen, strict=True):
                largest_means[target] = max(largest_means[target], abs(rule.mean or 0.0))
        self.mean_formats = [number_format(mean, 4) for mean in largest_means]

    def weights(self, weights: Sequence[float]) -> tuple[str, ...]:
        return tuple("0" if w == 0 else f"{w:+{self.weight_format}}" for w in weights)

    def rule(self, rule: Rule) -> Line:
        quality, vote = self.verdict(rule)
        return Line(
            weights=self.weights(rule.weights),
            clauses=clauses(rule.conditions),
            label="" if rule.conditions else str(rule),
            support="" if rule.support is None else f"{rule.support:.1%}",
            quality=quality,
            vote=vote,
            strengths=tuple(w / self.largest if self.largest else 0.0 for w in rule.weights),
        )

    def term(self, term: LinearTerm) -> Line:
        name, sign = visible(term.feature), "+" if term.mean < 0 else "-"
        deviation = f"({name} {sign} {abs(term.mean):.4g}) / {term.scale:.4g}"
        low, high = format_value(term.low), format_value(term.high)
        return self.other(term.weights, f"{deviation}, {name} kept within {low} to {high}")

    def other(self, weights: Sequence[float], label: str) -> Line:
        return Line(self.weights(weights), [], label, "", "", "", (0.0,) * len(weights))

    def verdict(self, rule: Rule) -> tuple[str, str]:
        """How often the rule's vote is right, and the vote; or a mean, and of which target."""
        [chosen], [in_favour] = votes(np.array([rule.weights]), self.ensemble.output)
        name = visible(self.ensemble.outputs[chosen])
        if self.ensemble.output == REGRESSION:
            if rule.mean is None:
                return "", ""
            several = self.ensemble.n_outputs > 1
            return f"{rule.mean:{self.mean_formats[chosen]}}", name if several else ""
        if rule.precision is None:
            return "", ""
        if self.ensemble.output == BINARY and self.ensemble.classes is not None:
            name = visible(str(self.ensemble.classes[int(in_favour)]))
        elif not in_favour:
            name = f"not {name}"
        return f"{rule.precision:.1%}", name


def _title(ensemble: RuleEnsemble) -> str:
    names = [visible(name) for name in ensemble.outputs]
    if ensemble.output == BINARY:
        assert ensemble.classes is not None
        other, positive = (visible(str(label)) for label in ensemble.classes)
        subject = f"Score of {positive} (against {other})"
    elif len(names) == 1:
        subject = f"Score of {names[0]}"
    else:
        what = {MULTICLASS: "class", MULTILABEL: "label"}.get(ensemble.output, "target")
        subject = f"Score of each {what}"
    return f"{subject} = sum of the weights of all lines that hold"


def _note(ensemble: RuleEnsemble) -> str:
    """What follows from the score, in a formula, and how to read linear terms."""
    if not ensemble.linear_terms:
        return _prediction(ensemble)
    return f"{_prediction(ensemble)}; a formula counts its weight times its value (0 where missing)"


def _prediction(ensemble: RuleEnsemble) -> str:
    positive = visible(ensemble.outputs[0])
    if ensemble.output == REGRESSION:
        return "prediction = exp(score)" if ensemble.link == LOG else "prediction = score"
    if ensemble.output == BINARY:
        if ensemble.link == LOGIT:
            return f"probability of {positive} = 1 / (1 + exp(-score))"
        return f"prediction = {positive} where score > 0"
    if ensemble.link == SOFTMAX:
        return "probability of a class = exp(its score) / sum of exp(score) over all classes"
    if ensemble.output == MULTILABEL:
        if ensemble.link == LOGIT:
            return "probability of a label = 1 / (1 + exp(-its score))"
        return "a label is predicted where its score > 0"
    if ensemble.link == LOGIT:
        return "probability of a class = 1 / (1 + exp(-its score)), divided by their sum"
    return "prediction = class with the largest score"
