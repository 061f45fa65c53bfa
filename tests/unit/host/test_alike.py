"""Whether a session was started just as a request asks."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.host.sessions import manifest

ASKED: dict[str, Any] = {
    "command": ["python", "-I", "verifier.py", "[]"],
    "cwd": "/srv/shop",
    "pipes": True,
    "umask": 0o22,
    "rlimits": {"RLIMIT_CPU": [-1, -1]},
    "env": {"PATH": "/bin", "SHLVL": "1"},
    "request": "req_1",
    "name": "verify",
}
ACTOR = {"operator": "op_ada", "kind": "human", "name": "ada"}


def started(**change: Any) -> dict[str, Any]:
    made = manifest.manifest({**ASKED, **change}, "ses_1", (), "/links", ACTOR, "/home", "boot", 1.0)
    return {**made, "bound_by": ["op_bot"]}


def test_what_was_started_by_the_same_request_is_alike() -> None:
    assert manifest.alike(started(), ASKED, [])
    assert manifest.alike(started(), ASKED, ["op_bot"])


def test_where_a_starter_sat_makes_no_difference() -> None:
    env = {"PATH": "/bin", "SHLVL": "3", "SSH_TTY": "/dev/pts/1", "HOLDFAST_OPERATOR": "ada", "PWD": "/root"}
    assert manifest.alike(started(env=env), ASKED, [])


@pytest.mark.parametrize(
    "change",
    [
        {"env": {"PATH": "/evil:/bin"}},
        {"env": {"PATH": "/bin", "LD_PRELOAD": "/evil.so"}},
        {"env": {}},
        {"cwd": "/tmp"},
        {"umask": 0},
        {"rlimits": {"RLIMIT_CPU": [1, 1]}},
        {"command": ["sh", "-c", "true"]},
        {"pipes": False},
    ],
)
def test_anything_else_does(change: dict[str, Any]) -> None:
    assert not manifest.alike(started(**change), ASKED, [])


def test_one_that_was_isolated_restarted_or_bound_by_fewer_is_another() -> None:
    assert not manifest.alike({**started(), "isolation": {"network": False}}, ASKED, [])
    assert not manifest.alike({**started(), "generation": 2}, ASKED, [])
    assert not manifest.alike(started(), ASKED, ["op_eve"])
