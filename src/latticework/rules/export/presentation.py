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
    decimals = _decimals(ensemble, digits)
    lines = [_rule_line(ensemble, rule, decimals) for rule in rules_in_order(ensemble, sort_by)]
    lines += [_term_line(ensemble, term, decimals) for term in ensemble.linear_terms]
    lines.append(_line(ensemble, ensemble.intercept, decimals, label=INTERCEPT))
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


def _decimals(ensemble: RuleEnsemble, digits: int) -> int:
    """Decimals that give the largest weight of a rule (or of anything) so many digits."""
    rules = np.abs(ensemble.weights).max(initial=0.0)
    others = [abs(w) for term in ensemble.linear_terms for w in term.weights]
    return decimals_for(max([rules, *others]) or max(map(abs, ensemble.intercept)), digits)


def decimals_for(largest: float, digits: int) -> int:
    """Decimals that show a number of this size with (at least) so many digits."""
    return max(0, digits - 1 - floor(log10(largest))) if largest else digits - 1


def _line(
    ensemble: RuleEnsemble,
    weights: Sequence[float],
    decimals: int,
    *,
    label: str = "",
    rule: Rule | None = None,
) -> Line:
    largest = np.abs(ensemble.weights).max(initial=0.0)
    strengths = [0.0 if rule is None or not largest else w / largest for w in weights]
    return Line(
        weights=tuple("0" if w == 0 else f"{w:+.{decimals}f}" for w in weights),
        clauses=clauses(rule.conditions) if rule else [],
        label=label,
        support="" if rule is None or rule.support is None else f"{rule.support:.1%}",
        quality="" if rule is None else _quality(ensemble, rule),
        vote="" if rule is None else _vote(ensemble, rule),
        strengths=tuple(map(float, strengths)),
    )


def _rule_line(ensemble: RuleEnsemble, rule: Rule, decimals: int) -> Line:
    label = "" if rule.conditions else str(rule)
    return _line(ensemble, rule.weights, decimals, rule=rule, label=label)


def _term_line(ensemble: RuleEnsemble, term: LinearTerm, decimals: int) -> Line:
    name = visible(term.feature)
    low, high = format_value(term.low), format_value(term.high)
    label = f"({name} - {term.mean:.4g}) / {term.scale:.4g}, {name} kept within {low} to {high}"
    return _line(ensemble, term.weights, decimals, label=label.replace("- -", "+ "))


def _quality(ensemble: RuleEnsemble, rule: Rule) -> str:
    """How often the rule's vote is right; regression: the mean of the target."""
    if ensemble.output != REGRESSION:
        return "" if rule.precision is None else f"{rule.precision:.1%}"
    largest = max(abs(other.mean or 0.0) for other in ensemble.rules)
    return "" if rule.mean is None else f"{rule.mean:.{decimals_for(largest, 4)}f}"


def _vote(ensemble: RuleEnsemble, rule: Rule) -> str:
    """What the precision is of; with several targets, which one the mean is of."""
    [chosen], [in_favour] = votes(np.array([rule.weights]), ensemble.output)
    if (rule.mean if ensemble.output == REGRESSION else rule.precision) is None:
        return ""
    if ensemble.output == REGRESSION:
        return visible(ensemble.outputs[chosen]) if ensemble.n_outputs > 1 else ""
    if ensemble.output == BINARY:
        assert ensemble.classes is not None
        return visible(str(ensemble.classes[int(in_favour)]))
    return f"{'' if in_favour else 'not '}{visible(ensemble.outputs[chosen])}"


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
