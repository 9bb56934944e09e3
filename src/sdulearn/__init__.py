"""Learn a classifier from answers to "same class, or different?" plus unlabeled data."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdulearn.answers.y import stack_pairs
    from sdulearn.boosting import PairBoostingClassifier, PairModelCV
    from sdulearn.joint import PairLogisticRegression, PairLogisticRegressionCV
    from sdulearn.linear import SDUClassifier, SDUClassifierCV
    from sdulearn.model_selection import PairKFold
    from sdulearn.prior import PriorEstimate, estimate_prior
    from sdulearn.reading import Reading
    from sdulearn.report.records import FitReport
    from sdulearn.table_model import TableModel, load_model
    from sdulearn.workflow.fit import fit_table

__version__ = "0.2.0"

# Imported when they are asked for: `sdulearn --version` need not wait for scikit-learn.
_HOMES = {
    "FitReport": "report.records",
    "PairBoostingClassifier": "boosting",
    "PairKFold": "model_selection",
    "PairLogisticRegression": "joint",
    "PairLogisticRegressionCV": "joint",
    "PairModelCV": "boosting",
    "PriorEstimate": "prior",
    "Reading": "reading",
    "SDUClassifier": "linear",
    "SDUClassifierCV": "linear",
    "TableModel": "table_model",
    "estimate_prior": "prior",
    "fit_table": "workflow.fit",
    "load_model": "table_model",
    "stack_pairs": "answers.y",
}

__all__ = [
    "FitReport",
    "PairBoostingClassifier",
    "PairKFold",
    "PairLogisticRegression",
    "PairLogisticRegressionCV",
    "PairModelCV",
    "PriorEstimate",
    "Reading",
    "SDUClassifier",
    "SDUClassifierCV",
    "TableModel",
    "estimate_prior",
    "fit_table",
    "load_model",
    "stack_pairs",
]


def __getattr__(name: str) -> object:
    """A public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sdulearn' has no attribute {name!r}")
    value = getattr(import_module(f"sdulearn.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, imported or not."""
    return sorted({*globals(), *__all__})
