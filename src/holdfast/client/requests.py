"""What both faces of the client say and read: a start's request, a wait's words, an answer as a value."""

from __future__ import annotations

import os

from ..model import ids
from ..model.errors import HoldfastError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeVar

    Json = dict[str, Any]
    T = TypeVar("T")


class Answer(dict[str, "Any"]):
    """A host's answer. What is not in it is the fault of a daemon of another build, and not of whoever reads it."""

    def __missing__(self, key: str) -> Any:
        raise _unread(f"it has no {key!r}")


def _unread(why: object) -> HoldfastError:
    hint = "hold doctor tells whether the daemon is of another build; hold up replaces it"
    return HoldfastError("failed", f"the host's answer cannot be read: {why}", hint)


def start_request(
    command: Sequence[str] | None,
    *,
    name: str | None,
    cwd: str | None,
    env: Mapping[str, str] | None,
    pipes: bool,
    size: tuple[int, int] | None,
    restart: str,
    idle_ttl: str | None,
    acts_as: str | None,
    why: str | None,
    pids_max: int | None,
    memory_max: int | None,
    log_max: int | None = None,
    isolate: Json | None = None,
    kernel: str | None = None,
    written_by: Sequence[str] = (),
) -> Json:
    """What the host needs to start something as if this process had: environment, folder, limits, umask."""
    umask = os.umask(0o077)
    os.umask(umask)
    return {
        "request": ids.new("req_"),
        "command": list(command) if command else None,
        "name": name,
        "cwd": os.path.abspath(cwd or os.getcwd()),
        "env": {**os.environ, **(env or {})},
        "pipes": pipes,
        "size": list(size) if size else None,
        "restart": restart,
        "idle_ttl": idle_ttl,
        "acts_as": acts_as,
        "why": why,
        "umask": umask,
        "rlimits": own_limits(),
        "limits": {"pids": pids_max, "memory": memory_max, "log": log_max},
        "isolate": isolate,
        "kernel": kernel,
        "written_by": list(written_by) or None,
    }


def isolation(isolate: bool, read: Sequence[str], write: Sequence[str], network: bool) -> Json | None:
    """What a start asks for of its isolation, or None; paths are taken from here."""
    if not isolate:
        if read or write or not network:
            raise invalid("what a program may see is said only of an isolated one", "add --isolate")
        return None
    here = [[os.path.abspath(os.path.expanduser(path)) for path in paths] for paths in (read, write)]
    return {"read": here[0], "write": here[1], "network": network}


def own_limits() -> dict[str, tuple[int, int]]:
    import resource

    names = (
        "RLIMIT_NOFILE",
        "RLIMIT_CORE",
        "RLIMIT_FSIZE",
        "RLIMIT_STACK",
        "RLIMIT_NPROC",
        "RLIMIT_CPU",
        "RLIMIT_AS",
    )
    return {n: resource.getrlimit(getattr(resource, n)) for n in names}


def wait_spec(
    *,
    exit: bool,
    input: bool,
    quiet: float | bool | None,
    port: int | None,
    text: str | None,
    done: str | None,
    answer: str | None = None,
) -> str:
    chosen = []
    if exit:
        chosen.append("exit")
    if input:
        chosen.append("input")
    if quiet is not None and quiet is not False:
        chosen.append("quiet" if quiet is True else f"quiet={quiet:g}")
    valued = (("port", port), ("text", text), ("done", done), ("answer", answer))
    chosen += [f"{k}={v}" for k, v in valued if v is not None]
    if len(chosen) != 1:
        raise invalid("wait for exactly one thing", "exit, input, quiet, port, text, done or answer")
    return chosen[0]


def plain_text(raw: bytes) -> str:
    """A terminal's bytes as text: its line ends are the terminal's doing, not the program's."""
    return raw.replace(b"\r\n", b"\n").decode("utf-8", "replace")


def typed(value: object, kind: type[T]) -> T:
    """An answer as one of the client's types."""
    import msgspec

    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as e:
        raise _unread(e) from None
