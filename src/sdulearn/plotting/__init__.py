"""Pictures of a fit: display classes in scikit-learn's manner.

Each class has a ``from_...`` method that computes what is drawn and draws it, keeps the numbers as
attributes, and draws them again with ``plot(ax=...)``. They need matplotlib: ``pip install
'sdulearn[demo]'``.
"""

from sdulearn.plotting.boundary import PairBoundaryDisplay
from sdulearn.plotting.classes import (
    AnnotatorDisplay,
    AnswerMatrixDisplay,
    ClassProbabilityDisplay,
    ReliabilityDisplay,
)
from sdulearn.plotting.curves import PairLearningCurveDisplay, PlanDisplay, PriorIntervalDisplay, RiskGridDisplay

__all__ = [
    "AnnotatorDisplay",
    "AnswerMatrixDisplay",
    "ClassProbabilityDisplay",
    "PairBoundaryDisplay",
    "PairLearningCurveDisplay",
    "PlanDisplay",
    "PriorIntervalDisplay",
    "ReliabilityDisplay",
    "RiskGridDisplay",
]
