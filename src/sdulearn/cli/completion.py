"""Print a script that lets a shell complete the commands, options and files of sdulearn.

    sdulearn completion bash > ~/.local/share/bash-completion/completions/sdulearn
    sdulearn completion zsh > "${fpath[1]}/_sdulearn"

The script does not start Python. Needs the extra completion.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sdulearn.errors import require

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``sdulearn completion``."""
    parser.add_argument("shell", choices=SHELLS, help="the shell it is for")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from sdulearn.cli.main import build_parser

    shtab = require("shtab", "completion")
    parser = build_parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for action in (action for command in commands.choices.values() for action in command._actions):
        if action.type is Path:
            action.complete = shtab.FILE
    print(shtab.complete(parser, arguments.shell))
    return 0
