"""Fit a model of a table from answers, and predict other tables, as the command line does."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdulearn.workflow.fit import fit_table
    from sdulearn.workflow.predict import predict_table, write_predictions

# Imported on first use: predictions do not need what fits a model.
_HOMES = {"fit_table": "fit", "predict_table": "predict", "write_predictions": "predict"}

__all__ = ["fit_table", "predict_table", "write_predictions"]


def __getattr__(name: str) -> object:
    """Import a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sdulearn.workflow' has no attribute {name!r}")
    return getattr(import_module(f"sdulearn.workflow.{_HOMES[name]}"), name)
