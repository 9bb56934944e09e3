"""What a set of answers says, and what is wrong with it."""

from importlib import import_module
from typing import TYPE_CHECKING

from sdulearn.answers.answer_model import AnswerModel, Rate
from sdulearn.answers.checks import (
    AnswerChecks,
    Contradiction,
    DoubtfulAnswers,
    check_answers,
    classes_of_answers,
    doubtful_answers,
)
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.records import Answers, BadRow

if TYPE_CHECKING:
    from sdulearn.answer_files.read import read_answers

__all__ = [
    "AnswerChecks",
    "AnswerGraph",
    "AnswerModel",
    "Answers",
    "BadRow",
    "Contradiction",
    "DoubtfulAnswers",
    "Rate",
    "check_answers",
    "classes_of_answers",
    "doubtful_answers",
    "read_answers",
]


def __getattr__(name: str) -> object:
    """``read_answers``, when it is asked for: its home is above."""
    if name != "read_answers":
        raise AttributeError(f"module 'sdulearn.answers' has no attribute {name!r}")
    return import_module("sdulearn.answer_files.read").read_answers
