"""An argparse parser with one-line errors, and the arguments that many commands share."""

from __future__ import annotations

import argparse
import os
import sys

from ...model.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


_MARGIN = 2  # columns that argparse leaves free


class _Help(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal. argparse would ask shutil for each argument, and shutil loads its archive formats."""

    def __init__(self, prog: str, **how: object) -> None:
        super().__init__(prog, **{"width": _columns() - _MARGIN, **how})  # type: ignore[arg-type]


def _columns() -> int:
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


class Parser(argparse.ArgumentParser):
    """A parser that raises HoldfastError for usage errors (exit 2, one line, JSON with --json)."""

    mistake = "usage"  # the exit code of a usage error; a hook has another, because exit 2 has a meaning for its caller

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", _Help)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise HoldfastError(self.mistake, message, f"{self.prog} --help")


def session(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument("session", metavar="SESSION", nargs=nargs, help="a name, an id, or a prefix of an id")


def json_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def project(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--project", metavar="P", help="the project (default: HOLDFAST_PROJECT, holdfast.toml, this folder's)"
    )


def seconds(text: str) -> float:
    """A duration such as 30s or 2h."""
    from ...model.durations import duration_s

    return duration_s(text)


def why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--why", metavar="TEXT", help="the reason, recorded with the action")
