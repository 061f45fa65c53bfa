"""What a channel's frames do: HELLO first, then typing, sizing, reading and asking."""

from __future__ import annotations

from ..model import limits
from ..model.controls import Refused
from ..wire import frames
from . import acts, holding, operations
from .channel import Channel
from .hello import hello

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .keeper import Keeper


def receive(keeper: Keeper, channel: Channel, kind: int, payload: bytes) -> None:
    """One frame from a client. Before HELLO nothing else is heard."""
    if kind == frames.HELLO:
        hello(keeper, channel, frames.parse_json(payload))
    elif channel.actor is None:
        raise frames.ProtocolError("the first frame is HELLO")
    elif kind == frames.INPUT:
        _input_frame(keeper, channel, payload)
    elif kind == frames.RESIZE:
        try:
            holding.heard(keeper, channel)
            acts.resize(keeper, channel, channel.actor, *frames.parse_size(payload), channel.key)
        except Refused:
            pass  # only the holder sizes the terminal; a watcher's window is its own affair
    elif kind == frames.ACT:
        operations.act(keeper, channel, frames.parse_json(payload))
    elif kind in (frames.READ, frames.WATCH):
        if not acts.may(channel, "view"):
            raise frames.ProtocolError("this channel may not view")
        _look(keeper, channel, kind, payload)


def _look(keeper: Keeper, channel: Channel, kind: int, payload: bytes) -> None:
    if kind == frames.READ:
        channel.at, channel.to = frames.parse_pair(payload)
        if channel.at >= channel.to:
            channel.at = channel.to = -1
        keeper.send(channel, b"")
        return
    offset = frames.parse_u64(payload)
    if keeper.log.end > offset:
        keeper.send(channel, frames.u64_frame(frames.GREW, keeper.log.end))
    else:
        channel.watch = offset


def _input_frame(keeper: Keeper, channel: Channel, payload: bytes) -> None:
    seq, epoch, data = frames.parse_input(payload)
    actor = channel.actor
    assert actor is not None
    if keeper.seqs.get(channel.client, 0) >= seq > 0:  # a retry of what was applied
        keeper.send(channel, frames.pair_frame(frames.ACK, seq, keeper.controls.epoch))
        return
    try:
        acts.require(channel, "type")
        if not epoch:
            holding.heard(keeper, channel)
        if len(data) > limits.INPUT_BYTES_MAX:
            raise Refused("invalid", f"an input of more than {limits.INPUT_BYTES_MAX} bytes", "send it in pieces")
        holding.have(keeper, actor, channel.key, holding.typing(keeper, channel), epoch=epoch)
        acts.put(keeper, actor, data, channel.via, "keys")
    except Refused as e:
        keeper.refuse(channel, frames.message(frames.RESULT, {"seq": seq, "error": acts.error(keeper, e)}))
        return
    if channel.barred:
        channel.barred = 0  # it named the epoch of now
    _remember(keeper, channel.client, seq)
    channel.paused = keeper.input.full
    if channel.acks:
        keeper.send(channel, frames.pair_frame(frames.ACK, seq, keeper.controls.epoch))


def _remember(keeper: Keeper, client: str, seq: int) -> None:
    keeper.seqs.pop(client, None)
    keeper.seqs[client] = seq
    if len(keeper.seqs) > limits.CLIENTS_REMEMBERED:
        keeper.seqs.pop(next(iter(keeper.seqs)))
