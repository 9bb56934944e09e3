"""Boosted trees by the likelihood of answers, and the choice between models."""

from sdulearn.boosting.estimators import PairBoostingClassifier, PairModelCV
from sdulearn.boosting.objective import pair_objective

__all__ = ["PairBoostingClassifier", "PairModelCV", "pair_objective"]
