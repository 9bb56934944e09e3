"""The experiments of the paper and new ones, end to end: protocol, runner, report."""

from sdulearn.experiments.demonstration import demonstrate
from sdulearn.experiments.protocol import PROTOCOLS, QUICK, Protocol
from sdulearn.experiments.report import Report
from sdulearn.experiments.reproduction import reproduce
from sdulearn.experiments.tables import Summary

__all__ = ["PROTOCOLS", "QUICK", "Protocol", "Report", "Summary", "demonstrate", "reproduce"]
