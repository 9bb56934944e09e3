"""From a table and answers to a model of that table: what ``sdulearn fit`` does, from Python."""

from sdulearn.workflow.engines import Engine, open_engine
from sdulearn.workflow.fit import fit_table
from sdulearn.workflow.predictions import predict_table

__all__ = ["Engine", "fit_table", "open_engine", "predict_table"]
