"""Optional packages, imported where they are used; where one is missing its pip extra is named."""

from __future__ import annotations

import importlib
from types import ModuleType

from sdulearn.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        package = module.split(".")[0]
        raise MissingExtraError(f"This needs {package}. Install it with: pip install 'sdulearn[{extra}]'") from None


def is_there(module: str) -> bool:
    """Whether an optional module can be imported."""
    try:
        importlib.import_module(module)
    except (ImportError, OSError):
        return False
    return True
