"""The experiments of the paper and new ones, end to end: protocol, runner, report."""

from sdulearn.experiments.command import reproduce
from sdulearn.experiments.protocol import PROTOCOLS, QUICK, Protocol

__all__ = ["PROTOCOLS", "QUICK", "Protocol", "reproduce"]
