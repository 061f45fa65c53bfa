"""The paths of an instance: one home folder, and the names of the files in it."""

from __future__ import annotations

import os

ENV = "HOLDFAST_HOME"
ISOLATED = "HOLDFAST_ISOLATED"  # set inside an isolated session, which has a session socket in place of a home


def default_home(environ: dict[str, str], user_home: str) -> str:
    """`HOLDFAST_HOME`, else the platform's data folder (by hand: a library for it costs every command 25 ms)."""
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
    def stays_down(self) -> str:
        """There while only `hold up` starts the host."""
        return os.path.join(self.path, "stays_down")

    @property
    def reserve(self) -> str:
        """A file that reserves disk space, removed when the disk is full."""
        return os.path.join(self.path, "host.reserve")

    @property
    def log(self) -> str:
        return os.path.join(self.path, "host.log")

    @property
    def web_file(self) -> str:
        """The settings of the HTTP port, while it is served."""
        return os.path.join(self.path, "web.json")

    @property
    def web_lock(self) -> str:
        """Locked while the web process lives; contains its pid."""
        return os.path.join(self.path, "web.lock")

    @property
    def web_log(self) -> str:
        return os.path.join(self.path, "web.log")

    @property
    def work_db(self) -> str:
        """Runs, steps and artifacts; written by the host alone."""
        return os.path.join(self.path, "work.db")

    @property
    def store_secret(self) -> str:
        """Passwords of the store and the cache that config.toml names."""
        return os.path.join(self.path, "store.secret")

    @property
    def restored(self) -> str:
        """Exists while the home comes from a backup whose commands are not confirmed yet."""
        return os.path.join(self.path, "restored.json")

    @property
    def roles(self) -> str:
        """Registered hosts, zygotes and keepers, one empty file `pid.starttime` each."""
        return os.path.join(self.path, "roles")

    @property
    def ledger(self) -> str:
        """Operators, grants, questions and the journal."""
        return os.path.join(self.path, "host.db")

    @property
    def journal_head(self) -> str:
        return os.path.join(self.path, "journal.head")

    @property
    def settings_known(self) -> str:
        """The settings that the journal already has an entry for."""
        return os.path.join(self.path, "settings.known")

    @property
    def keys(self) -> str:
        return os.path.join(self.path, "keys")

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
    def keeper_lock(self) -> str:
        """Locked while the keeper lives; contains its pid."""
        return self._at("keeper.lock")

    @property
    def keeper_socket(self) -> str:
        return self._at("keeper.sock")

    @property
    def controls(self) -> str:
        return self._at("controls.json")

    @property
    def spool(self) -> str:
        return self._at("spool")

    @property
    def out(self) -> str:
        return self._at("out")

    @property
    def execs(self) -> str:
        return self._at("exec")

    @property
    def exchange(self) -> str:
        """Files that exec shares with the shell of an isolated session: scripts and records, untrusted."""
        return self._at("exchange")

    @property
    def door(self) -> str:
        """The folder with the session socket, which an isolated program sees as the home."""
        return self._at("door")

    @property
    def door_socket(self) -> str:
        return os.path.join(self.door, "host.sock")

    @property
    def links(self) -> str:
        return self._at("links")

    @property
    def connection_file(self) -> str:
        """A kernel session's connection file: addresses and key, for every Jupyter front end."""
        return self._at("kernel.json")

    @property
    def kernel_state(self) -> str:
        """A kernel session's state file, written by the kernel runner."""
        return self._at("kernel.state.json")

    @property
    def keyframe(self) -> str:
        return self._at("keyframe")

    @property
    def host_state(self) -> str:
        return self._at("state.json")
