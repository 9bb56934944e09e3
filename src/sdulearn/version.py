"""The version, where nothing else needs to be imported to read it."""

__version__ = "0.1.0"
