"""The controls in the keeper's hands: getting, giving and losing them, each in one breath with what it does to input.

Nothing else runs between a takeover's first line and its last: the keeper has one thread. When it answers, the old
holder's input is gone from the queue and from the kernel, and its channels are barred: what they sent before they knew
is refused, even when the controls are free again by then.
"""

from __future__ import annotations

import time

from ...model import limits
from ...model.sessions import hold_end as rules
from ...model.sessions.controls import ACTION, TAKEN, Actor, Refused
from ...model.sessions.hold_end import SENDING, TYPED, WORK, Hold
from ...system.atomic_files import write_json
from ...wire import keeper_frames
from ..channels.channel import Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Json = dict[str, Any]
    T = TypeVar("T")
    from ..keeper import Keeper


def note(
    keeper: Keeper, kind: str, actor: Actor | None, why: str = "", facts: Json | None = None, *, refusable: bool = False
) -> None:
    """One entry of the record, under the epoch and at the offset of this moment; the last is `ended`."""
    if keeper.ended:
        return
    epoch, offset = keeper.controls.epoch, keeper.log.end
    keeper.record.note(kind, actor, epoch, offset, time.time(), why, facts or {}, refusable, time.monotonic())
    announce(keeper)


def announce(keeper: Keeper) -> None:
    """Tell the host that there is something to fetch, once until it asks."""
    if not keeper.record.told and any(c.host for c in keeper.channels.values()):
        keeper.record.told = True
        keeper.tell_host({"event": "spooled", "last": keeper.record.ready})


def have(
    keeper: Keeper,
    actor: Actor,
    name: str,
    hold: Hold,
    *,
    force: bool = False,
    insist: bool = False,
    epoch: int = 0,
    why: str = "",
) -> int:
    """Have `actor` hold the controls; how much unread input a takeover discarded.

    Acts that share free controls take nothing back from each other; a takeover does, from every epoch before it.
    """
    controls = keeper.controls
    if epoch:
        controls.check(actor, epoch)
    try:
        granted = controls.needs_grant(actor, force, insist)
        if not granted:
            controls.join(name, hold, time.monotonic())
    except Refused:
        keeper.processes.only(controls.processes())  # what would have been held is not watched
        raise
    if not granted:
        # Its epoch goes on, and what it typed itself with it, unless an older one's is among that.
        return recall(keeper) if name == TAKEN and keeper.input.mixed(actor.operator) else 0
    before = controls.holder
    flushed = grant(keeper, actor, name, hold)
    how = {"deliberate": True} if name == TAKEN else {}
    if before is not None:
        forced = {"forced": True} if insist and before.kind == "human" else {}
        note(keeper, "preempt", actor, why, {"from": before.as_dict(), "flushed": flushed, **how, **forced})
    elif hold.kind not in (WORK, SENDING):  # an act or a command says its epoch itself
        note(keeper, "take", actor, why, {"from": None, "flushed": flushed, **how})
    if name != ACTION:
        tell(keeper, flushed)
    return flushed


def grant(keeper: Keeper, actor: Actor, name: str, hold: Hold) -> int:
    """A new epoch for `actor`, durable before it is granted. How much of what older epochs typed was discarded: all
    that is unread at a takeover, whether or not its epoch still holds the controls."""
    reserve_epoch(keeper)
    controls = keeper.controls
    before, process = controls.holder, max((h.process for h in controls.holds.values()), default=0)
    if before is not None:
        flushed = dispossess(keeper, controls.epoch + 1)
    else:
        flushed = recall(keeper) if name == TAKEN else 0
    again = before is not None and controls.origin is not None and controls.origin.operator == actor.operator
    controls.grant(actor, name, hold, time.monotonic(), time.time())
    if before is not None and not again:  # what went back to its origin is owed to nobody
        controls.owe(before, process)
    keeper.processes.only(controls.processes())
    return flushed


def reserve_epoch(keeper: Keeper) -> None:
    """Make the next epoch durable before it is granted; a ceiling serves the next grants too."""
    if keeper.controls.epoch + 1 > keeper.epoch_ceiling:
        ceiling = keeper.controls.epoch + limits.EPOCHS_RESERVED
        try:
            write_json(keeper.folder.controls, {"epoch": ceiling})
        except OSError as e:
            raise Refused(
                "busy", f"the next epoch cannot be kept: {e.strerror}", "free some disk space, then try again"
            ) from None
        keeper.epoch_ceiling = ceiling


def dispossess(keeper: Keeper, epoch: int) -> int:
    """The holder loses the controls at `epoch`: its unread input is discarded, its channels are barred."""
    assert keeper.controls.holder is not None
    bar(keeper, keeper.controls.holder.operator, epoch)
    # What was under way, a command or a long text, does not get the controls back by typing on, also not free ones.
    commands = [hold for hold in keeper.controls.holds if hold.startswith(("exe_", "snd_"))]
    keeper.lost_holds = (*keeper.lost_holds, *commands)[-limits.HOLDS_MAX :]
    return recall(keeper)


def recall(keeper: Keeper) -> int:
    """Take back what the program has not read."""
    flushed = keeper.input.recall()
    keeper.flush_input()  # whoever was not read because the queue was full is heard again, and refused
    return flushed


def bar(keeper: Keeper, operator: str, epoch: int) -> None:
    """What these channels sent before they know of the loss must not land; they are heard once they have seen it."""
    for channel in keeper.channels.values():
        if channel.actor is not None and channel.actor.operator == operator and not channel.host:
            channel.barred = epoch


def heard(keeper: Keeper, channel: Channel) -> None:
    """Refuse what a barred channel asks without naming an epoch: it may be older than the loss."""
    if channel.barred:
        raise Refused(
            "conflict",
            f"this client lost the controls and has not said that it knows; {keeper.controls.who()}",
            "take them: hold take SESSION",
        )


def tell(keeper: Keeper, flushed: int = 0) -> None:
    keeper.tell({"event": "controls", "controls": keeper.controls.as_dict(), "flushed": flushed})


def for_its_duration(keeper: Keeper, actor: Actor, action: Callable[[], T], epoch: int = 0) -> T:
    """Act with the controls: with those the actor holds, or with free ones just for this."""
    have(keeper, actor, ACTION, Hold(WORK), epoch=epoch)
    try:
        return action()
    finally:
        if keeper.controls.drop(ACTION):  # clients need not know: nobody was kept from anything
            keeper.tell_host({"event": "controls", "controls": keeper.controls.as_dict()})


# -- giving and losing ------------------------------------------------------------------------------------------


def hand(keeper: Keeper, actor: Actor, to: Actor, remark: str, why: str, epoch: int) -> int:
    """The holder gives the controls to someone: a new epoch, and nothing of the old one lands."""
    keeper.controls.check(actor, epoch)
    if to.operator == actor.operator:
        raise Refused("invalid", "the controls are yours already", "hand them to somebody else")
    return _give(keeper, actor, to, remark, why)


def _give(keeper: Keeper, actor: Actor, to: Actor, remark: str, why: str) -> int:
    controls = keeper.controls
    back = controls.origin is not None and controls.origin.operator == to.operator
    there = [c for c in keeper.channels.values() if c.attach and c.actor and c.actor.operator == to.operator]
    channel = next((c for c in there if "type" in c.rights), None)
    process = controls.origin_process if back else watched(keeper, to, channel.process if channel else None)
    flushed = grant(keeper, to, TAKEN, Hold(rules.TAKEN, channel.client if channel else "", process))
    if channel is not None:
        controls.join(channel.key, Hold(TYPED, channel.client, process), time.monotonic())
    note(keeper, "hand", actor, why, {"to": to.as_dict(), "note": remark, "flushed": flushed})
    about = {"controls": controls.as_dict(), "flushed": flushed, "note": remark, "from": actor.as_dict()}
    keeper.tell({"event": "controls", **about})
    return flushed


def watched(keeper: Keeper, actor: Actor, named: tuple[int, int] | None) -> int:
    """The process whose end ends what `actor` holds; a person's is not tied to any."""
    return 0 if actor.kind == "human" else keeper.processes.watch(named)


def typing(keeper: Keeper, channel: Channel) -> Hold:
    """The hold of one who types on a channel."""
    known = keeper.controls.holds.get(channel.key)
    if known is not None and not known.lost_at:  # key after key
        return known
    assert channel.actor is not None
    return Hold(TYPED, channel.client, watched(keeper, channel.actor, channel.process))


def take(
    keeper: Keeper,
    channel: Channel,
    actor: Actor,
    process: int,
    why: str,
    *,
    force: bool,
    insist: bool,
    deliberate: bool = True,
) -> int:
    """A deliberate takeover is that of an attached channel's client, else no client's until it is released. Another one
    is a hold of the channel's, as by typing."""
    client = channel.client if channel.attach else ""
    if not deliberate:
        hold = Hold(TYPED, channel.client, process)
        return have(keeper, actor, channel.key, hold, force=force, insist=insist, why=why)
    flushed = have(keeper, actor, TAKEN, Hold(rules.TAKEN, client, process), force=force, insist=insist, why=why)
    if channel.attach:
        keeper.controls.join(channel.key, Hold(TYPED, client, process), time.monotonic())
    return flushed


def release(keeper: Keeper, actor: Actor, why: str) -> None:
    keeper.controls.check(actor)
    note(keeper, "release", actor, why)
    keeper.controls.free()
    keeper.processes.only(set())
    tell(keeper)


def leave(keeper: Keeper, channel: Channel, keep: bool) -> None:
    """A client detaches and says so: what it held is free at once, or goes back to whom it took it from. The
    operator's other holds stay, and with `keep` a takeover does."""
    controls, holder = keeper.controls, keeper.controls.holder
    if holder is None or channel.actor is None or not controls.held_by(channel.actor):
        return
    done = controls.leave(channel.key, channel.client, time.monotonic(), keep=keep)
    if done == rules.BACK and controls.origin is not None:
        _give(keeper, holder, controls.origin, "", "detached")
    elif done == rules.ENDS:
        _freed(keeper, "release", holder, "")


def _freed(keeper: Keeper, kind: str, holder: Actor, why: str, *, discard: bool = False) -> None:
    """The controls became free by themselves."""
    facts: Json = {"flushed": recall(keeper) if discard else 0} if kind == "expire" else {}
    keeper.processes.only(keeper.controls.processes())
    note(keeper, kind, holder, why, facts)
    tell(keeper, facts.get("flushed", 0))


def returned(keeper: Keeper, channel: Channel) -> None:
    """A client is there again that took over before its line was lost."""
    controls, taken = keeper.controls, keeper.controls.holds.get(TAKEN)
    if channel.actor is None or taken is None or not controls.held_by(channel.actor) or "type" not in channel.rights:
        return
    if taken.client == channel.client:
        controls.join(channel.key, typing(keeper, channel), time.monotonic())
        tell(keeper)


def gone(keeper: Keeper, channel: Channel, why: str) -> None:
    """A connection is over: it was lost, or (`why`) we ended it."""
    controls, holder = keeper.controls, keeper.controls.holder
    now = time.monotonic()
    own = [name for name, hold in controls.holds.items() if channel.key in (name, hold.client)]
    for name in own:
        freed = controls.drop(name) if why else controls.lost(name, now)
        if freed and holder is not None:
            _freed(keeper, "release", holder, why or "its line was lost")
    if channel.attach and channel.actor is not None:
        note(keeper, "detach", channel.actor, why, {"via": channel.via, "mode": channel.mode})


def process_gone(keeper: Keeper, fd: int) -> None:
    """A dead holder holds nothing, and none of its unread input lands."""
    holder = keeper.controls.holder
    if keeper.controls.gone(keeper.processes.ended(fd)) and holder is not None:
        bar(keeper, holder.operator, keeper.controls.epoch)
        _freed(keeper, "expire", holder, "its process has ended", discard=True)


def lapse(keeper: Keeper, now: float) -> None:
    """Holds whose time is over end by themselves; an agent's unread input goes with its lease. A person who took over
    and is away is warned once."""
    controls, holder = keeper.controls, keeper.controls.holder
    if holder is None:
        return
    if controls.lapse(now):
        bar(keeper, holder.operator, controls.epoch)
        _freed(keeper, "expire", holder, "", discard=holder.kind != "human")
    elif controls.away(now, time.time()):
        note(keeper, "away", holder, "", {"ends_at": controls.ends_at})
        tell(keeper)


def revoke(keeper: Keeper, operator: str, grant_id: str) -> Json:
    """An operator, or one grant, is no longer welcome: its channels end now, and with them what it held and queued."""
    closed = 0
    flushed = keeper.input.discard(operator) if operator else 0
    holder, origin = keeper.controls.holder, keeper.controls.origin
    if origin is not None and origin.operator == operator:
        keeper.controls.owe(None, 0)
    freed = holder is not None and holder.operator == operator
    if freed:
        flushed += dispossess(keeper, keeper.controls.epoch)
        note(keeper, "release", holder, "revoked")
        keeper.controls.free()
        keeper.processes.only(set())
        tell(keeper, flushed)
    for channel in list(keeper.channels.values()):
        if channel.host or channel.actor is None:
            continue
        if (operator and channel.actor.operator == operator) or (grant_id and grant_id in channel.grants):
            closed += 1
            count = end(keeper, channel, "revoked")
            freed, flushed = freed or count >= 0, flushed + max(count, 0)
    keeper.flush_input()
    return {"closed": closed, "freed": freed, "flushed": flushed}


def end(keeper: Keeper, channel: Channel, reason: str) -> int:
    """End a channel whose rights are over, and say why. What was discarded if it held the controls, else -1."""
    count = -1
    taken = keeper.controls.holds.get(TAKEN)
    own = {channel.key, *((TAKEN,) if taken is not None and taken.client == channel.client else ())}
    holder = keeper.controls.holder
    if holder is not None and own >= set(keeper.controls.holds):
        count = dispossess(keeper, keeper.controls.epoch)
        keeper.controls.free()
        _freed(keeper, "release", holder, reason)
    keeper.send(channel, keeper_frames.message(keeper_frames.EVENT, {"event": "closed", "reason": reason}))
    keeper.drop(channel, reason)
    return count


def end_overdue(keeper: Keeper, now: float) -> None:
    """Channels whose rights ended by the clock."""
    for channel in list(keeper.channels.values()):
        if channel.until and now >= channel.until:
            end(keeper, channel, "expired")


def next_until(keeper: Keeper) -> float:
    """The moment at which to look whether the first channel's rights have ended; 0 when none do.

    They end by the time of day, which may be set while we wait: so not later than in a minute.
    """
    first = min((c.until for c in keeper.channels.values() if c.until), default=0.0)
    return time.monotonic() + min(max(0.0, first - time.time()), limits.CLOCK_LOOK_S) if first else 0.0
