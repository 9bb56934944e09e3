"""A crowd at a glance: how often its answers are wrong, whose, between which classes and to which questions."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from sdulearn.answers.answer_model import AnswerModel, is_crowd, number_by_answers
from sdulearn.answers.checks import number_ids
from sdulearn.answers.graph import AnswerGraph, least_classes, number_questions
from sdulearn.answers.records import Answers
from sdulearn.diagnostics import LEVEL, Details, Finding
from sdulearn.errors import shortened
from sdulearn.pairs import SIMILAR, UNSURE
from sdulearn.types import Array, Indices

# Doubtful is whose median answer takes less than this share of everybody's, and who is careless more often than this.
_FAST = 1 / 3
_CARELESS = 0.5


def estimate_answers(graph: AnswerGraph, n_classes: int | str = "auto") -> tuple[AnswerModel, int]:
    """How the answers go wrong, and with how many classes.

    By default the number that explains answers of a crowd that are left out best. Otherwise two classes, where these
    explain all answers or about half of them are "same", as of random pairs of two; else as many as they force.
    """
    if isinstance(n_classes, str):
        half = binom.cdf(np.sum(graph.same > 0), graph.n_answers, 0.5) >= LEVEL
        if is_crowd(graph):
            n_classes = number_by_answers(graph)[0]
        elif half or not graph.contradictory.any():
            n_classes = 2
        else:
            n_classes = max(3, least_classes(graph, graph.same != 0))
    return AnswerModel.estimate(graph, n_classes), n_classes


def check_crowd(answers: Answers, model: AnswerModel, n_classes: int) -> list[Finding]:
    """What the answers say of those who gave them; of one person how often they are wrong."""
    ends = number_ids(answers.ids)
    used = np.flatnonzero((ends[:, 0] != ends[:, 1]) & (answers.answers != UNSURE))
    asked, question = number_questions(ends[used], int(ends.max(initial=-1)) + 1)
    same = np.bincount(question, answers.answers[used] == SIMILAR).astype(int)
    n = np.bincount(question)
    people = _people(answers, used, model)
    answers_each = np.quantile([one["n_answers"] for one in people] or [len(used)], [0, 0.5, 1]).tolist()
    about = {"n_classes": n_classes, "n_people": len(people), "answers_each": answers_each, **vars(model.error_rate)}
    about |= {"n_repeated": int(np.sum(n > 1)), "n_both_ways": int(np.sum((same > 0) & (same < n)))}
    known = model.error_rate.identified
    found = [Finding("crowd", "result", {**about, "identified": known})] if known or len(people) > 1 else []
    if len(people) > 1:
        doubtful = [one for one in people if one["reasons"]]
        details = {"people": people, "count": len(doubtful), "items": [_in_words(one) for one in doubtful]}
        found.append(Finding("people", "warning" if doubtful else "info", details))
    if model.table is not None:
        found.append(Finding("answer_table", "info", _confused(100 * model.table)))
    errors = np.bincount(question, model.errors(answers.annotator_numbers[used])) / n
    if len(hard := _disputed(same, n, errors)):
        names = list(map(shortened, dict.fromkeys(answers.ids.ravel().tolist())))
        said = [f"{same[k]} same, {n[k] - same[k]} different" for k in hard]
        items = [f"{names[a]} and {names[b]}: {both}" for (a, b), both in zip(asked[hard], said, strict=True)]
        found.append(Finding("disputed", "warning", {"count": len(hard), "level": LEVEL, "items": items}))
    return found


def _people(answers: Answers, used: Indices, model: AnswerModel) -> list[Details]:
    """Those who answered, the one with the highest rate first, with the reasons to doubt them."""
    number = answers.annotator_numbers[used]
    n = np.bincount(number)
    same = np.bincount(number, answers.answers[used] == SIMILAR)
    share = same.sum() / max(len(used), 1)
    # The chance that all answers of one of so many people are alike.
    alike = np.where(same == n, share**n, np.where(same == 0, (1 - share) ** n, 1.0)) * len(n)
    seconds = np.full(len(used), np.nan) if answers.seconds is None else answers.seconds[used]
    usual = _median(seconds)
    by_person = np.split(seconds[np.argsort(number, kind="stable")], np.cumsum(n)[:-1])
    names = answers.annotator_names
    people: list[Details] = []
    for k in np.unique(number[number > 0]).tolist():
        rate = model.by_annotator[k]
        took = _median(by_person[k])
        reasons = {
            "wrong more often than others": rate.low > model.error_rate.value,
            f"{rate.careless:.0%} careless": rate.careless > _CARELESS,
            f'all "{"same" if same[k] else "different"}"': alike[k] < LEVEL,
            f"{took:.1f} s an answer": took < _FAST * usual,
        }
        why = [reason for reason, holds in reasons.items() if holds]
        people.append({"name": names[k - 1], **vars(rate), "reasons": why})
    return sorted(people, key=lambda one: (-one["value"], -one["low"]))


def _in_words(one: Details) -> str:
    rate = f"{one['value']:.0%} of {one['n_answers']:,} wrong ({one['low']:.0%} to {one['high']:.0%})"
    return f"{shortened(one['name'])}: {rate}; {', '.join(one['reasons'])}"


def _median(seconds: Array) -> float:
    known = seconds[~np.isnan(seconds)]
    return float(np.median(known)) if len(known) else np.nan


def _confused(same: Array) -> Details:
    """The table in per cent, and its K largest mistakes."""
    K = len(same)
    wrong = np.tril(np.where(np.eye(K, dtype=bool), 100 - same, same))
    words = ('class {0}: called "different" {2:.0f}%', 'classes {1} and {0}: called "same" {2:.0f}%')
    worst = [divmod(k, K) for k in np.argsort(-wrong, axis=None)[:K].tolist()]
    items = [words[i != j].format(i + 1, j + 1, wrong[i, j]) for i, j in worst]
    shares = {"same": same.round().tolist(), "different": (100 - same).round().tolist()}
    return {"classes": [str(k + 1) for k in range(K)], **shares, "items": items}


def _disputed(same: Indices, n: Indices, errors: Array) -> Indices:
    """Questions whose n answers disagree more than errors explain, by an exact test; the most telling first.

    If X of n answers are wrong, the smaller side has min(X, n - X), whatever the truth is.
    """
    fewer = np.minimum(same, n - same)
    p_value = binom.cdf(n - fewer, n, errors) - binom.cdf(fewer - 1, n, errors)
    order = np.argsort(p_value, kind="stable")
    return order[p_value[order] * max(np.sum(n > 1), 1) < LEVEL]
