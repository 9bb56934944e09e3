"""Worked examples of the command line: commands of a page run when it is built, and their output is shown below them.

``{worked}`` runs its lines that start with ``$``, in order, in one folder a page; ``{command-help}`` shows the options
of a command. A command that ends with another exit code than expected is a warning, so the build fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
_folders: dict[str, tempfile.TemporaryDirectory[str]] = {}


def _new_folder(app, docname, source):
    """A page starts in an empty folder, which holds nothing but the examples of the project."""
    if "```{worked}" in source[0]:
        _folders[docname] = tempfile.TemporaryDirectory(prefix="sdulearn-docs-")
        Path(_folders[docname].name, "examples").symlink_to(ROOT / "examples")


def _remove_folders(app, env):
    for folder in _folders.values():
        folder.cleanup()
    _folders.clear()


def _run(command, folder):
    # Installed scripts come first; the width is that of the page.
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "84"}
    return subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


class Worked(SphinxDirective):
    """Commands and what they print."""

    has_content = True
    option_spec: ClassVar = {"code": directives.nonnegative_int, "lines": directives.positive_int}

    def run(self):
        """Run the commands; a literal block."""
        shown = []
        for line in self.content:
            command = line.removeprefix("$ ")
            if command == line:
                raise self.error(f"{line!r} does not start with '$ '.")
            done = _run(command, _folders[self.env.docname].name)
            if done.returncode != self.options.get("code", 0):
                raise self.error(f"{command!r} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
            shown += [line, *self._shortened(done.stdout.rstrip().splitlines()), ""]
        text = "\n".join(shown).rstrip()
        return [nodes.literal_block(text, text, language="console", classes=["worked"])]

    def _shortened(self, lines):
        most = self.options.get("lines", len(lines))
        return lines if len(lines) <= most else [*lines[:most], "..."]


class CommandHelp(SphinxDirective):
    """Options of a command."""

    required_arguments = 1

    def run(self):
        """What --help prints."""
        name = self.arguments[0]
        done = _run(f"sdulearn {name} --help", None)
        if done.returncode:
            raise self.error(f"sdulearn {name} --help ended with {done.returncode}:\n{done.stderr}")
        return [nodes.literal_block(done.stdout, done.stdout, language="text", classes=["worked"])]


def setup(app):
    """Enter the directives."""
    app.connect("source-read", _new_folder)
    app.connect("env-updated", _remove_folders)
    app.add_directive("worked", Worked)
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": False}
