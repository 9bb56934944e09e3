"""What a set of answers says, and what is wrong with it."""

from sdulearn.answers.checks import AnswerChecks, Contradiction, check_answers
from sdulearn.answers.doubtful import DoubtfulAnswers, doubtful_answers
from sdulearn.answers.error_rates import ErrorRate, ErrorRates, estimate_error_rates
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.records import Answers, BadRow
from sdulearn.io.answers import read_answers

__all__ = [
    "AnswerChecks",
    "AnswerGraph",
    "Answers",
    "BadRow",
    "Contradiction",
    "DoubtfulAnswers",
    "ErrorRate",
    "ErrorRates",
    "check_answers",
    "doubtful_answers",
    "estimate_error_rates",
    "read_answers",
]
