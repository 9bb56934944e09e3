"""Examples in docstrings that need an optional package run where it is installed."""

from sdulearn.errors import is_there

collect_ignore = [] if is_there("torch") else ["sdulearn/torch", "sdulearn/io/weights.py"]
