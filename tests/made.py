"""Answers for tests, made in one line."""

from sdulearn.answers.records import Given, Question, read_reply


def made(left, choices, reply, annotator="", why="uncertain", *, form=None, rank=None, **given):
    """An answer to a pair, or to a match question where several choices or ``form`` say so."""
    question = Question(form or ("match" if len(choices) > 1 else "pair"), (left, *choices), why, rank)
    return read_reply(question, reply)._replace(annotator=annotator, given=Given(**given))


def store(log, left, choices, reply, annotator="", why="uncertain", **more):
    """Put such an answer into a store."""
    answer = made(left, choices, reply, annotator, why, **more)
    return log.add(answer.question, answer.reply, annotator, answer.given)
