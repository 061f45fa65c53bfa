"""Where an instance keeps everything: one folder, and the names of what is in it."""

from __future__ import annotations

import os

ENV = "HOLDFAST_HOME"


def default_home(environ: dict[str, str], user_home: str) -> str:
    """`HOLDFAST_HOME`, else the platform's data folder (by hand: platformdirs costs every command 25 ms)."""
    if environ.get(ENV):
        return os.path.abspath(environ[ENV])
    if environ.get("XDG_DATA_HOME"):
        return os.path.join(environ["XDG_DATA_HOME"], "holdfast")
    return os.path.join(user_home, ".local", "share", "holdfast")


class Home:
    """The paths of one instance."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def lock(self) -> str:
        return os.path.join(self.path, "host.lock")

    @property
    def socket(self) -> str:
        return os.path.join(self.path, "host.sock")

    @property
    def host_file(self) -> str:
        return os.path.join(self.path, "host.json")

    @property
    def running_file(self) -> str:
        return os.path.join(self.path, "running.json")

    @property
    def log(self) -> str:
        return os.path.join(self.path, "host.log")

    @property
    def work_db(self) -> str:
        """Runs, steps and artifacts; written by the host alone."""
        return os.path.join(self.path, "work.db")

    @property
    def roles(self) -> str:
        """Registered hosts, zygotes and keepers, one empty file `pid.starttime` each."""
        return os.path.join(self.path, "roles")

    @property
    def sessions(self) -> str:
        return os.path.join(self.path, "sessions")

    def session(self, session_id: str) -> SessionFolder:
        return SessionFolder(os.path.join(self.sessions, session_id))


class SessionFolder:
    """The paths of one session; the keeper owns `out`, `exit` and `keeper*`, the host the rest."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def _at(self, name: str) -> str:
        return os.path.join(self.path, name)

    @property
    def manifest(self) -> str:
        return self._at("manifest.json")

    @property
    def exit(self) -> str:
        return self._at("exit.json")

    @property
    def keeper(self) -> str:
        return self._at("keeper.json")

    @property
    def keeper_lock(self) -> str:
        return self._at("keeper.lock")

    @property
    def keeper_socket(self) -> str:
        return self._at("keeper.sock")

    @property
    def keeper_errors(self) -> str:
        return self._at("keeper.err")

    @property
    def controls(self) -> str:
        return self._at("controls.json")

    @property
    def out(self) -> str:
        return self._at("out")

    @property
    def execs(self) -> str:
        return self._at("exec")

    @property
    def links(self) -> str:
        return self._at("links")

    @property
    def keyframe(self) -> str:
        return self._at("keyframe")

    @property
    def host_state(self) -> str:
        return self._at("state.json")
