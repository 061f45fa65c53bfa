"""Judges what a session is doing from kernel facts only, never from the text it prints.

The order of the rules, first match wins; `judge` is this list in code:

1. the main program ended                                            exited
2. a shell in front waits in its line editor, or for a line          at_prompt
3. a blocking read of a line (canonical mode)                        waiting_for_secret where echo is off,
                                                                     else waiting_for_input
4. raw mode, and the program says itself what it does (OSC 7501)     running, menu where it is blocked,
                                                                     at_prompt where it is idle
5. the alternate screen, or raw mode and a painted screen, where
   the reader is not one that only asks for secrets                  full_screen; menu where it paints the main screen,
                                                                     waits for keys and takes no pasted text
6. any other wait for the terminal; with fresh output a program
   that can be woken by something else is working, not waiting       waiting_for_*, or running
7. the kernel will not say (another uid): the terminal's mode        waiting_for_secret, at_prompt, unknown
8. nothing waits for the terminal                                    running

`certain` is kept for waits that nothing but the terminal can end. An event loop that also watches the
terminal may be working, so it is `likely` at best. A `menu` is not answered by a typed text, which would choose
what is highlighted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .program_status import AT_REST

SHELLS = frozenset(
    {"ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "oksh", "pwsh", "rbash"}
    | {"rksh", "sh", "tcsh", "xonsh", "yash", "zsh"}
)
# A shell that talks to a person ignores SIGTERM (15) or SIGTSTP (20); one that runs a script does not.
_INTERACTIVE_MASK = 1 << 14 | 1 << 19
# Shells whose line editor changes what Return means, so that raw mode without that change is their `read -n`.
_RETURN_EDITORS = frozenset({"bash", "rbash", "zsh"})
# `read` in fish runs the same editor as its prompt: the kernel cannot tell the two apart.
_READ_IS_PROMPT = frozenset({"fish"})
# Bytes a shell without a line editor asks for at its prompt: a stdio buffer of a terminal (bash), dash's own.
# Their `read` builtins ask for 1 or 4096.
_PROMPT_COUNTS = (1024, 8192)
# Programs that own the screen in raw mode without announcing it: top, and pagers that leave the text behind.
_PAINTERS = frozenset({"less", "more", "most", "pager", "pg", "top"})
# Programs that read in raw mode only to show stars for a secret (names as the kernel cuts them, at 15 bytes).
_ASKERS = frozenset(
    {"cryptsetup", "doas", "gpg", "login", "passwd", "pinentry", "pinentry-curses", "pinentry-tty"}
    | {"ssh-add", "ssh-keygen", "su", "sudo", "systemd-ask-pas", "systemd-tty-ask"}
)
# Programs that hand keys on to another terminal, whose state this kernel (or this walk) does not know.
_RELAYS = frozenset(
    {"docker", "et", "kubectl", "mosh-client", "podman", "screen", "script", "ssh", "su", "sudo", "telnet"}
    | {"tmux: client", "tmux: server"}
)

# An event-loop reader that wrote something this recently is working while it watches the terminal.
FRESH_S = 1.0
# A loop that wakes up at least this often may be animating: it must stay silent for a whole turn, and then
# FRESH_S, before it counts as waiting. A longer timeout is a deadline for the answer (`read -t 60`).
_TURN_S_MAX = 5.0
# A second thread in one of these is idle, or serves the first; anywhere else it may be at work.
_IDLE_CALLS = frozenset({"futex", "futex_waitv", "rt_sigtimedwait", "rt_sigsuspend", "pause"})

_READS = ("read", "readv")

Thread = Mapping[str, Any]


class Activity(NamedTuple):
    """One judgement: `kind` and `confidence` as in the session object, and the fact it rests on."""

    kind: str
    confidence: str
    evidence: str
    prompt: str | None = None
    says: str | None = None  # the state that the program reports of itself, where that decided

    @property
    def at_shell(self) -> bool:
        """Whether a command can be typed: an idle agent is at its prompt too, but is not a shell."""
        return self.kind == "at_prompt" and self.says is None


class Look(NamedTuple):
    """Facts of the emulator that hint at what the program does; no text is interpreted."""

    alternate: bool = False
    addressed: bool = False  # the cursor was placed by row and column since the foreground group changed
    painted: bool = False  # it is drawn in place: the cursor is hidden, or went up and stands in what was drawn
    pastes: bool = False  # bracketed paste is on: it takes text


class _Scene(NamedTuple):
    """The facts in the form that the rules use."""

    tty: Mapping[str, Any]
    front: Sequence[Thread]  # living threads of the foreground process group
    readers: Sequence[Thread]  # threads that wait for the terminal, the hardest fact first
    look: Look
    says: Mapping[str, Any] | None  # of the foreground group, while nothing typed waits to be read
    age: float | None
    prompt: str | None
    shells: frozenset[str]
    listening: frozenset[int]
    truncated: bool


def judge(
    facts: Mapping[str, Any],
    *,
    look: Look,
    last_output_age: float | None,
    cursor_line: str | None,
    leader: int,
    known_shells: frozenset[str] = SHELLS,
    exited: bool = False,
    says: Mapping[str, Any] | None = None,
    listening: frozenset[int] = frozenset(),
) -> Activity:
    """Judge one sample of facts (see keeper.facts.sample).

    `last_output_age` is in seconds, None if nothing was ever written. `says` is the newest status report with
    the group that made it (keeper.queries), `listening` tells which pids serve a port: where they are not known,
    the defaults only make the answer less sharp. `cursor_line` is quoted, never interpreted.
    """
    threads: Sequence[Thread] = facts["threads"]
    of_leader = [t["state"] for t in threads if t["pid"] == leader]
    if exited or (of_leader and all(state in "ZX" for state in of_leader)):
        return Activity("exited", "certain", f"the main program ({leader}) has ended")
    foreground = facts["tty"]["foreground_pgid"]
    living = [t for t in threads if t["state"] not in "ZX"]
    readers = [t for t in living if t["fd_on_tty"] is True and t["state"] == "S"]
    if facts.get("in_queue") and facts["tty"]["vmin"] <= 1:
        readers = []  # what they wait for has already been typed: they are about to run
    readers.sort(key=lambda t: (t["pgid"] != foreground, not _only_tty_wakes(t), t["name"] not in _READS))
    scene = _Scene(
        tty=facts["tty"],
        front=[t for t in living if t["pgid"] == foreground],
        readers=readers,
        look=look,
        says=says if says and says["group"] == foreground and not facts.get("in_queue") else None,
        age=last_output_age,
        prompt=(cursor_line or "").rstrip() or None,
        shells=known_shells,
        listening=listening,
        truncated=bool(facts.get("truncated")),
    )
    for rule in (_shell, _line_reader, _said, _screen, _reader, _untold):
        found = rule(scene)
        if found is not None:
            return found
    return _nobody_waits(scene, bool(facts.get("in_queue")))


def _shell(scene: _Scene) -> Activity | None:
    """A shell at its prompt, or at its continuation prompt, which is the same to the kernel."""
    tty = scene.tty
    edits_return = not tty["icrnl"] or tty["inlcr"]
    for thread in scene.readers:
        comm = thread["comm"]
        if thread["pgid"] != tty["foreground_pgid"] or not _is_interactive_shell(scene, thread):
            continue
        if not tty["canonical"]:
            at_prompt = edits_return or comm not in _RETURN_EDITORS
        else:
            at_prompt = tty["echo"] and thread["count"] in _PROMPT_COUNTS
        if at_prompt:
            certain = _is_hard(scene, thread) and comm not in _READ_IS_PROMPT
            return _found(scene, thread, "at_prompt", certain=certain)
    return None


def _is_interactive_shell(scene: _Scene, thread: Thread) -> bool:
    ignored = thread["sig_ign"]
    return thread["comm"] in scene.shells and (ignored is None or bool(ignored & _INTERACTIVE_MASK))


def _line_reader(scene: _Scene) -> Activity | None:
    """A read() in canonical mode: it continues only when a line is typed, whatever the screen shows."""
    if not scene.readers or not scene.tty["canonical"]:
        return None
    thread = scene.readers[0]
    if thread["name"] not in _READS or not _is_hard(scene, thread):
        return None
    return _found(scene, thread, _asked_for(scene, thread), certain=True)


def _said(scene: _Scene) -> Activity | None:
    """A program that reads keys reports its own state, which no other fact shows."""
    said = scene.says
    if said is None or scene.tty["canonical"] or not scene.front:
        return None
    state = str(said["state"])
    kind = "at_prompt" if state in AT_REST else {"working": "running", "blocked": "menu"}[state]
    because = ": ".join(str(said[key]) for key in ("kind", "message") if said.get(key))
    words = f"{said.get('app') or _name(scene.front[0])} says that it is {state}" + (f" ({because})" if because else "")
    prompt = said.get("message") or scene.prompt if kind == "menu" else None
    return Activity(kind, "likely", f"{words}; raw mode", prompt, state)


def _screen(scene: _Scene) -> Activity | None:
    raw = not scene.tty["canonical"]
    thread = scene.readers[0] if scene.readers else None
    if thread is not None and _asked_for(scene, thread) == "waiting_for_secret":
        return None  # a box on the screen that asks for a secret asks for a secret
    if scene.look.alternate:
        if thread is None:
            return Activity("full_screen", "likely", "the alternate screen is on")
        # The program reads keys one by one and has the alternate screen: both are facts.
        return _found(scene, thread, "full_screen", certain=raw, note="the alternate screen is on")
    if raw and scene.look.addressed:
        note = "the cursor is placed by row and column"
        if thread is None:
            return Activity("full_screen", "likely", f"raw mode, and {note}")
        return _found(scene, thread, _painted_kind(scene, thread), certain=False, note=note)
    painter = next((t for t in scene.front if t["comm"] in _PAINTERS), None)
    if raw and painter is not None:
        return Activity("full_screen", "likely", f"{_name(painter)} has the terminal in raw mode")
    return None


def _painted_kind(scene: _Scene, thread: Thread) -> str:
    """The kind of a program that paints the main screen and reads keys: a menu, unless it may continue on its own, is
    known to show more than that, or accepts pasted text, as agents and editors do."""
    fresh = not _is_hard(scene, thread) and scene.age is not None and scene.age < _quiet_needed(thread)
    more = thread["comm"] in _PAINTERS or thread["comm"] in _RELAYS or scene.look.pastes
    return "full_screen" if fresh or more else "menu"


def _reader(scene: _Scene) -> Activity | None:
    """Any other program that waits for the terminal."""
    if not scene.readers:
        return None
    thread = scene.readers[0]
    if thread["timeout"] == 0:
        return None  # it only looks whether there is something
    hard = _is_hard(scene, thread)
    kind = _asked_for(scene, thread)
    if not hard and kind == "waiting_for_input":
        if scene.age is not None and scene.age < _quiet_needed(thread):
            return _running(thread, f"watches the terminal, and wrote {scene.age:.1f} s ago")
        if scene.tty["canonical"] and thread["pid"] in scene.listening:
            return _running(thread, "serves a port, and also watches the terminal")
    if kind == "waiting_for_input" and not scene.tty["canonical"] and scene.look.painted:
        note = "the screen is drawn in place"
        return _found(scene, thread, _painted_kind(scene, thread), certain=False, note=note)
    # In raw mode without echo a line editor and a prompt that prints stars look alike: that it waits is a
    # fact, that it is no secret is not.
    return _found(scene, thread, kind, certain=hard and bool(scene.tty["canonical"] or scene.tty["echo"]))


def _untold(scene: _Scene) -> Activity | None:
    """Threads of another uid, and calls whose descriptors the kernel hides: only the terminal's mode is known."""
    untold = [t for t in scene.front if _is_untold(t)]
    if not untold or any(t["state"] != "S" for t in scene.front):
        return None
    thread, tty = untold[0], scene.tty
    because = f"sleeps in {thread['name'] or 'a call'} that the kernel does not show"
    if tty["canonical"] and not tty["echo"]:
        evidence = f"{_name(thread)} {because}; echo is off"
        return Activity("waiting_for_secret", "likely", evidence, scene.prompt)
    if not tty["canonical"] and _is_interactive_shell(scene, thread):
        evidence = f"{_name(thread)} {because}; raw mode, as at a shell's prompt"
        return Activity("at_prompt", "likely", evidence, scene.prompt)
    if thread["name"]:
        return _running(thread, because)  # io_uring: rarely used to read a terminal, often to serve
    if scene.age is not None and scene.age < FRESH_S:
        return _running(thread, f"{because}; it wrote {scene.age:.1f} s ago")
    return Activity("unknown", "likely", f"{_name(thread)} {because}")


def _is_untold(thread: Thread) -> bool:
    return thread["fd_on_tty"] is None and thread["syscall"] not in ("running", -1)


def _nobody_waits(scene: _Scene, unread: bool) -> Activity:
    if not scene.front:
        return Activity("unknown", "likely", "no process is in the terminal's foreground group")
    awake = [t for t in scene.front if t["state"] not in "Tt"]
    if not awake:
        return Activity("unknown", "likely", f"{_name(scene.front[0])} is stopped")
    busy = [t for t in awake if t["state"] in "RD"] or awake
    # The last one started is what the ones before it wait for.
    thread = next((t for t in reversed(busy) if t["pid"] == t["tid"]), busy[-1])
    if thread["state"] in "RD":
        what = "is running"
    else:
        what = f"is in {thread['name'] or 'a call'}, not waiting for the terminal"
    if unread:
        what += "; typed input is not read yet"
    # A program in raw mode reads keys: that it does not at this moment may mean that it is about to.
    told = scene.tty["canonical"] and not any(map(_is_untold, scene.front))
    certain = told and not scene.truncated and not unread
    return _running(thread, what, certain=certain)


def _running(thread: Thread, what: str, *, certain: bool = False) -> Activity:
    return Activity("running", "certain" if certain else "likely", f"{_name(thread)} {what}")


def _asked_for(scene: _Scene, thread: Thread) -> str:
    if scene.tty["echo"]:
        return "waiting_for_input"
    if scene.tty["canonical"] or (thread["comm"] in _ASKERS and thread["watched"] == 1):
        return "waiting_for_secret"
    return "waiting_for_input"  # line editors turn echo off to draw the text themselves


def _only_tty_wakes(thread: Thread) -> bool:
    return bool(thread["watched"] == 1 and thread["timeout"] == "none")


def _is_hard(scene: _Scene, thread: Thread) -> bool:
    """Whether only the terminal can make this program continue."""
    if not _only_tty_wakes(thread):
        return False
    if thread["pgid"] != scene.tty["foreground_pgid"]:
        return False  # it reads in the background: the foreground program is independent
    return all(
        t["name"] in _IDLE_CALLS or (_only_tty_wakes(t) and t["fd_on_tty"])
        for t in scene.front
        if t["pid"] == thread["pid"] and t["tid"] != thread["tid"]
    )


def _quiet_needed(thread: Thread) -> float:
    """Seconds without output before a program that could continue on its own counts as waiting."""
    timeout = thread["timeout"]
    turn_s = timeout / 1000 if isinstance(timeout, int) else 0.0
    return FRESH_S + (turn_s if turn_s <= _TURN_S_MAX else 0.0)


def _found(scene: _Scene, thread: Thread, kind: str, *, certain: bool, note: str = "") -> Activity:
    text = f"{_name(thread)} waits in {thread['name']}() on the terminal"
    if isinstance(thread["timeout"], int):
        text += f" for at most {thread['timeout'] / 1000:g} s"
    elif thread["watched"] > 1:
        text += f" and {thread['watched'] - 1} more"
    if not scene.tty["canonical"]:
        text += ", raw mode"
    if not scene.tty["echo"]:
        text += ", echo off"
    if thread["comm"] in _RELAYS and thread["watched"] > 1 and kind != "full_screen":
        text += ", and hands the keys on"
    if note:
        text += f"; {note}"
    prompt = scene.prompt if kind != "full_screen" else None
    return Activity(kind, "certain" if certain else "likely", text, prompt)


def _name(thread: Thread) -> str:
    return f"{thread['comm']} ({thread['pid']})"
