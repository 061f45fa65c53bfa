"""A sealed channel from handshake to end: who is let in, what is looked at before the proof, and how it ends."""

from __future__ import annotations

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.wire.sealed import device_proof, frames, noise
from holdfast.wire.sealed.channel import ENDED, GREETING, OPEN, PROVING, DeviceChannel
from holdfast.wire.sealed.events import Data, Ended, Opened, Proven
from holdfast.wire.sealed.prologue import Prologue
from holdfast.wire.sealed.records import framed
from tests.support.sealed import (
    DEVICE,
    HOST,
    OTHER_DEVICE,
    OTHER_HOST,
    PROLOGUE,
    connected,
    device,
    drain,
    exchange,
    host,
    other,
    public,
    reason,
    records,
)


def test_a_device_reaches_its_host_and_both_know_the_channel() -> None:
    left, right = device(), host()
    number = left.streams.open(frames.INTERACTIVE, b"host")
    left.streams.write(number, b"hello")
    at_device, at_host = exchange(left, right)
    assert left.state == right.state == OPEN
    assert left.handshake_hash == right.handshake_hash != b""
    assert at_device == [Proven(None)]
    proven = at_host[0]
    assert isinstance(proven, Proven)
    assert proven.proof is not None
    assert proven.proof.key == public(DEVICE)
    DEVICE.public_key().verify(proven.proof.signature, device_proof.message(left.handshake_hash))
    assert at_host[1:] == [Opened(number, frames.INTERACTIVE, b"host"), Data(number, b"hello")]


def test_the_first_request_needs_no_round_trip_of_its_own() -> None:
    left, right = device(), host()
    left.streams.open(frames.BULK)
    right.receive(drain(left))
    left.receive(drain(right))
    assert len(records(left)) == 2, "the proof, and the OPEN right behind it"


def test_the_wire_shows_no_text() -> None:
    left, right = connected()
    number = left.streams.open(frames.INTERACTIVE, b"secret-purpose")
    left.streams.write(number, b"secret-text" * 100)
    assert b"secret" not in drain(left)
    del right


# ---------------------------------------------------------------------------------------------- who is let in


def test_a_host_with_another_key_learns_and_sends_nothing() -> None:
    left = device(host=OTHER_HOST)
    right = host()
    assert reason(right.receive(drain(left))) == "handshake"
    assert drain(right) == b""


@pytest.mark.parametrize("part", ["tenant", "node", "host", "device"])
def test_ends_that_were_told_different_ids_do_not_meet(part: str) -> None:
    right = host(other(**{part: "another"}))
    assert reason(right.receive(drain(device()))) == "handshake"


def test_another_version_is_named_to_both_sides() -> None:
    right = host()
    greeting = bytearray(drain(device()))
    greeting[2] = 2
    events = right.receive(bytes(greeting))
    assert reason(events) == "version"
    assert isinstance(events[-1], Ended)
    assert events[-1].error is not None
    assert events[-1].error.code == "version"
    assert "version 2, this side 1" in events[-1].error.line()
    newer = bytearray(drain(right))
    assert newer == b"\0\1\1"
    newer[2] = 3
    assert reason(device().receive(bytes(newer))) == "version"


def test_a_version_byte_changed_on_the_way_downgrades_nothing() -> None:
    """Both ends speak the version that is in the prologue, whatever the greeting's first byte says."""
    left = noise.Initiation(PROLOGUE.encode(2), public(HOST))
    assert reason(host().receive(framed(b"\1" + left.message))) == "handshake"


def test_a_device_that_is_not_enrolled_is_told_so_sealed() -> None:
    left, right = device(key=OTHER_DEVICE), host()
    at_device, at_host = exchange(left, right)
    assert reason(at_host) == "not_paired"
    assert reason(at_device) == "not_paired"
    assert right.state == left.state == ENDED


def test_a_proof_signed_by_another_key_is_refused_before_admission() -> None:
    asked: list[bytes] = []
    left = DeviceChannel(PROLOGUE, public(HOST), public(DEVICE), OTHER_DEVICE.sign)
    right = host(admit=lambda proof: asked.append(proof.key))
    _, at_host = exchange(left, right)
    assert reason(at_host) == "proof"
    assert not asked


def test_a_proof_of_another_channel_is_refused() -> None:
    earlier, _ = connected()
    taken = DEVICE.sign(device_proof.message(earlier.handshake_hash))
    left = DeviceChannel(PROLOGUE, public(HOST), public(DEVICE), lambda _: taken)
    assert reason(exchange(left, host())[1]) == "proof"


def test_a_signature_over_the_bare_hash_is_refused() -> None:
    """The label keeps a signature made for something else from being a proof."""
    left = DeviceChannel(PROLOGUE, public(HOST), public(DEVICE), lambda message: DEVICE.sign(message[-32:]))
    assert reason(exchange(left, host())[1]) == "proof"


def test_a_key_that_is_no_point_is_refused() -> None:
    left = DeviceChannel(PROLOGUE, public(HOST), b"\xff" * 32, DEVICE.sign)
    assert reason(exchange(left, host())[1]) == "proof"


def test_nothing_hides_behind_a_proof() -> None:
    left = DeviceChannel(PROLOGUE, public(HOST), public(DEVICE), lambda message: DEVICE.sign(message) + b"more")
    assert reason(exchange(left, host())[1]) == "padding"


def test_frames_before_the_proof_are_not_looked_at() -> None:
    left, right = device(), host()
    right.receive(drain(left))
    left.receive(drain(right))
    left._outgoing.clear()  # a device that skips its proof
    assert left._sealer is not None
    left._sealer.cipher.n = 0
    left.streams.open(frames.BULK)
    events = right.receive(drain(left))
    assert reason(events) in {"proof", "truncated"}
    assert not any(isinstance(event, Opened) for event in events)
    assert right.state == ENDED


def test_a_host_says_nothing_before_the_proof() -> None:
    left, right = device(), host()
    right.streams.open(frames.BULK)
    right.receive(drain(left))
    assert right.state == PROVING
    assert len(drain(right)) == 51, "its half of the handshake, and no frame"


def test_a_recorded_handshake_opens_nothing() -> None:
    """A relay replays a whole recorded channel to the host: the proof does not open under the new keys."""
    left, right = device(), host()
    first = drain(left)
    right.receive(first)
    left.receive(drain(right))
    proof = drain(left)
    again = host()
    assert again.receive(first) == []
    assert reason(again.receive(proof)) == "tag"


def test_an_answer_of_another_channel_is_refused() -> None:
    left, right = device(), host()
    right.receive(drain(left))
    answer = drain(right)
    assert reason(device().receive(answer)) == "handshake"


@pytest.mark.parametrize("size", [0, 1, 33, 48])
def test_a_short_greeting_is_refused(size: int) -> None:
    assert reason(host().receive(framed(drain(device())[2 : 2 + size]))) == "truncated"


def test_a_greeting_with_a_payload_is_refused() -> None:
    """What a first message carries could be sent again by a relay: it carries nothing."""
    eager = noise.Initiation(PROLOGUE.encode(), public(HOST), b"early")
    right = host()
    assert reason(right.receive(framed(b"\1" + eager.message))) == "too_long"


def test_an_unproven_device_costs_little_memory() -> None:
    assert reason(host().receive(b"\x08\x01")) == "too_long"
    left, right = device(), host()
    right.receive(drain(left))
    assert reason(right.receive((153).to_bytes(2, "big"))) == "too_long"


# ------------------------------------------------------------------------------------------------- how it ends


def test_an_end_is_heard_and_nothing_follows() -> None:
    left, right = connected()
    number = left.streams.open(frames.BULK)
    left.streams.write(number, b"dropped")
    left.end("failed", "the device shuts down")
    at_host = exchange(left, right)[1]
    assert reason(at_host) == "failed"
    assert left.receive(b"\0\1x") == right.receive(b"\0\1x") == []
    assert left.eof() == right.eof() == []


def test_a_clean_end_is_no_error() -> None:
    left, right = connected()
    right.end()
    assert exchange(left, right)[0] == [Ended(None, by_peer=True)]


def test_a_connection_that_is_cut_is_no_clean_end() -> None:
    left, right = connected()
    assert reason(left.eof()) == "cut"
    assert left.state == ENDED
    assert drain(left) == b""
    del right


def test_a_cut_in_the_handshake_is_reported() -> None:
    left = device()
    assert left.state == GREETING
    assert reason(left.eof()) == "cut"


def test_each_side_is_told_when_the_other_finds_tampering() -> None:
    left, right = connected()
    left.streams.ping(1)
    drain(left)
    left.streams.ping(2)
    assert reason(right.receive(drain(left))) == "gap"
    events = left.receive(drain(right))
    assert reason(events) == "sealed"
    assert isinstance(events[-1], Ended)
    assert events[-1].by_peer
    assert "[gap]" in str(events[-1].error)


def test_an_admission_that_fails_otherwise_is_an_error_of_the_host_not_of_the_channel() -> None:
    def broken(_: device_proof.DeviceProof) -> None:
        raise HoldfastError("quota", "too many channels", "in 10 s")

    assert reason(exchange(device(), host(admit=broken))[0]) == "quota"


def test_ids_that_cannot_be_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(HoldfastError):
        device(Prologue("", "n", "h", "d"))
