"""Check the docstring of every documented name, its methods included, by numpydoc's rules.

    python docs/_ext/check_docstrings.py

Documented is what the pages of docs/reference/api list. ``tool.numpydoc_validation`` in pyproject.toml has the rules.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from numpydoc.validate import validate
from sklearn.base import BaseEstimator

ROOT = Path(__file__).parents[2]
# A missing parameter, and one too many: a dataclass says under Attributes what its constructor takes.
_PARAMETERS = {"PR01", "PR02"}


def documented() -> list[str]:
    """The names that the pages of the API reference list."""
    pages = sorted((ROOT / "docs" / "reference" / "api").glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages if page.stem != "index")
    return re.findall(r"^   (sdulearn\.[\w.]+)$", text, re.MULTILINE)


def find(name: str) -> object:
    """The object of a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AttributeError(name)


def with_methods(name: str) -> Iterator[str]:
    """A name and, for a class, its public methods that are written here."""
    yield name
    found = find(name)
    if inspect.isclass(found):
        for method, value in inspect.getmembers(found, inspect.isroutine):
            written_here = (getattr(value, "__module__", None) or "").startswith("sdulearn")
            if (
                written_here
                and not method.startswith("_")
                and (value.__doc__ or not inherited_docstring(found, method))
            ):
                yield f"{name}.{method}"


def inherited_docstring(found: type, method: str) -> str | None:
    """What a base says of a method that does the same for rows elsewhere."""
    docs = (getattr(vars(base).get(method), "__doc__", None) for base in found.__mro__)
    return next(filter(None, docs), None)


def faults(name: str, checks: set[str]) -> list[str]:
    """What is wrong with a docstring, a line each."""
    found = find(name)
    if dataclasses.is_dataclass(found) and not issubclass(found, BaseEstimator):
        checks = checks - _PARAMETERS
    # A constructor that is not its own is documented where it is written; errors and protocols have none.
    elif inspect.isclass(found) and (not inspect.isfunction(vars(found).get("__init__")) or is_protocol(found)):
        checks = checks - {"PR01"}
    errors = [(code, text) for code, text in validate(name)["errors"] if code in checks]
    return [f"{name}: {code} {' '.join(text.split())}" for code, text in errors]


def is_protocol(found: type) -> bool:
    """Whether a class says only what others must offer."""
    return getattr(found, "_is_protocol", False)


def main() -> int:
    """Print all faults; the exit code."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]
    checks = set(settings["checks"])
    excluded = re.compile("|".join(settings["exclude"]))
    lines: list[str] = []
    seen: set[object] = set()
    for name in documented():
        try:
            names = list(with_methods(name))
        except (AttributeError, ImportError):
            lines.append(f"{name}: listed in docs/reference/api, and cannot be imported")
            continue
        # A method that several classes inherit is judged once.
        fresh = [one for one in names if inspect.unwrap(find(one)) not in seen and not excluded.search(one)]
        seen |= {inspect.unwrap(find(one)) for one in fresh}
        lines += [line for one in fresh for line in faults(one, checks)]
    print("\n".join(lines) or f"{len(seen)} docstrings are complete.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
