"""The rules that turn kernel facts into an activity, one sentence each."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.sessions.activity import Activity, Look, judge

LEADER = 100
INTERACTIVE = 1 << 14 | 1 << 19 | 1 << 20 | 1 << 21  # as bash at its prompt: TERM, TSTP, TTIN, TTOU ignored


def thread(comm: str = "prog", name: str | None = "read", *, on_tty: bool | None = True, **more: Any) -> dict[str, Any]:
    """A thread of the foreground group, blocked in `name`; by default reading the terminal for ever."""
    facts: dict[str, Any] = {
        "pid": LEADER,
        "tid": more.get("pid", LEADER),
        "comm": comm,
        "pgid": LEADER,
        "sid": LEADER,
        "tty_ctl": True,
        "state": "S",
        "syscall": 0,
        "name": name,
        "fd_on_tty": on_tty,
        "timeout": "none",
        "watched": 1,
        "count": 1024,
        "sig_ign": 0,
        "wchan": None,
    }
    return {**facts, **more}


def other(name: str | None, **more: Any) -> dict[str, Any]:
    """A thread that does not wait for the terminal."""
    return thread(name=name, on_tty=False, timeout=None, watched=None, **more)


def facts(*threads: dict[str, Any], mode: str = "line", **more: Any) -> dict[str, Any]:
    """`mode`: line; secret (line without echo); keys (raw with echo); raw (no echo, Return untouched);
    editor (raw, and Return means something else)."""
    tty = {
        "canonical": mode in ("line", "secret"),
        "echo": mode in ("line", "keys"),
        "icrnl": mode != "editor",
        "inlcr": False,
        "vmin": 1,
        "vtime": 0,
        "foreground_pgid": LEADER,
        "session": LEADER,
        "rows": 24,
        "cols": 80,
    }
    return {"tty": tty, "in_queue": 0, "threads": list(threads), "truncated": False, **more}


def judged(facts: dict[str, Any], **more: Any) -> Activity:
    look = Look(**{key: more.pop(key) for key in Look._fields if key in more})
    context: dict[str, Any] = {
        "look": look,
        "last_output_age": 10.0,
        "cursor_line": "name: ",
        "leader": LEADER,
    }
    return judge(facts, **{**context, **more})


def kind(facts: dict[str, Any], **more: Any) -> tuple[str, str]:
    activity = judged(facts, **more)
    return activity.kind, activity.confidence


def test_a_blocking_read_of_a_line_waits_for_input_for_certain() -> None:
    activity = judged(facts(thread("python3")))
    assert activity == Activity(
        "waiting_for_input", "certain", "python3 (100) waits in read() on the terminal", "name:"
    )


def test_a_blocking_read_of_a_line_without_echo_waits_for_a_secret_for_certain() -> None:
    activity = judged(facts(thread("sudo"), mode="secret"))
    assert (activity.kind, activity.confidence) == ("waiting_for_secret", "certain")
    assert activity.evidence == "sudo (100) waits in read() on the terminal, echo off"


def test_a_reader_that_just_printed_its_question_is_waiting_at_once() -> None:
    assert kind(facts(thread()), last_output_age=0.0) == ("waiting_for_input", "certain")


def test_the_prompt_is_the_cursor_line_and_never_decides() -> None:
    assert judged(facts(thread()), cursor_line="Password: ").kind == "waiting_for_input"
    assert judged(facts(other("clock_nanosleep")), cursor_line="Password: ") == Activity(
        "running", "certain", "prog (100) is in clock_nanosleep, not waiting for the terminal"
    )
    assert judged(facts(thread()), cursor_line="   ").prompt is None


@pytest.mark.parametrize(
    "call", ["clock_nanosleep", "accept4", "connect", "recvfrom", "wait4", "futex", "write", "poll"]
)
def test_a_program_that_waits_for_something_else_is_running(call: str) -> None:
    assert kind(facts(other(call))) == ("running", "certain")
    assert kind(facts(other(call), mode="secret")) == ("running", "certain")


def test_a_program_on_the_cpu_is_running() -> None:
    busy = thread("cc1", None, on_tty=None, state="R", syscall="running", timeout=None, watched=None)
    assert judged(facts(busy)).evidence == "cc1 (100) is running"
    assert kind(facts(busy)) == ("running", "certain")


def test_the_reader_behind_a_pipe_is_found_among_the_processes_of_its_job() -> None:
    reading = thread("python3", pid=101)
    activity = judged(facts(other("wait4", comm="bash"), reading, other("read", comm="tail", pid=102)))
    assert activity.evidence.startswith("python3 (101)")
    assert activity.confidence == "certain"


# --- shells


@pytest.mark.parametrize(("comm", "name"), [("bash", "pselect6"), ("zsh", "read")])
def test_a_shell_in_its_line_editor_is_at_its_prompt(comm: str, name: str) -> None:
    at_prompt = facts(thread(comm, name, sig_ign=INTERACTIVE), mode="editor")
    assert kind(at_prompt, last_output_age=0.0) == ("at_prompt", "certain")


def test_zsh_swaps_newlines_instead_of_leaving_return_alone() -> None:
    at_prompt = facts(thread("zsh", sig_ign=INTERACTIVE), mode="raw")
    at_prompt["tty"]["inlcr"] = True
    assert kind(at_prompt) == ("at_prompt", "certain")


def test_a_nested_shell_is_any_known_shell_in_the_foreground_group() -> None:
    nested = thread("zsh", pid=200, pgid=200, sig_ign=INTERACTIVE)
    at_prompt = facts(nested, mode="editor")
    at_prompt["tty"]["foreground_pgid"] = 200
    assert kind(at_prompt) == ("at_prompt", "certain")


def test_a_shell_that_a_user_adds_is_known_too() -> None:
    at_prompt = facts(thread("myshell", "poll", sig_ign=INTERACTIVE), mode="editor")
    assert kind(at_prompt)[0] == "waiting_for_input"
    assert kind(at_prompt, known_shells=frozenset({"myshell"}))[0] == "at_prompt"


def test_the_read_builtin_of_an_interactive_shell_is_not_its_prompt() -> None:
    assert kind(facts(thread("bash", count=4096, sig_ign=INTERACTIVE))) == ("waiting_for_input", "certain")
    assert kind(facts(thread("dash", count=1, sig_ign=INTERACTIVE))) == ("waiting_for_input", "certain")
    assert kind(facts(thread("bash", count=1, sig_ign=INTERACTIVE), mode="keys")) == (
        "waiting_for_input",
        "certain",
    )
    assert kind(facts(thread("bash", count=1, sig_ign=INTERACTIVE), mode="raw")) == (
        "waiting_for_input",
        "likely",
    )
    assert kind(facts(thread("bash", count=4096, sig_ign=INTERACTIVE), mode="secret")) == (
        "waiting_for_secret",
        "certain",
    )


@pytest.mark.parametrize(("comm", "count"), [("dash", 8192), ("sh", 8192), ("bash", 1024)])
def test_a_shell_without_a_line_editor_is_known_by_how_much_it_reads(comm: str, count: int) -> None:
    assert kind(facts(thread(comm, count=count, sig_ign=INTERACTIVE))) == ("at_prompt", "certain")


def test_a_script_that_uses_the_line_editor_asks_for_input() -> None:
    assert kind(facts(thread("bash", "pselect6"), mode="editor")) == ("waiting_for_input", "likely")


def test_a_prompt_of_fish_is_only_likely_because_its_read_looks_the_same() -> None:
    at_prompt = facts(thread("fish", "poll", watched=3, sig_ign=INTERACTIVE), mode="editor")
    assert kind(at_prompt, last_output_age=0.0) == ("at_prompt", "likely")


def test_a_prompt_on_an_alternate_screen_left_behind_is_still_a_prompt() -> None:
    at_prompt = facts(thread("bash", "pselect6", sig_ign=INTERACTIVE), mode="editor")
    assert kind(at_prompt, alternate=True) == ("at_prompt", "certain")


# --- full screen


def test_a_program_on_the_alternate_screen_is_full_screen_and_has_no_prompt() -> None:
    activity = judged(facts(thread("vim", "pselect6", timeout=4000), mode="editor"), alternate=True)
    assert (activity.kind, activity.confidence, activity.prompt) == ("full_screen", "certain", None)


def test_the_alternate_screen_without_a_reader_is_only_likely() -> None:
    assert kind(facts(other("clock_nanosleep"), mode="raw"), alternate=True) == ("full_screen", "likely")


def test_raw_mode_and_placed_cursor_are_full_screen_while_it_prints() -> None:
    loop = facts(thread("prog", "epoll_wait", timeout=100), mode="editor")
    assert kind(loop, addressed=True, last_output_age=0.0) == ("full_screen", "likely")
    assert kind(facts(other("write"), mode="editor"), addressed=True) == ("full_screen", "likely")
    assert kind(facts(other("write")), addressed=True) == ("running", "certain")


def test_a_pager_that_leaves_the_text_behind_is_full_screen() -> None:
    assert kind(facts(thread("less"), mode="raw")) == ("full_screen", "likely")
    assert kind(facts(other("write", comm="top"), mode="raw")) == ("full_screen", "likely")


# --- menus


def test_a_program_that_paints_the_main_screen_and_waits_for_keys_shows_a_menu() -> None:
    blocked = facts(thread("dialog", watched=1), mode="editor")
    assert kind(blocked, addressed=True, last_output_age=0.0) == ("menu", "likely")
    loop = facts(thread("node", "epoll_wait", timeout=300), mode="raw")
    assert kind(loop, painted=True) == ("menu", "likely")
    assert kind(loop, painted=True, last_output_age=0.1) == ("running", "likely"), "it may go on by itself"
    assert kind(loop) == ("waiting_for_input", "likely"), "a line editor paints nothing"
    assert kind(facts(thread()), painted=True) == ("waiting_for_input", "certain"), "a line is asked for"


def test_what_takes_pasted_text_paints_more_than_a_menu() -> None:
    loop = facts(thread("claude", "epoll_wait", timeout=300), mode="raw")
    assert kind(loop, painted=True, pastes=True) == ("full_screen", "likely")
    assert kind(loop, pastes=True) == ("waiting_for_input", "likely"), "a line editor takes it, too"
    assert kind(facts(thread("top", "pselect6"), mode="raw"), addressed=True) == ("full_screen", "likely")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("working", "running"),
        ("blocked", "menu"),
        ("idle", "at_prompt"),
        ("done", "at_prompt"),
    ],
)
@pytest.mark.parametrize("alternate", [True, False])
def test_a_program_that_reads_keys_says_itself_what_it_waits_for(state: str, expected: str, alternate: bool) -> None:
    agent = facts(thread("claude", "epoll_wait", timeout=20), mode="raw")
    says = {"state": state, "app": "claude-code", "kind": None, "message": None, "group": LEADER, "end": 7}
    found = judged(agent, says=says, alternate=alternate, painted=True)
    assert (found.kind, found.confidence, found.says) == (expected, "likely", state)
    assert "claude-code says that it is " + state in found.evidence
    assert not found.at_shell, "nothing is typed there as a command"


def test_what_a_program_said_counts_while_it_is_in_front_and_reads_keys() -> None:
    says = {"state": "idle", "app": None, "kind": None, "message": None, "group": LEADER + 1, "end": 7}
    raw = facts(thread("prog", "epoll_wait"), mode="raw")
    assert judged(raw, says=says).says is None, "another group said it"
    mine = {**says, "group": LEADER}
    assert kind(facts(thread()), says=mine) == ("waiting_for_input", "certain"), "a line is asked for, whatever it says"
    assert kind(facts(thread("bash", sig_ign=INTERACTIVE), mode="editor"), says=mine) == ("at_prompt", "certain")
    typed = facts(thread("prog", "epoll_wait"), mode="raw", in_queue=1)
    assert judged(typed, says=mine).says is None, "what was typed may change it"


def test_a_line_asked_for_on_the_alternate_screen_is_a_question() -> None:
    assert kind(facts(thread()), alternate=True) == ("waiting_for_input", "certain")


def test_a_box_that_only_ever_asks_for_secrets_waits_for_a_secret() -> None:
    box = facts(thread("pinentry-curses", "poll", timeout=70), mode="editor")
    assert kind(box, alternate=True) == ("waiting_for_secret", "likely")


# --- event loops and timeouts


def test_an_event_loop_that_watches_the_terminal_waits_only_likely() -> None:
    loop = facts(thread("node", "epoll_pwait", watched=3), mode="editor")
    assert kind(loop) == ("waiting_for_input", "likely")
    assert kind(loop, last_output_age=None) == ("waiting_for_input", "likely")


def test_an_event_loop_with_fresh_output_is_running() -> None:
    loop = facts(thread("node", "epoll_pwait", watched=3), mode="editor")
    assert kind(loop, last_output_age=0.4) == ("running", "likely")


def test_a_short_timeout_has_to_pass_in_silence_before_it_counts_as_waiting() -> None:
    loop = facts(thread(name="pselect6", timeout=2000))
    assert kind(loop, last_output_age=2.5) == ("running", "likely")
    assert kind(loop, last_output_age=3.5) == ("waiting_for_input", "likely")


def test_a_long_timeout_is_a_deadline_for_the_answer() -> None:
    assert kind(facts(thread("bash", "pselect6", timeout=60_000)), last_output_age=1.5) == (
        "waiting_for_input",
        "likely",
    )


def test_a_poll_without_any_timeout_only_looks() -> None:
    assert kind(facts(thread(name="poll", timeout=0)))[0] == "running"


def test_a_server_that_also_watches_the_terminal_is_running() -> None:
    loop = facts(thread(name="epoll_wait", watched=5))
    assert kind(loop, listening=frozenset({LEADER})) == ("running", "likely")
    assert kind(loop, listening=frozenset({7})) == ("waiting_for_input", "likely")


def test_an_event_loop_with_echo_off_waits_for_a_secret_however_fresh_its_output() -> None:
    loop = facts(thread(name="epoll_wait", watched=2), mode="secret")
    assert kind(loop, last_output_age=0.0) == ("waiting_for_secret", "likely")


def test_a_second_thread_at_work_makes_a_read_only_likely() -> None:
    sleeping = other("clock_nanosleep", tid=101)
    assert kind(facts(thread(), sleeping)) == ("waiting_for_input", "likely")
    assert kind(facts(thread(), sleeping), last_output_age=0.1) == ("running", "likely")


def test_idle_threads_beside_a_read_change_nothing() -> None:
    assert kind(facts(thread(), other("futex", tid=101))) == ("waiting_for_input", "certain")


def test_raw_mode_without_echo_may_hide_a_secret_so_input_is_only_likely() -> None:
    assert kind(facts(thread("python3"), mode="raw")) == ("waiting_for_input", "likely")
    assert kind(facts(thread("python3"), mode="keys")) == ("waiting_for_input", "certain")


@pytest.mark.parametrize("comm", ["sudo", "systemd-ask-pas"])
def test_stars_of_a_known_asker_are_a_secret(comm: str) -> None:
    assert kind(facts(thread(comm), mode="raw")) == ("waiting_for_secret", "likely")


def test_what_happens_behind_ssh_is_only_likely() -> None:
    relay = facts(thread("ssh", "ppoll", watched=3), mode="editor")
    assert kind(relay) == ("waiting_for_input", "likely")
    assert judged(relay).evidence.endswith("hands the keys on")


def test_a_reader_of_another_session_is_only_likely() -> None:
    behind = thread("cat", pid=300, pgid=300, sid=300, tty_ctl=False)
    assert kind(facts(other("wait4"), behind)) == ("waiting_for_input", "likely")


# --- what is not told, and endings


def test_input_that_was_typed_but_not_read_yet_ends_the_wait() -> None:
    assert kind(facts(thread(), in_queue=5)) == ("running", "likely")


def test_a_read_that_wants_more_bytes_than_were_typed_goes_on_waiting() -> None:
    wants_four = facts(thread(), mode="keys", in_queue=2)
    wants_four["tty"]["vmin"] = 4
    assert kind(wants_four)[0] == "waiting_for_input"


UNTOLD: dict[str, Any] = {"syscall": None, "timeout": None, "watched": None, "count": None}


def test_a_program_of_another_user_with_echo_off_likely_waits_for_a_secret() -> None:
    assert kind(facts(thread("su", None, on_tty=None, **UNTOLD), mode="secret")) == (
        "waiting_for_secret",
        "likely",
    )


def test_a_shell_of_another_user_in_raw_mode_is_likely_at_its_prompt() -> None:
    root_shell = thread("bash", None, on_tty=None, sig_ign=INTERACTIVE, **UNTOLD)
    assert kind(facts(root_shell, mode="editor")) == ("at_prompt", "likely")


def test_a_program_of_another_user_is_otherwise_unknown_until_it_does_something() -> None:
    untold = thread("su", None, on_tty=None, **UNTOLD)
    assert kind(facts(untold)) == ("unknown", "likely")
    assert kind(facts(untold), last_output_age=0.2) == ("running", "likely")
    assert kind(facts(untold, other("read", comm="cc1", pid=101, state="R"))) == ("running", "likely")


def test_a_ring_whose_descriptors_are_hidden_is_running_but_not_for_certain() -> None:
    ring = thread(name="io_uring_enter", on_tty=None, timeout=None, watched=None)
    assert kind(facts(ring)) == ("running", "likely")


def test_a_program_in_raw_mode_may_be_between_two_reads() -> None:
    assert kind(facts(other("clock_nanosleep"), mode="raw")) == ("running", "likely")


def test_a_sample_cut_short_is_not_certain_that_nobody_waits() -> None:
    assert kind(facts(other("futex"), truncated=True)) == ("running", "likely")


def test_a_stopped_program_is_neither_running_nor_waiting() -> None:
    assert kind(facts(thread(state="T", syscall=-1, on_tty=False))) == ("unknown", "likely")


def test_a_terminal_with_nobody_in_front_is_unknown() -> None:
    assert kind(facts()) == ("unknown", "likely")


def test_an_ended_leader_is_exited_whoever_is_left() -> None:
    assert kind(facts(thread()), exited=True) == ("exited", "certain")
    zombie = thread(state="Z", on_tty=None, **UNTOLD)
    assert kind(facts(zombie, thread("cat", pid=101))) == ("exited", "certain")


def test_a_leader_whose_first_thread_ended_has_not_exited() -> None:
    first = thread(state="Z", on_tty=None, **UNTOLD)
    assert kind(facts(first, thread(tid=101)))[0] == "waiting_for_input"
