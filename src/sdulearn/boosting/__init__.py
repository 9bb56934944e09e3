"""Boosted trees under the likelihood of same/different answers, and the choice between them and linear models."""

from sdulearn.boosting.estimators import PairBoostingClassifier, PairModelCV
from sdulearn.boosting.objective import pair_objective

__all__ = ["PairBoostingClassifier", "PairModelCV", "pair_objective"]
