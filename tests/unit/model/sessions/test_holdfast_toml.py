"""holdfast.toml: what its tables say, and every mistake in one line that names the place."""

from __future__ import annotations

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.sessions import holdfast_toml

FULL = """
[session.db]
command = "exec postgres -D data"
wait = "port=5432"
wait_timeout = "2m"

[session.web]
command = ["npm", "run", "dev"]
cwd = "frontend"
env = { PORT = 3000, MODE = "dev" }
after = "db"
size = "120x40"
restart = "on-failure"
idle_ttl = "2h"
limits = { pids = 500, memory = "1G" }

[session.log]
command = ["tail", "-f", "log"]
pipes = true
cwd = "/var/log"
after = ["web", "db"]
"""


def failure(text: str) -> HoldfastError:
    with pytest.raises(HoldfastError) as caught:
        holdfast_toml.parse(text, "/srv/app")
    assert "\n" not in caught.value.line()
    return caught.value


def test_every_key_reaches_the_request() -> None:
    found = holdfast_toml.parse(FULL, "/srv/app")
    assert list(found) == ["db", "web", "log"]
    assert found["web"].request() == {
        "command": ["npm", "run", "dev"],
        "name": "web",
        "cwd": "/srv/app/frontend",
        "pipes": False,
        "env": {"PORT": "3000", "MODE": "dev"},
        "size": (120, 40),
        "restart": "on-failure",
        "idle_ttl": "2h",
        "acts_as": None,
        "pids_max": 500,
        "memory_max": 1 << 30,
        "isolate": None,
        "kernel": None,
    }
    assert (found["db"].wait, found["db"].wait_s) == ("port=5432", 120)
    assert (found["log"].pipes, found["log"].cwd) == (True, "/var/log")


def test_a_string_is_shell_source_and_a_list_is_words() -> None:
    found = holdfast_toml.parse(FULL, "/srv/app")
    assert found["db"].command == ["sh", "-c", "exec postgres -D data"]
    assert found["web"].command == ["npm", "run", "dev"]


def test_a_table_without_a_command_is_the_shell_where_the_file_lies() -> None:
    recipe = holdfast_toml.parse("[session.sh]", "/srv/app")["sh"]
    assert (recipe.command, recipe.cwd) == (None, "/srv/app")


def test_sessions_start_after_what_they_come_after() -> None:
    shuffled = '[session.web]\nafter = "db"\n[session.db]\n[session.log]\nafter = ["web"]'
    found = holdfast_toml.parse(shuffled, "/")
    assert [r.name for r in holdfast_toml.in_order(found, [])] == ["db", "web", "log"]
    assert [r.name for r in holdfast_toml.in_order(found, ["web"])] == ["db", "web"]


def test_a_circle_is_named() -> None:
    found = holdfast_toml.parse('[session.a]\nafter = "b"\n[session.b]\nafter = "a"', "/")
    with pytest.raises(HoldfastError, match="`after` has a cycle: a after b after a"):
        holdfast_toml.in_order(found, [])


def test_a_name_that_is_not_there_is_not_found_and_the_closest_is_offered() -> None:
    found = holdfast_toml.parse("[session.frontend]", "/")
    with pytest.raises(HoldfastError) as caught:
        holdfast_toml.in_order(found, ["frontent"])
    assert caught.value.exit_status == 3
    assert "did you mean frontend?" in caught.value.line()


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("[session.a]\ncomand = 'x'", "session.a.comand", "did you mean command?"),
        ("[session.a]\nlimits = { pid = 1 }", "session.a.limits", "did you mean pids?"),
        ("[session.a]\ncommand = 3", "session.a.command", "shell source, or a list of words"),
        ("[session.a]\ncommand = ''", "session.a.command", "shell source, or a list of words"),
        ("[session.a]\ncommand = []", "session.a.command", "shell source, or a list of words"),
        ("[session.a]\nsize = '80'", "session.a.size", "COLSxROWS"),
        ("[session.a]\nrestart = 'maybe'", "session.a.restart", "never, on-failure or always"),
        ("[session.a]\nidle_ttl = 'soon'", "session.a.idle_ttl", "is not a duration"),
        ("[session.a]\nidle_ttl = true", "session.a.idle_ttl", "is not a duration"),
        ("[session.a]\npipes = 1", "session.a.pipes", "true or false"),
        ("[session.a]\nenv = { A = [1] }", "session.a.env", "a text or a number"),
        ("[session.a]\nlimits = { pids = true }", "session.a.limits", "a number of processes"),
        ("[session.a]\nlimits = { memory = '1T' }", "session.a.limits", "512M"),
        ("[session.a]\nwait = 'port'", "session.a.wait", "port=N"),
        ("[session.a]\nafter = 'b'", "a has after = 'b', which does not exist", "[session.b]"),
        ("[session.'a b']", "'a b'", "letters, digits"),
        ("[session]\na = 1", "sessions must be tables", "[session.NAME]"),
        ("[session.a", "is not TOML", ""),
    ],
)
def test_a_mistake_names_its_place_and_the_way_out(text: str, place: str, hint: str) -> None:
    error = failure(text)
    assert error.exit_status == 2
    assert place in error.message
    assert hint in error.line()


def test_the_file_is_looked_for_here_and_above() -> None:
    assert holdfast_toml.places("/srv/app") == ["/srv/app/holdfast.toml", "/srv/holdfast.toml", "/holdfast.toml"]
    assert holdfast_toml.places("/") == ["/holdfast.toml"]


def test_a_session_may_hold_a_kernel_instead_of_a_command() -> None:
    found = holdfast_toml.parse("[session.calc]\nkernel = 'python3'", "/srv/app")["calc"]
    assert (found.request()["kernel"], found.request()["command"]) == ("python3", None)
    assert "session.calc.kernel" in failure("[session.calc]\nkernel = 3").message


def test_an_isolated_session_names_what_it_sees_relative_to_the_file() -> None:
    text = "[session.x]\ncwd = 'sub'\nisolate = true\nread = ['data', '/opt/models']\nwrite = ['out']\nnetwork = false"
    request = holdfast_toml.parse(text, "/srv/app")["x"].request()
    assert request["isolate"] == {"read": ["/srv/app/data", "/opt/models"], "write": ["/srv/app/out"], "network": False}


@pytest.mark.parametrize("line", ["read = ['data']", "write = ['out']", "network = false"])
def test_what_an_isolated_program_sees_is_said_only_of_an_isolated_one(line: str) -> None:
    assert "isolate = true" in failure(f"[session.x]\n{line}").hint


def test_isolation_is_true_or_false() -> None:
    assert "session.x.isolate" in failure("[session.x]\nisolate = 'yes'").message
