"""Version 1, byte by byte: a channel from fixed keys, read by an independent Noise and held against what is written in
docs/relay-protocol.md. A change of these bytes needs a new version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from noise.connection import Keypair, NoiseConnection

from holdfast.wire.sealed import frames
from holdfast.wire.sealed.channel import DeviceChannel, HostChannel
from tests.support.sealed import DEVICE, HOST, PROLOGUE, drain, enrolled, public, records

PAGE = Path(__file__).parents[4] / "docs" / "relay-protocol.md"


def conversation() -> dict[str, bytes]:
    """Every message of a short channel, under the names that the page gives them."""
    left = DeviceChannel(
        PROLOGUE, public(HOST), public(DEVICE), DEVICE.sign, X25519PrivateKey.from_private_bytes(b"\1" * 32)
    )
    right = HostChannel(PROLOGUE, HOST, enrolled, X25519PrivateKey.from_private_bytes(b"\2" * 32))
    said = {"greeting": drain(left)}
    right.receive(said["greeting"])
    said["answer"] = drain(right)
    left.receive(said["answer"])
    number = left.streams.open(frames.INTERACTIVE, b"host")
    left.streams.write(number, b"hello")
    left.streams.close(number)
    said["proof"], said["record 1"] = records(left)
    right.receive(said["proof"] + said["record 1"])
    right.end("not_paired", "gone")
    said["end"] = drain(right)
    return said


@pytest.mark.filterwarnings("ignore:One of ephemeral keypairs is already set")
def test_an_independent_noise_reads_the_channel_as_it_is_documented() -> None:
    said = conversation()
    host = NoiseConnection.from_name(b"Noise_NK_25519_AESGCM_SHA256")
    host.set_prologue(b"\0\x0fholdfast-sealed\0\1\1\0\5ten_1\0\5nod_1\0\5hst_1\0\5dev_1")
    host.set_as_responder()
    host.set_keypair_from_private_bytes(Keypair.STATIC, b"host" * 8)
    host.set_keypair_from_private_bytes(Keypair.EPHEMERAL, b"\2" * 32)
    host.start_handshake()
    assert said["greeting"][:3] == said["answer"][:3] == b"\0\x31\1"
    assert host.read_message(said["greeting"][3:]) == b""
    assert bytes(host.write_message()) == said["answer"][3:]

    assert said["proof"][:10] == b"\0\x98" + bytes(8)
    proof = host.decrypt(said["proof"][10:])
    signed = b"\0\0\0\x18holdfast-device-proof-v1\0\0\0\x20" + host.get_handshake_hash()
    DEVICE.public_key().verify(proof[32:96], signed)
    assert proof == public(DEVICE) + proof[32:96] + bytes(32)

    assert said["record 1"][:10] == b"\0\x58" + bytes(7) + b"\1"
    spoken = (
        b"\1\0\0\0\1\0\5\0host"  # OPEN 1, interactive
        b"\2\0\0\0\1\0\5hello"  # DATA
        b"\4\0\0\0\1\0\0"  # CLOSE
    )
    assert host.decrypt(said["record 1"][10:]) == spoken.ljust(64, b"\0")
    end = b"\x08\0\0\0\0\0\x0fnot_paired\0gone"
    assert bytes(host.encrypt(end.ljust(64, b"\0"))) == said["end"][10:]


def test_the_page_shows_these_bytes() -> None:
    shown = dict(re.findall(r"^    ([a-z]+(?: 1)?): ([0-9a-f\s]+?)(?=\n    [a-z]|\n*\Z)", PAGE.read_text(), re.M))
    assert {name: "".join(text.split()) for name, text in shown.items()} == {
        name: message.hex() for name, message in conversation().items()
    }


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (frames.frame(frames.OPEN, 1, frames.open_payload(frames.BULK, b"x")), b"\1\0\0\0\1\0\2\1x"),
        (frames.frame(frames.DATA, 2, b"ab"), b"\2\0\0\0\2\0\2ab"),
        (frames.frame(frames.CREDIT, 3, frames.u32(131072)), b"\3\0\0\0\3\0\4\0\2\0\0"),
        (frames.frame(frames.CLOSE, 4), b"\4\0\0\0\4\0\0"),
        (frames.frame(frames.RESET, 5), b"\5\0\0\0\5\0\0"),
        (frames.frame(frames.PING, 0, frames.u64(6)), b"\6\0\0\0\0\0\x08" + bytes(7) + b"\6"),
        (frames.frame(frames.PONG, 0, frames.u64(7)), b"\7\0\0\0\0\0\x08" + bytes(7) + b"\7"),
        (frames.frame(frames.END, 0, frames.end_payload("quota", "no")), b"\x08\0\0\0\0\0\x08quota\0no"),
    ],
)
def test_each_frame_is_the_bytes_of_the_page(made: bytes, shown: bytes) -> None:
    assert made == shown
