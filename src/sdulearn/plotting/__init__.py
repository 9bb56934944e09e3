"""Pictures of a fit: display classes in scikit-learn's manner.

Each class has a ``from_...`` method that computes what is drawn and draws it, keeps the numbers as
attributes, and draws them again with ``plot(ax=...)``. They need matplotlib: ``pip install
'sdulearn[demo]'``.
"""

from sdulearn.plotting.answers import AnswerMatrixDisplay
from sdulearn.plotting.boundary import PairBoundaryDisplay
from sdulearn.plotting.classes import ClassProbabilityDisplay
from sdulearn.plotting.curve import PairLearningCurveDisplay
from sdulearn.plotting.grid import RiskGridDisplay
from sdulearn.plotting.plan import PlanDisplay
from sdulearn.plotting.prior import PriorIntervalDisplay
from sdulearn.plotting.reliability import ReliabilityDisplay

__all__ = [
    "AnswerMatrixDisplay",
    "ClassProbabilityDisplay",
    "PairBoundaryDisplay",
    "PairLearningCurveDisplay",
    "PlanDisplay",
    "PriorIntervalDisplay",
    "ReliabilityDisplay",
    "RiskGridDisplay",
]
