"""The experiments of the paper and new ones, end to end: protocol, runner, report."""

from sdulearn.cli.reproduce import reproduce
from sdulearn.experiments.protocol import PROTOCOLS, QUICK, Protocol

__all__ = ["PROTOCOLS", "QUICK", "Protocol", "reproduce"]
