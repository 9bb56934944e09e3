"""Optional packages, imported where they are used, with the pip extra named where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from sdulearn.errors import MissingExtraError


def require(module: str, extra: str) -> Any:
    """Import an optional module, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        package = module.split(".")[0]
        raise MissingExtraError(f"This needs {package}. Install it with: pip install 'sdulearn[{extra}]'") from None
