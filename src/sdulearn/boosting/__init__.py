"""Boosted trees by the likelihood of answers, and the choice between models."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdulearn.boosting.estimators import PairBoostingClassifier, PairModelCV
    from sdulearn.boosting.objective import pair_objective

__all__ = ["PairBoostingClassifier", "PairModelCV", "pair_objective"]


def __getattr__(name: str) -> object:
    """A public name from its home: an objective alone needs no estimator."""
    if name not in __all__:
        raise AttributeError(f"module 'sdulearn.boosting' has no attribute {name!r}")
    home = "objective" if name == "pair_objective" else "estimators"
    return getattr(import_module(f"sdulearn.boosting.{home}"), name)
