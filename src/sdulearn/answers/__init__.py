"""What a set of answers says, and what is wrong with it."""

from sdulearn.answers.checks import AnswerChecks, Contradiction, check_answers
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.records import Answers, BadRow
from sdulearn.io.answers import read_answers

__all__ = ["AnswerChecks", "AnswerGraph", "Answers", "BadRow", "Contradiction", "check_answers", "read_answers"]
