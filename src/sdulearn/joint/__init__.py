"""Learn from the pair, not from its two ends: logistic regression by the joint likelihood of an answer."""

from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV

__all__ = ["PairLogisticRegression", "PairLogisticRegressionCV"]
