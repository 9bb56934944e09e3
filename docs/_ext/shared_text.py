"""Write out parameters that a docstring describes as "As in :class:`Other`.": readers of the site need not follow.

An entry of several names becomes one entry per name, with the type and the text of the other docstring. What follows
"As in ...", such as a difference, is added to it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from typing import Any, NamedTuple

_REFERENCE = re.compile(r"^(?:.*?,\s)?as (?:in :\w+:`~?([\w.]+)`|(there))(.*)$", re.IGNORECASE | re.DOTALL)
_SECTIONS = ("Parameters", "Attributes", "Other Parameters")


class Entry(NamedTuple):
    """One entry of a list of parameters or attributes."""

    names: tuple[str, ...]
    kind: str
    text: list[str]


def sections(lines: list[str]) -> dict[str, tuple[int, int]]:
    """First and last line of the lists of a docstring, without their headings."""
    heads = [k for k in range(len(lines) - 1) if lines[k].strip() and re.fullmatch(r"-{3,}", lines[k + 1].strip())]
    ends = [*heads[1:], len(lines)] if heads else []
    return {lines[k]: (k + 2, end) for k, end in zip(heads, ends, strict=True) if lines[k] in _SECTIONS}


def entries(lines: list[str]) -> list[Entry]:
    """Entries of a list; indented lines belong to the one above, and names may go on in the next line."""
    found: list[Entry] = []
    start = ""
    for line in lines:
        if line.endswith(",") and not line[0].isspace():
            start += f"{line} "
        elif line and not line[0].isspace():
            names, _, kind = (start + line).partition(" : ")
            start = ""
            found.append(Entry(tuple(name.strip(" *") for name in names.split(",")), kind, []))
        elif found:
            found[-1].text.append(line)
    return [entry._replace(text=textwrap.dedent("\n".join(entry.text)).strip().split("\n")) for entry in found]


def resolve(name: str, module: str, owner: str | None) -> Any:
    """The object that a role names: absolute, in the module or its packages, or a method of the same class."""
    packages = module.split(".")
    starts = [name, *(".".join([*packages[:k], name]) for k in range(len(packages), 0, -1))]
    starts += [f"{module}.{owner}.{name}"] if owner else []
    for path in starts:
        parts = path.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            try:
                value: Any = importlib.import_module(".".join(parts[:cut]))
                for part in parts[cut:]:
                    value = getattr(value, part)
            except (ImportError, AttributeError):
                continue
            return value
    return None


def described(value: Any, section: str, name: str) -> Entry | None:
    """The entry of a name in another docstring, itself written out."""
    doc = inspect.getdoc(value)
    if not doc:
        return None
    owner = getattr(value, "__qualname__", "").rpartition(".")[0] or None
    lines = expanded(doc.splitlines(), value.__module__, owner)
    places = sections(lines)
    for title in dict.fromkeys((section, *_SECTIONS)):
        if title in places:
            first, last = places[title]
            found = next((entry for entry in entries(lines[first:last]) if name in entry.names), None)
            if found:
                return found
    return None


def written_out(entry: Entry, other: Any, section: str, rest: str) -> list[str] | None:
    """Lines of the names of an entry with the text of another docstring; None if it has not all of them."""
    found = [(name, described(other, section, name)) for name in entry.names]
    if not all(text for _, text in found):
        return None
    rest = re.sub(r"^[\s,;.]*(?:but\s)?", "", rest).strip()
    lines = []
    for k, (name, text) in enumerate(found):
        assert text is not None
        lines.append(f"{name} : {text.kind}" if text.kind else name)
        lines += [f"    {line}" if line else "" for line in text.text]
        if rest and k == len(found) - 1:
            lines += ["", *textwrap.indent(rest[0].upper() + rest[1:], "    ").split("\n")]
    return lines


def expanded(lines: list[str], module: str, owner: str | None) -> list[str]:
    """The lines of a docstring with every reference written out."""
    result = list(lines)
    # From the last section on, so that line numbers stay right.
    for section, (first, last) in sorted(sections(lines).items(), key=lambda item: -item[1][0]):
        new: list[str] = []
        other = None
        for entry in entries(lines[first:last]):
            match = _REFERENCE.match("\n".join(entry.text))
            if match:
                other = other if match[2] else resolve(match[1], module, owner)
                found = written_out(entry, other, section, match[3]) if other is not None else None
                if found:
                    new += found
                    continue
            head = ", ".join(entry.names)
            new += [f"{head} : {entry.kind}" if entry.kind else head]
            new += [f"    {line}" if line else "" for line in entry.text]
        result[first:last] = [*new, ""]
    return result


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if not any(re.search(r"\bas (in|there)\b", line, re.IGNORECASE) for line in lines):
        return
    module = getattr(obj, "__module__", None) or ""
    owner = getattr(obj, "__qualname__", "").rpartition(".")[0] or None
    lines[:] = expanded(lines, module, owner)


def setup(app: Any) -> dict[str, bool]:
    """Before numpydoc reads the docstrings."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True}
