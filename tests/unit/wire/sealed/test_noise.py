"""Noise NK as noiseprotocol, an independent implementation, speaks it; and what a handshake refuses."""

from __future__ import annotations

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from noise.connection import Keypair, NoiseConnection

from holdfast.wire.sealed import noise
from holdfast.wire.sealed.errors import SealedError
from tests.support.sealed import HOST, OTHER_HOST, PROLOGUE, other, public

P = 2**255 - 19
# Every point of low order on Curve25519 and its twist, also as encoded past the prime (RFC 7748 takes both).
LOW_ORDER = [
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    P - 1,
    P,
    P + 1,
]


def oracle(initiator: bool, prologue: bytes, ephemeral: bytes | None = None) -> NoiseConnection:
    connection = NoiseConnection.from_name(noise.NAME)
    connection.set_prologue(prologue)
    if initiator:
        connection.set_as_initiator()
        connection.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, public(HOST))
    else:
        connection.set_as_responder()
        connection.set_keypair_from_private_bytes(Keypair.STATIC, HOST.private_bytes_raw())
    if ephemeral is not None:
        connection.set_keypair_from_private_bytes(Keypair.EPHEMERAL, ephemeral)
    connection.start_handshake()
    return connection


def agree(keys: noise.Keys, theirs: NoiseConnection) -> None:
    """The same hash, and transport messages both ways, across a rekey."""
    assert theirs.handshake_finished
    assert keys.handshake_hash == theirs.get_handshake_hash()
    for text in (b"", b"a", b"b" * 1000):
        assert theirs.decrypt(keys.send.encrypt(text)) == text
        assert keys.receive.decrypt(theirs.encrypt(text)) == text
        keys.send.rekey()
        theirs.rekey_inbound_cipher()
        keys.receive.rekey()
        theirs.rekey_outbound_cipher()


@settings(max_examples=30)
@given(st.binary(max_size=300), st.binary(max_size=100), st.binary(max_size=100))
def test_our_device_speaks_with_an_independent_host(prologue: bytes, first: bytes, second: bytes) -> None:
    ours = noise.Initiation(prologue, public(HOST), first)
    theirs = oracle(False, prologue)
    assert theirs.read_message(ours.message) == first
    keys = ours.finish(bytes(theirs.write_message(second)))
    assert keys.payload == second
    agree(keys, theirs)


@settings(max_examples=30)
@given(st.binary(max_size=300), st.binary(max_size=100), st.binary(max_size=100))
def test_our_host_speaks_with_an_independent_device(prologue: bytes, first: bytes, second: bytes) -> None:
    theirs = oracle(True, prologue)
    answer, keys = noise.respond(prologue, HOST, bytes(theirs.write_message(first)), second)
    assert keys.payload == first
    assert theirs.read_message(answer) == second
    agree(keys, theirs)


@pytest.mark.filterwarnings("ignore:One of ephemeral keypairs is already set")
def test_with_the_same_ephemeral_keys_every_byte_is_the_same() -> None:
    mine, answering = b"\1" * 32, b"\2" * 32
    ours = noise.Initiation(b"p", public(HOST), ephemeral=X25519PrivateKey.from_private_bytes(mine))
    device, host = oracle(True, b"p", mine), oracle(False, b"p", answering)
    assert ours.message == bytes(device.write_message())
    host.read_message(ours.message)
    answer, _ = noise.respond(b"p", HOST, ours.message, ephemeral=X25519PrivateKey.from_private_bytes(answering))
    assert answer == bytes(host.write_message())


@pytest.mark.parametrize("high_bit", [0, 1 << 255])
@pytest.mark.parametrize("point", LOW_ORDER)
def test_a_point_of_low_order_is_refused_by_both_sides(point: int, high_bit: int) -> None:
    weak = (point | high_bit).to_bytes(32, "little")
    with pytest.raises(SealedError) as e:
        noise.respond(b"", HOST, weak + bytes(16))
    assert e.value.reason == "low_order"
    with pytest.raises(SealedError) as e:
        noise.Initiation(b"", public(HOST)).finish(weak + bytes(16))
    assert e.value.reason == "low_order"
    with pytest.raises(SealedError) as e:
        noise.Initiation(b"", weak)
    assert e.value.reason == "low_order"


@pytest.mark.parametrize("size", [0, 1, 31, 32, 47])
def test_a_truncated_handshake_is_refused(size: int) -> None:
    ours = noise.Initiation(b"", public(HOST))
    with pytest.raises(SealedError) as e:
        noise.respond(b"", HOST, ours.message[:size])
    assert e.value.reason == "truncated"
    with pytest.raises(SealedError) as e:
        ours.finish(bytes(size))
    assert e.value.reason == "truncated"


def test_another_host_key_is_refused() -> None:
    ours = noise.Initiation(b"", public(HOST))
    with pytest.raises(SealedError) as e:
        noise.respond(b"", OTHER_HOST, ours.message)
    assert e.value.reason == "handshake"


@settings(max_examples=30)
@given(st.integers(0, 47 * 8 + 7))
def test_a_changed_bit_of_either_message_is_refused(bit: int) -> None:
    def flipped(message: bytes) -> bytes:
        return (int.from_bytes(message, "big") ^ (1 << bit)).to_bytes(48, "big")

    ours = noise.Initiation(b"", public(HOST))
    answer, _ = noise.respond(b"", HOST, ours.message)
    with pytest.raises(SealedError, match=r"\[(handshake|low_order)\]"):
        noise.respond(b"", HOST, flipped(ours.message))
    with pytest.raises(SealedError, match=r"\[(handshake|low_order)\]"):
        ours.finish(flipped(answer))


@pytest.mark.parametrize("part", ["tenant", "node", "host", "device"])
def test_sides_that_were_told_different_ids_do_not_meet(part: str) -> None:
    ours = noise.Initiation(PROLOGUE.encode(), public(HOST))
    with pytest.raises(SealedError) as e:
        noise.respond(other(**{part: "another"}).encode(), HOST, ours.message)
    assert e.value.reason == "handshake"


def test_an_answer_to_another_handshake_is_refused() -> None:
    first, second = noise.Initiation(b"", public(HOST)), noise.Initiation(b"", public(HOST))
    answer, _ = noise.respond(b"", HOST, first.message)
    with pytest.raises(SealedError) as e:
        second.finish(answer)
    assert e.value.reason == "handshake"


def test_a_handshake_is_finished_once() -> None:
    ours = noise.Initiation(b"", public(HOST))
    answer, _ = noise.respond(b"", HOST, ours.message)
    ours.finish(answer)
    with pytest.raises(SealedError) as e:
        ours.finish(answer)
    assert e.value.reason == "handshake"


def test_each_handshake_has_new_keys() -> None:
    ours = noise.Initiation(b"", public(HOST))
    _, one = noise.respond(b"", HOST, ours.message)
    _, two = noise.respond(b"", HOST, ours.message)
    assert one.handshake_hash != two.handshake_hash
    with pytest.raises(InvalidTag):
        two.receive.decrypt(one.send.encrypt(b"text"))


def test_the_last_nonce_is_never_used() -> None:
    cipher = noise.CipherState(bytes(32))
    cipher.n = 2**64 - 2
    cipher.encrypt(b"")
    with pytest.raises(SealedError) as e:
        cipher.encrypt(b"")
    assert e.value.reason == "exhausted"
