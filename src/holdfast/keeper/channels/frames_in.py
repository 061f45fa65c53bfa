"""What a channel's frames do: HELLO first, then typing, sizing, reading and asking."""

from __future__ import annotations

from ...model import limits
from ...model.sessions.controls import Refused
from ...wire import keeper_frames
from ..controls import controls, type_and_resize
from . import ops
from .channel import Channel
from .handshake import hello

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..keeper import Keeper


def receive(keeper: Keeper, channel: Channel, kind: int, payload: bytes) -> None:
    """One frame from a client. Before HELLO nothing else is heard."""
    if kind == keeper_frames.HELLO:
        hello(keeper, channel, keeper_frames.parse_json(payload))
    elif channel.actor is None:
        raise keeper_frames.ProtocolError("the first frame is HELLO")
    elif kind == keeper_frames.INPUT:
        _input_frame(keeper, channel, payload)
    elif kind == keeper_frames.RESIZE:
        try:
            controls.heard(keeper, channel)
            type_and_resize.resize(keeper, channel, channel.actor, *keeper_frames.parse_size(payload), channel.key)
        except Refused:
            pass  # only the holder sizes the terminal; a watcher's window is its own affair
    elif kind == keeper_frames.ACT:
        ops.act(keeper, channel, keeper_frames.parse_json(payload))
    elif kind in (keeper_frames.READ, keeper_frames.WATCH):
        if not type_and_resize.may(channel, "view"):
            raise keeper_frames.ProtocolError("this channel may not view")
        _look(keeper, channel, kind, payload)


def _look(keeper: Keeper, channel: Channel, kind: int, payload: bytes) -> None:
    if kind == keeper_frames.READ:
        channel.at, channel.to = keeper_frames.parse_pair(payload)
        if channel.at >= channel.to:
            channel.at = channel.to = -1
        keeper.send(channel, b"")
        return
    offset = keeper_frames.parse_u64(payload)
    if keeper.log.end > offset:
        keeper.send(channel, keeper_frames.u64_frame(keeper_frames.GREW, keeper.log.end))
    else:
        channel.watch = offset


def _input_frame(keeper: Keeper, channel: Channel, payload: bytes) -> None:
    seq, epoch, data = keeper_frames.parse_input(payload)
    actor = channel.actor
    assert actor is not None
    if keeper.seqs.get(channel.client, 0) >= seq > 0:  # a retry of what was applied
        keeper.send(channel, keeper_frames.ack(seq, keeper.controls.epoch, keeper.input.echo_off))
        return
    try:
        type_and_resize.require(channel, "type")
        if not epoch:
            controls.heard(keeper, channel)
        if len(data) > limits.INPUT_BYTES_MAX:
            raise Refused("invalid", f"an input of more than {limits.INPUT_BYTES_MAX} bytes", "send it in pieces")
        controls.have(keeper, actor, channel.key, controls.typing(keeper, channel), epoch=epoch)
        off = type_and_resize.put(keeper, actor, data, channel.via, "keys")
    except Refused as e:
        keeper.refuse(
            channel,
            keeper_frames.message(keeper_frames.RESULT, {"seq": seq, "error": type_and_resize.error(keeper, e)}),
        )
        return
    if channel.barred:
        channel.barred = 0  # it named the epoch of now
    _remember(keeper, channel.client, seq)
    channel.paused = keeper.input.full
    if channel.acks:
        keeper.send(channel, keeper_frames.ack(seq, keeper.controls.epoch, off))


def _remember(keeper: Keeper, client: str, seq: int) -> None:
    keeper.seqs.pop(client, None)
    keeper.seqs[client] = seq
    if len(keeper.seqs) > limits.CLIENTS_REMEMBERED:
        keeper.seqs.pop(next(iter(keeper.seqs)))
