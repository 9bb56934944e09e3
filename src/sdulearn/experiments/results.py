"""Results on disk: one line of JSON per cell, and a metadata file that says under which protocol."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from sdulearn import __version__
from sdulearn.errors import FileError, InputError
from sdulearn.experiments.protocol import VERSION, Cell, Protocol

Record: TypeAlias = dict[str, Any]
"""A line of results: the key of its cell, and what was measured."""


class MixedResultsError(InputError):
    """The folder holds results of another protocol or of other data."""


class Results:
    """The results of one protocol in a folder: ``NAME.jsonl`` and ``NAME.meta.json``.

    Parameters
    ----------
    folder : path
        Where they are, or will be.
    protocol : Protocol
        What they measure.
    """

    def __init__(self, folder: str | os.PathLike[str], protocol: Protocol) -> None:
        self.protocol = protocol
        self.lines = Path(folder) / f"{protocol.name}.jsonl"
        self.meta = Path(folder) / f"{protocol.name}.meta.json"

    def read(self) -> dict[Cell, Record]:
        """All records, the last one of each cell.

        A torn line (a crash while writing) is passed over.
        """
        found: dict[Cell, Record] = {}
        if not self.lines.exists():
            return found
        for line in self.lines.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
                found[Cell.from_key(record)] = record
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def read_cells(self) -> list[Record]:
        """The records of the protocol's own cells: the file may hold more."""
        cells = set(self.protocol.cells())
        return [record for cell, record in self.read().items() if cell in cells]

    def done(self) -> set[Cell]:
        """The cells that need no second run; those that failed get one."""
        return {cell for cell, record in self.read().items() if record["error"] is None}

    def open(self, fingerprints: dict[str, str]) -> None:
        """Make the folder ready for more lines; refuse where old and new do not belong together."""
        make_folder(self.lines.parent)
        old = self.read_meta()
        if old:
            self._refuse_mixture(old, fingerprints)
        meta = {
            "protocol": asdict(self.protocol),
            "protocol_version": VERSION,
            "protocol_hash": self.protocol.hash(),
            "data": {**old.get("data", {}), **fingerprints},
            "seeds": "first 32 bits of the SHA-256 of the draw (for drawing) and of the cell (for the method)",
            "versions": versions(),
        }
        partial = self.meta.with_suffix(".part")
        partial.write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.meta)
        self._drop_torn_line()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs away from these results; the lock goes with the process, however it ends."""
        make_folder(self.lines.parent)
        with self.lines.with_suffix(".lock").open("a") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise FileError(
                        f"Another run is writing {self.lines}. Wait for its end, or choose another folder as `out`."
                    ) from None
            yield

    def append(self, records: Iterable[Record]) -> None:
        """Add lines and hand them to the operating system at once."""
        with self.lines.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records))

    def read_meta(self) -> dict[str, Any]:
        """The metadata, or an empty dict where nothing has run yet."""
        return json.loads(self.meta.read_text(encoding="utf-8")) if self.meta.exists() else {}

    def _refuse_mixture(self, old: dict[str, Any], fingerprints: dict[str, str]) -> None:
        advice = "Choose another folder as `out`, or delete the old results."
        if old["protocol_hash"] != self.protocol.hash():
            raise MixedResultsError(
                f"{self.lines} was measured under another protocol ({old['protocol_hash']}, now "
                f"{self.protocol.hash()}): its numbers and new ones do not belong in one table. {advice}"
            )
        changed = [name for name, mark in fingerprints.items() if old["data"].get(name, mark) != mark]
        if changed:
            raise MixedResultsError(
                f"{self.lines} was measured on other data for {', '.join(changed)} than the ones now "
                f"in SDULEARN_DATA or the download cache. {advice}"
            )

    def _drop_torn_line(self) -> None:
        if not self.lines.exists():
            return
        with self.lines.open("rb+") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)


def make_folder(path: Path) -> Path:
    """The folder, made where it is not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"The folder {path} cannot be made: {error.strerror}. Choose another as `out`.") from error
    return path


def versions() -> dict[str, str]:
    """Versions of all that has a say in the numbers."""
    return {
        "sdulearn": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }
