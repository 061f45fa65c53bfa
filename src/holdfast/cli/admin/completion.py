"""Print the shell completion script for commands, options and session names.

source <(hold completion bash)          in ~/.bashrc
source <(hold completion zsh)           in ~/.zshrc, after compinit
hold completion fish | source           in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse
import sys

from ...model.errors import HoldfastError

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    # What the scripts call at each press of Tab.
    parser.add_argument("--sessions", choices=("live", "all"), help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.sessions:
        return _sessions(with_ended=args.sessions == "all")
    if args.shell is None:
        raise HoldfastError("usage", "which shell?", "hold completion bash, zsh or fish")
    from . import completion_scripts

    sys.stdout.write(completion_scripts.script(args.shell))
    return 0


def _sessions(*, with_ended: bool) -> int:
    """Print session names, one per line; start no host and show no error."""
    from ...client._sync.host import Host

    try:
        for session in Host(autostart=False).call("ls", all=with_ended):
            print(session["name"])
    except HoldfastError:
        return 1
    return 0
