"""Secrets on their way through this process: asked for without echo or read from stdin, and not left in a core file."""

from __future__ import annotations

import sys

from ...model.errors import HoldfastError
from ..ui import printing

SECRET_BYTES_MAX = 64 << 10  # a key file, not a disk


def guard() -> None:
    """From here on this process leaves no core: neither a file (the limit) nor to a collector (not dumpable)."""
    import resource

    from ...client.process import set_undumpable

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    set_undumpable()


def ask(whose: str) -> bytes:
    """The secret, typed by a person at this terminal without echo."""
    import getpass
    import warnings

    guard()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)  # no terminal: it would echo
            return getpass.getpass(f"secret for {printing.safe(whose)}: ").encode("utf-8", "surrogateescape")
    except (getpass.GetPassWarning, EOFError, OSError):
        raise HoldfastError("usage", "there is no terminal to ask at", "pass the secret with --stdin") from None


def from_stdin() -> bytes:
    guard()
    secret = sys.stdin.buffer.read(SECRET_BYTES_MAX + 1)
    if len(secret) > SECRET_BYTES_MAX:
        raise HoldfastError("invalid", f"a secret of more than {SECRET_BYTES_MAX} bytes", "it is a key, not a file")
    return secret
