"""Answers by a machine instead of people: a column of labels, or a process of the user."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from sdulearn.answers.records import Answer, Given
from sdulearn.asking.oracles import Judge, open_questions
from sdulearn.asking.records import RowQuestion
from sdulearn.asking.session import MAX_NAME, Session
from sdulearn.cli.options import Budget, say
from sdulearn.errors import InputError, NothingToAskError, shortened
from sdulearn.web.things import Things

_PROGRESS_EVERY = 50


def ask_machine(
    session: Session, things: Things, labels: Sequence[str], instructions: str, arguments: argparse.Namespace
) -> None:
    """Answer from the labels or by a command, and print progress."""
    if arguments.command is None:
        _ask_on(session, arguments, [], lambda _: [_by_labels(session, labels, arguments.annotator)])
        return
    if session.epsilon is not None:
        raise InputError("--private protects people, and --command asks a machine. Leave one of them out.")
    who = arguments.annotator or shortened(arguments.command, MAX_NAME - 20)
    texts = {name: text for name, text in (("ask", arguments.question), ("instructions", instructions)) if text}
    given = [one for one in session.store.contents.answers.values() if one.annotator == who]
    with closing(Judge(arguments.command, arguments.timeout)) as judge:
        _ask_on(session, arguments, given, lambda number: _judged(session, things, judge, who, number, texts))
    seconds, cost = (sum(getattr(answer.given, name) or 0.0 for answer in given) for name in ("seconds", "cost"))
    say(f"{who}: {len(given):,} answers, {seconds:.1f} seconds" + (f", cost {cost:.4g}" if cost else ""))


def _ask_on(
    session: Session,
    arguments: argparse.Namespace,
    given: list[Answer[str]],
    answers: Callable[[int], Iterable[Answer[str] | None]],
) -> None:
    """Collect answers in batches until the budget is spent or no question is left."""
    budget = arguments.budget or Budget(arguments.questions)
    reached = False
    try:
        while not reached and (number := _affordable(given, budget, arguments.batch_size)) > 0:
            for answer in filter(None, answers(number)):
                given.append(answer)
                if len(given) % _PROGRESS_EVERY == 0:
                    numbers = session.numbers(wait=True)
                    say(describe_numbers(numbers))
                    reached = numbers["reached"]
    except NothingToAskError as error:
        counted = ""
        if not budget.unit and not session.goal.audit:
            counted = f"Only {len(given):,} of {budget.amount:,.0f} questions were asked. "
        say(f"{counted}{error}")
    if len(given) % _PROGRESS_EVERY:
        say(describe_numbers(session.numbers(wait=True)))


def _affordable(given: Sequence[Answer[str]], budget: Budget, batch_size: int) -> int:
    """Return the number of questions in the next batch, by what the earlier ones cost."""
    if not budget.unit:
        return int(min(budget.amount - len(given), batch_size))
    known = [answer.given.seconds if budget.unit == "seconds" else answer.given.cost for answer in given]
    amounts = [amount for amount in known if amount is not None]
    if len(amounts) < len(known):
        raise InputError(
            f'--budget in {budget.unit} needs a "cost" in every reply of --command. Give --budget in answers.'
        )
    spent = sum(amounts)
    mean = spent / len(amounts) if amounts else 0.0
    left = budget.amount - spent
    return int(min(batch_size, left / mean + 1e-9 if mean else batch_size)) if left > 0 else 0


def _judged(
    session: Session, things: Things, judge: Judge, who: str, number: int, texts: Mapping[str, str]
) -> Iterator[Answer[str]]:
    """Ask a process, except what it has answered before; yield each answer once it is on disk."""
    contents = session.store.contents
    every = (*contents.withdrawn.values(), *contents.answers.values())
    known = {answer.question.key: answer for answer in every if answer.annotator == who}
    asked: dict[int, RowQuestion] = {}
    lines: dict[int, dict[str, object]] = {}
    n_before = max((key[1] for key in (*contents.answers, *contents.undone)), default=0)
    for place, question in enumerate(open_questions(session.asker, number, who), start=n_before + 1):
        old = known.get(question.about([session.ids[row] for row in question.items]).key)
        if old is not None:
            yield session.record(question, _again(session, old, question), who, Given(seconds=0.0, cost=0.0))
            continue
        asked[place] = question
        lines[place] = {**texts, "form": question.form, "items": [things.data(row) for row in question.items]}
    for place, reply in judge.replies(lines) if asked else ():
        given = Given(comment=reply.comment, seconds=reply.seconds, probability=reply.probability, cost=reply.cost)
        try:
            yield session.record(asked[place], reply.answer, who, given)
        except InputError as error:
            raise InputError(f"{who}: {error} The answers before it are in the log.") from None


def _again(session: Session, old: Answer[str], question: RowQuestion) -> object:
    """Return an earlier reply to the same question, whose items may have been in another order."""
    items = [session.ids[row] for row in question.items]
    if old.is_unsure or old.groups is None:
        return "unsure" if old.nearer is None else items.index(old.choices[old.nearer]) - 1
    groups = dict(zip(old.question.items, old.groups, strict=True))
    return [groups[item] for item in items]


def _by_labels(session: Session, labels: Sequence[str], who: str) -> Answer[str] | None:
    """Answer the next question from a column of labels; unsure if a label is missing."""
    token, question = session.question(who)
    return session.answer(who, token, reply_by_labels(question, labels))


def reply_by_labels(question: RowQuestion, labels: Sequence[str]) -> object:
    """Return the reply of somebody who knows some labels, "" where not."""
    left, *others = shown = [labels[row] for row in question.items]
    if question.form == "sort":
        return [label or None for label in shown]
    if left and left in others:
        return True if question.form == "pair" else others.index(left)
    if "" in shown or question.form == "nearer":
        return "unsure"
    return False if question.form == "pair" else "none"


def describe_numbers(numbers: Mapping[str, Any]) -> str:
    """Return the estimates in one line."""
    parts = [f"{numbers['n_answers']:,} answers"]
    if classes := numbers["classes"]:
        # Without random questions there are no shares.
        shares = ", ".join(f"{one['share']:.0%}" for one in classes if one["share"] == one["share"])
        parts.append(f"{len(classes)} classes" + (f" ({shares})" if shares else ""))
    if accuracy := numbers["accuracy"]:
        interval = f"{accuracy['low']:.1%} to {accuracy['high']:.1%}"
        parts.append(f"estimated accuracy {accuracy['value']:.1%} ({interval}), from the random questions")
    elif numbers["missing"]:
        parts.append(f"accuracy unknown, random questions still missing: {numbers['missing']}")
    if advice := numbers["advice"]:
        parts.append(f"the next {advice['n_next']} may add {100 * advice['expected_gain']:.1f} percentage points")
    return "; ".join(parts)
