"""Learn a classifier from answers to "same class, or different?" plus unlabeled data."""

from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.linear import SDUClassifier, SDUClassifierCV
from sdulearn.model_selection import PairKFold
from sdulearn.modelfile import ModelFileError
from sdulearn.pairs import stack_pairs
from sdulearn.persistence import load_model
from sdulearn.prior import PriorEstimate, estimate_prior
from sdulearn.risks import pair_risk

__version__ = "0.1.0"

__all__ = [
    "ModelFileError",
    "PairKFold",
    "PairLogisticRegression",
    "PairLogisticRegressionCV",
    "PriorEstimate",
    "SDUClassifier",
    "SDUClassifierCV",
    "estimate_prior",
    "load_model",
    "pair_risk",
    "stack_pairs",
]
