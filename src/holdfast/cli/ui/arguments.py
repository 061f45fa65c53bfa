"""argparse with our manners: one line for a mistake, and the arguments that many commands share."""

from __future__ import annotations

import argparse

from ...model.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are HoldfastErrors (exit 2, one line, JSON with --json)."""

    mistake = "usage"  # the code of a mistake; a hook has another, because exit 2 means something to its caller

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise HoldfastError(self.mistake, message, f"{self.prog} --help")


def session(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument("session", metavar="SESSION", nargs=nargs, help="a name, an id, or the beginning of an id")


def json_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def project(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="P", help="which project (HOLDFAST_PROJECT, holdfast.toml, this folder)")


def seconds(text: str) -> float:
    """A duration such as 30s or 2h."""
    from ...model.durations import duration_s

    return duration_s(text)


def why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--why", metavar="TEXT", help="the reason, kept with the action")
