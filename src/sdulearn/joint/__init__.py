"""Logistic regression by the joint likelihood of both ends of an answer."""

from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV

__all__ = ["PairLogisticRegression", "PairLogisticRegressionCV"]
