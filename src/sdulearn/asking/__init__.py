"""Which question to ask next, and what the answers have found; knows no web."""

from sdulearn.answers.records import Question
from sdulearn.asking.asker import Asker, ask
from sdulearn.asking.estimates import Advice, ClassFound
from sdulearn.asking.notebook import QuestionCell
from sdulearn.asking.privacy import Leak, effective_answers, flip_rate

__all__ = ["Advice", "Asker", "ClassFound", "Leak", "Question", "QuestionCell", "ask", "effective_answers", "flip_rate"]
