"""Answers by a machine instead of people: a column of labels, or a process of the user."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from sdulearn.answers.records import Answer
from sdulearn.asking.oracles import Judge, open_questions
from sdulearn.asking.records import Question
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
    seconds, cost = (sum(getattr(one, name) or 0.0 for one in given) for name in ("seconds", "cost"))
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
    known = [answer.seconds if budget.unit == "seconds" else answer.cost for answer in given]
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
    match = session.asker.design == "match"
    contents = session.store.contents
    every = (*contents.withdrawn.values(), *contents.answers.values())
    known = {one.asked: one for one in every if one.annotator == who}
    asked: dict[int, tuple[Question, dict[str, object]]] = {}
    for question in open_questions(session.asker, number, who):
        ids = tuple(session.ids[row] for row in question.choices)
        old = known.get(Answer(session.ids[question.left], ids, "unsure").asked)
        if old is not None:
            said = old.said if old.picked is None else ids.index(old.picked)
            yield session.record(question, said if match else old.word, who, seconds=0.0, cost=0.0)
            continue
        left, *others = (things.data(row) for row in (question.left, *question.choices))
        compared = {"choices": others} if match else {"right": others[0]}
        asked[question.number] = (question, {**texts, "left": left, **compared})
    for number, reply in judge.replies({number: line for number, (_, line) in asked.items()}) if asked else ():
        more = {name: value for name, value in vars(reply).items() if name not in ("question", "answer")}
        try:
            yield session.record(asked[number][0], reply.answer, who, **more)
        except InputError as error:
            raise InputError(f"{who}: {error} The answers before it are in the log.") from None


def _by_labels(session: Session, labels: Sequence[str], who: str) -> Answer[str] | None:
    """Answer the next question from a column of labels; unsure if a label is missing."""
    token, question = session.question(who)
    left, *others = (labels[row] for row in (question.left, *question.choices))
    match = session.asker.design == "match"
    said: int | str = "none" if match else "different"
    if left and left in others:
        said = others.index(left) if match else "same"
    elif "" in (left, *others):
        said = "unsure"
    return session.answer(who, token, said)


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
