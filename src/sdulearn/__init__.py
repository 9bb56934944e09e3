"""Learn a classifier from answers to "same class, or different?" plus unlabeled data."""

from sdulearn.io.model_file import load_model
from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.model_selection import PairKFold
from sdulearn.pairs import stack_pairs
from sdulearn.prior import PriorEstimate, estimate_prior

__version__ = "0.1.0"

__all__ = [
    "PairKFold",
    "PairLogisticRegression",
    "PairLogisticRegressionCV",
    "PriorEstimate",
    "SDUClassifier",
    "SDUClassifierCV",
    "estimate_prior",
    "load_model",
    "stack_pairs",
]
