"""Display classes like those of scikit-learn.

Each class has a ``from_...`` method, which computes the numbers and draws them. The numbers are attributes, and
``plot(ax=...)`` draws them again. The displays need matplotlib: ``pip install 'sdulearn[demo]'``.
"""

from sdulearn.plotting.boundary import PairBoundaryDisplay
from sdulearn.plotting.classes import AnnotatorDisplay, AnswerMatrixDisplay, ReliabilityDisplay
from sdulearn.plotting.curves import PairLearningCurveDisplay

__all__ = [
    "AnnotatorDisplay",
    "AnswerMatrixDisplay",
    "PairBoundaryDisplay",
    "PairLearningCurveDisplay",
    "ReliabilityDisplay",
]
