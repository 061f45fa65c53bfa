"""The first frame of a channel, and what the keeper says of its session in return."""

from __future__ import annotations

import os
import time

from ...model.limits import CHANNELS_FOR_PEOPLE, CHANNELS_MAX
from ...model.sessions.controls import Refused
from ...wire import keeper_frames
from ..controls import controls
from ..observe import terminal_queries
from . import request_fields
from .channel import Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

    from ..keeper import Keeper

_QUERY_FRESH_S = 1.0  # a program that asked its terminal longer ago has given up, and would take the answer for typing
_LISTED_MAX = 64  # rights or grants of one channel: there are a dozen verbs
_FOREVER_S = 1e12  # a time of day further away than any


def hello(keeper: Keeper, channel: Channel, said: Json) -> None:
    """Admit a channel: the host has the token, and vouches for the operator and its rights."""
    if channel.actor is not None or said.get("token") != keeper.manifest["token"]:
        raise keeper_frames.ProtocolError("a channel is opened by the host, once")
    try:
        who = request_fields.actor(said)
        channel.rights = frozenset(request_fields.words(said, "rights", _LISTED_MAX))
        channel.grants = request_fields.words(said, "grants", _LISTED_MAX)
        channel.until = request_fields.seconds(said, "until", 0.0, _FOREVER_S)
        # What was applied is remembered by operator, too: nobody's numbers stand in for another's.
        channel.client = f"{who.operator} {request_fields.word(said, 'client') or channel.key}"
        channel.via = request_fields.word(said, "via")
        channel.process = request_fields.process(said)
        takeover_s = request_fields.seconds(said, "takeover_max_s", keeper.controls.times.takeover_s, _FOREVER_S)
        why = request_fields.text(said, "why")
    except Refused as e:
        raise keeper_frames.ProtocolError(e.message) from None
    channel.host = said.get("role") == "host"
    if who.kind != "human" and not channel.host and len(keeper.channels) > CHANNELS_MAX - CHANNELS_FOR_PEOPLE:
        raise keeper_frames.ProtocolError("the last channels are for people")
    channel.attach = bool(said.get("attach"))
    channel.acks = bool(said.get("acks", True))
    channel.since = time.time()
    channel.actor = who
    keeper.controls.times.takeover_s = takeover_s  # as the home's settings are now
    keeper.hello_due = _next_hello(keeper)
    if channel.host:
        keeper.record.told = False  # it learns from the welcome what there is
    welcome = {"v": keeper_frames.VERSION, "keeper": os.getpid(), **status(keeper)}
    keeper.send(channel, keeper_frames.message(keeper_frames.WELCOME, welcome))
    if channel.host and keeper.query and time.monotonic() - keeper.query_at < _QUERY_FRESH_S:
        keeper.send(channel, keeper_frames.message(keeper_frames.EVENT, keeper.query))
    if channel.attach:
        controls.returned(keeper, channel)
        controls.note(keeper, "attach", who, why, {"via": channel.via, "mode": channel.mode})
        keeper.tell_host({"event": "channels", "attached": attached(keeper)})
    if channel.until:
        keeper.until_due = controls.next_until(keeper)


def end_silent(keeper: Keeper, now: float) -> None:
    """A connection that says nothing is closed: it would keep one of the few places from somebody who does."""
    for channel in list(keeper.channels.values()):
        if channel.actor is None and channel.due <= now:
            keeper.drop(channel)
    keeper.hello_due = _next_hello(keeper)


def _next_hello(keeper: Keeper) -> float:
    """When the first that has not said HELLO is overdue; 0 when all have: then nothing wakes the keeper."""
    return min((c.due for c in keeper.channels.values() if c.actor is None), default=0.0)


def attached(keeper: Keeper) -> list[Json]:
    """Who looks at this session, and which of them have the controls."""
    return [
        {
            "operator": c.actor.operator,
            "name": c.actor.name,
            "via": c.via,
            "since": c.since,
            "mode": "control" if c.key in keeper.controls.holds else "watch",
        }
        for c in keeper.channels.values()
        if c.attach and c.actor
    ]


def status(keeper: Keeper) -> Json:
    """What the keeper knows of its session, as it is now."""
    return {
        "session": keeper.session,
        "generation": keeper.manifest["generation"],
        "pid": keeper.main.pid,
        "exit": keeper.exit,
        "output": {"start": keeper.log.start, "end": keeper.log.end, "durable": keeper.log.durable},
        "dropped": keeper.log.dropped,
        "size": list(keeper.size),
        "tty": keeper.program.tty,
        "controls": keeper.controls.as_dict(),
        "attached": attached(keeper),
        "queued_input": len(keeper.input),
        "typed": keeper.typed,
        "midline": keeper.midline,
        "input_at": keeper.input_at,
        "output_at": keeper.output_at,
        "output_age": time.monotonic() - keeper.output_moment,
        "stopping": keeper.stopping is not None,
        "cgroup": keeper.leaves,
        "applies_once": True,  # a request with an id
        "answers": list(terminal_queries.ANSWERED),
        "spool": {**keeper.record.as_dict(), "lost": keeper.record.lost},
    }
