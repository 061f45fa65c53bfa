"""Peers of a socket: who they are, who stands above them, and when that cannot be said."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from holdfast.system import peer_identity


def test_a_peer_is_this_process_with_its_parents() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_identity.credentials(ours) == (os.getpid(), os.getuid())
        line = peer_identity.ancestry(ours)
    assert [s.pid for s in line][:2] == [os.getpid(), os.getppid()]
    assert line[-1].ppid == 0


@pytest.mark.parametrize("known", [True, False])
def test_a_peer_that_has_ended_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: object, known: bool) -> None:
    if not known:  # a kernel without descriptors of peers: pid and start time, read twice
        monkeypatch.setattr(peer_identity, "pidfd", lambda sock: -1)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = f"{tmp_path}/s"
    listener.bind(path)
    listener.listen(1)
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r}); s.sendall(b'x')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    connection, _ = listener.accept()
    with listener, connection, pytest.raises(peer_identity.Unknown):
        peer_identity.ancestry(connection)


def test_a_number_used_again_is_not_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The descriptor says who it was; that another process has the number now does not help."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(peer_identity, "_same", lambda handle, pid: False)
    with ours, theirs, pytest.raises(peer_identity.Unknown):
        peer_identity.ancestry(ours)


def test_parents_that_change_all_the_time_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(peer_identity, "_walk", lambda first: None)
    with ours, theirs, pytest.raises(peer_identity.Unknown, match="change"):
        peer_identity.ancestry(ours)


def test_some_of_a_processs_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"], env={"A": "1", "B": "x=y", "C": ""}) as child:
        try:
            assert peer_identity.environment(child.pid, (b"A", b"B", b"D")) in ({b"A": b"1", b"B": b"x=y"}, {})
        finally:
            child.kill()
    assert peer_identity.environment(0, (b"A",)) == {}
