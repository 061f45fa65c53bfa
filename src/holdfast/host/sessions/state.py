"""A session's life in the host: one table over every (state, event) pair.

Pure. `Lines.happened` in `host/sessions/connect.py` enters the state that the table names and carries out its effects,
in their order. What users see (`live`, `exited`, `reaped`, `lost`) is read from the state.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class State(enum.Enum):
    NEW = "new"  # its manifest was read or made; the host has neither asked for a start nor looked for a keeper
    STARTING = "starting"  # the host's own zygote was asked for this generation, and the deadline runs
    START_ORPHANED = "start_orphaned"  # an earlier host asked for it; a spare or zygote of that host may still do it
    START_LATE = "start_late"  # its deadline has passed and it may still happen; it can be stopped
    BEGUN = "begun"  # its keeper has answered; the start is not on disk yet, so callers still wait
    CONNECTED = "connected"  # its keeper has answered on the line that the host holds
    UNANSWERED = "unanswered"  # the line is open; a request timed out, and nothing was heard since
    DISCONNECTED = "disconnected"  # its keeper lives (it holds its lock), and the host has no line to it
    ENDED = "ended"  # its keeper's final record of this generation is there
    LOST = "lost"  # no keeper, and no final record
    REMOVED = "removed"  # its folder is gone


class Event(enum.Enum):
    START_ASKED = "start_asked"  # by a caller, or by the restart policy
    KEEPER_FOUND = "keeper_found"  # at adoption, or after a start that an earlier host asked for: the lock is held
    UNCLAIMED_START = "unclaimed_start"  # at adoption: no keeper took this generation, and one may yet
    WELCOMED = "welcomed"  # a keeper answered on a new line
    START_ANSWERED = "start_answered"  # who asked for the start is: its manifest is on disk, or that failed
    DEADLINE = "deadline"  # of a start
    CONNECT_FAILED = "connect_failed"  # no answer on a new line, and the keeper lives
    REQUEST_TIMED_OUT = "request_timed_out"  # on the line that is held
    HEARD = "heard"  # a frame came on a line that did not answer
    LINK_CLOSED = "link_closed"  # by the other end, and the keeper lives
    FINAL_RECORD = "final_record"  # the keeper said `ended`, or is gone and its final record is there
    KEEPER_GONE = "keeper_gone"  # its lock is free, none is to come, and there is no final record
    STOP_ASKED = "stop_asked"
    REMOVE_ASKED = "remove_asked"


class Effect(enum.Enum):
    # Carried out by `host/sessions/connect.py`, at once:
    CONNECT = "connect"  # try to get a line, until there is one or the keeper is gone
    AWAIT_KEEPER = "await_keeper"  # of a start that an earlier host asked for
    LISTEN = "listen"  # learn the keeper's status, announce `linked`, hear its events
    PLACE = "place"  # its program into its cgroup
    STOP_IF_UNWANTED = "stop_if_unwanted"  # a stop was asked for before there was a line to send it on
    LOAD_ENDING = "load_ending"  # exit, failure and time of its end, from the record
    BURY = "bury"  # LOAD_ENDING, let go of what it held, wake waiters, announce `gone`
    WAKE = "wake"  # waiters look again
    # Carried out by who reports the event, which waits for the outcome:
    ASK_ZYGOTE = "ask_zygote"
    AWAIT_WELCOME = "await_welcome"  # on the line of a start whose deadline has passed
    SEND_STOP = "send_stop"  # on its line
    CALL_OFF = "call_off"  # kill what sets the start up
    END_SURVIVORS = "end_survivors"  # its processes have no keeper to end them
    DROP = "drop"  # its folder and its name


class Step(NamedTuple):
    """What follows an event: the next state, and what is to be done. `bug` marks an event that this state excludes."""

    next: State
    effects: tuple[Effect, ...] = ()
    bug: bool = False


REPORTERS = frozenset(
    {
        Effect.ASK_ZYGOTE,
        Effect.AWAIT_WELCOME,
        Effect.SEND_STOP,
        Effect.CALL_OFF,
        Effect.END_SURVIVORS,
        Effect.DROP,
    }
)  # effects that are carried out by who reports the event

S, E, F = State, Event, Effect
Row = dict[Event, Step]


def _nothing(state: State, *events: Event) -> Row:
    """Late or repeated news: nothing changes."""
    return {event: Step(state) for event in events}


def _never(state: State, *events: Event) -> Row:
    """Excluded here: whoever reports it is wrong. The host logs that and keeps the state."""
    return {event: Step(state, bug=True) for event in events}


_ADOPTION = (E.KEEPER_FOUND, E.UNCLAIMED_START)
_LINE = (E.REQUEST_TIMED_OUT, E.HEARD, E.LINK_CLOSED)
_ENDS: Row = {E.FINAL_RECORD: Step(S.ENDED, (F.BURY,)), E.KEEPER_GONE: Step(S.LOST, (F.BURY,))}
_BREAKS: Row = {E.LINK_CLOSED: Step(S.DISCONNECTED, (F.CONNECT, F.WAKE)), **_ENDS}


def _over(state: State, stop: Effect | None) -> Row:
    return {
        E.START_ASKED: Step(S.STARTING, (F.ASK_ZYGOTE,)),
        E.STOP_ASKED: Step(state, (stop,) if stop else ()),
        E.REMOVE_ASKED: Step(S.REMOVED, (F.DROP,)),
        # A line that is still open for slow readers, a timer or a question that was under way when it ended.
        **_nothing(state, *_LINE, E.START_ANSWERED, E.CONNECT_FAILED, E.FINAL_RECORD, E.KEEPER_GONE, E.DEADLINE),
        **_never(state, *_ADOPTION, E.WELCOMED),
    }


TABLE: dict[State, Row] = {
    S.NEW: {
        E.START_ASKED: Step(S.STARTING, (F.ASK_ZYGOTE,)),
        E.KEEPER_FOUND: Step(S.DISCONNECTED, (F.CONNECT,)),
        E.UNCLAIMED_START: Step(S.START_ORPHANED, (F.AWAIT_KEEPER,)),
        # It ended before this host began: there is no one to tell.
        E.FINAL_RECORD: Step(S.ENDED, (F.LOAD_ENDING,)),
        E.KEEPER_GONE: Step(S.LOST, (F.LOAD_ENDING,)),
        E.REMOVE_ASKED: Step(S.REMOVED, (F.DROP,)),
        **_never(S.NEW, *_LINE, E.WELCOMED, E.START_ANSWERED, E.DEADLINE, E.CONNECT_FAILED, E.STOP_ASKED),
    },
    S.STARTING: {
        E.WELCOMED: Step(S.BEGUN, (F.LISTEN,)),
        E.DEADLINE: Step(S.START_LATE, (F.AWAIT_WELCOME,)),
        # Who asked for the start is told why it failed; it never began, so no `gone` is announced.
        E.FINAL_RECORD: Step(S.ENDED, (F.LOAD_ENDING, F.WAKE)),
        E.KEEPER_GONE: Step(S.LOST, (F.LOAD_ENDING, F.WAKE)),
        E.STOP_ASKED: Step(S.STARTING),  # callers wait until the start is settled; the note is read when it begins
        **_never(S.STARTING, *_ADOPTION, *_LINE, E.START_ASKED, E.START_ANSWERED, E.CONNECT_FAILED, E.REMOVE_ASKED),
    },
    S.START_ORPHANED: {
        E.KEEPER_FOUND: Step(S.START_ORPHANED, (F.CONNECT,)),
        E.WELCOMED: Step(S.CONNECTED, (F.LISTEN, F.PLACE, F.WAKE, F.STOP_IF_UNWANTED)),
        E.CONNECT_FAILED: Step(S.DISCONNECTED, (F.CONNECT, F.WAKE)),
        E.DEADLINE: Step(S.START_LATE, (F.WAKE,)),
        E.STOP_ASKED: Step(S.START_ORPHANED),  # as in STARTING
        **_ENDS,
        **_never(S.START_ORPHANED, *_LINE, E.START_ASKED, E.UNCLAIMED_START, E.START_ANSWERED, E.REMOVE_ASKED),
    },
    S.START_LATE: {
        E.KEEPER_FOUND: Step(S.START_ORPHANED, (F.CONNECT,)),
        E.WELCOMED: Step(S.CONNECTED, (F.LISTEN, F.PLACE, F.WAKE, F.STOP_IF_UNWANTED)),
        E.STOP_ASKED: Step(S.START_LATE, (F.CALL_OFF,)),
        **_ENDS,
        **_nothing(S.START_LATE, E.START_ANSWERED, E.DEADLINE),
        **_never(S.START_LATE, *_LINE, E.START_ASKED, E.UNCLAIMED_START, E.CONNECT_FAILED, E.REMOVE_ASKED),
    },
    S.BEGUN: {
        E.START_ANSWERED: Step(S.CONNECTED, (F.PLACE, F.WAKE)),
        E.STOP_ASKED: Step(S.BEGUN, (F.SEND_STOP,)),
        **_BREAKS,
        **_nothing(S.BEGUN, E.REQUEST_TIMED_OUT, E.HEARD, E.DEADLINE),  # callers wait anyway
        **_never(S.BEGUN, *_ADOPTION, E.START_ASKED, E.WELCOMED, E.CONNECT_FAILED, E.REMOVE_ASKED),
    },
    S.CONNECTED: {
        E.REQUEST_TIMED_OUT: Step(S.UNANSWERED, (F.WAKE,)),
        E.STOP_ASKED: Step(S.CONNECTED, (F.SEND_STOP,)),
        **_BREAKS,
        **_nothing(S.CONNECTED, E.HEARD, E.DEADLINE, E.START_ANSWERED),
        **_never(S.CONNECTED, *_ADOPTION, E.START_ASKED, E.WELCOMED, E.CONNECT_FAILED, E.REMOVE_ASKED),
    },
    S.UNANSWERED: {
        E.HEARD: Step(S.CONNECTED, (F.WAKE,)),
        E.STOP_ASKED: Step(S.UNANSWERED, (F.SEND_STOP,)),
        **_BREAKS,
        **_nothing(S.UNANSWERED, E.REQUEST_TIMED_OUT, E.DEADLINE, E.START_ANSWERED),
        **_never(S.UNANSWERED, *_ADOPTION, E.START_ASKED, E.WELCOMED, E.CONNECT_FAILED, E.REMOVE_ASKED),
    },
    S.DISCONNECTED: {
        E.WELCOMED: Step(S.CONNECTED, (F.LISTEN, F.WAKE, F.STOP_IF_UNWANTED)),
        E.CONNECT_FAILED: Step(S.DISCONNECTED, (F.CONNECT,)),
        # What set it up may hang, or its keeper is stopped: see `stop` in host/sessions/ops.py for which of them.
        E.STOP_ASKED: Step(S.DISCONNECTED, (F.CONNECT, F.CALL_OFF, F.END_SURVIVORS)),
        **_ENDS,
        **_nothing(S.DISCONNECTED, *_LINE, E.START_ANSWERED, E.KEEPER_FOUND, E.DEADLINE),
        **_never(S.DISCONNECTED, E.START_ASKED, E.UNCLAIMED_START, E.REMOVE_ASKED),
    },
    S.ENDED: _over(S.ENDED, None),
    S.LOST: _over(S.LOST, F.END_SURVIVORS),
    S.REMOVED: {
        **_nothing(S.REMOVED, *(e for e in E if e not in (E.START_ASKED, E.WELCOMED, *_ADOPTION))),
        **_never(S.REMOVED, E.START_ASKED, E.WELCOMED, *_ADOPTION),
    },
}

LIVE = frozenset(S) - {S.NEW, S.ENDED, S.LOST, S.REMOVED}
SETTLING = frozenset({S.STARTING, S.START_ORPHANED, S.BEGUN})  # callers wait: what they were told would be false soon
HAS_LINE = frozenset({S.BEGUN, S.CONNECTED, S.UNANSWERED})
UNREACHABLE = frozenset({S.START_LATE, S.DISCONNECTED})  # it lives, or will, and cannot be asked
SILENT = UNREACHABLE | {S.UNANSWERED}  # what is on disk is known of it, and not that this is all


def step(state: State, event: Event) -> Step:
    return TABLE[state][event]


def public(state: State, reaped: bool) -> str:
    """What users and `--json` see. A removed session is seen by no one."""
    if state in LIVE:
        return "live"
    if state is S.ENDED:
        return "reaped" if reaped else "exited"
    return "removed" if state is S.REMOVED else "lost"
