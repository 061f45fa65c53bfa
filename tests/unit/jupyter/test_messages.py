"""Messages of the Jupyter protocol: what is packed is read back, and what is not signed does not count."""

from __future__ import annotations

import pytest

from holdfast.jupyter.messages import MessageCodec


def test_a_message_is_read_back_as_it_was_packed() -> None:
    ours, theirs = MessageCodec(b"key", "a"), MessageCodec(b"key", "b")
    id, frames = ours.pack("execute_request", {"code": "né"}, "2026-01-01T00:00:00+00:00", {"msg_id": "p"})
    message = theirs.unpack([b"routing", *frames])
    assert message is not None
    assert (message.kind, message.content, message.parent_id) == ("execute_request", {"code": "né"}, "p")
    assert (message.header["msg_id"], message.header["session"]) == (id, "a")


def test_jupyters_own_session_reads_it_and_we_read_its() -> None:
    from jupyter_client.session import Session

    theirs = Session(key=b"key")
    _, frames = MessageCodec(b"key", "a").pack("kernel_info_request", {}, "2026-01-01T00:00:00+00:00")
    _, rest = theirs.feed_identities(frames)
    assert theirs.deserialize(rest)["msg_type"] == "kernel_info_request"
    sent = theirs.serialize(theirs.msg("status", {"execution_state": "idle"}))
    message = MessageCodec(b"key", "a").unpack(list(sent))
    assert message is not None
    assert message.content == {"execution_state": "idle"}


@pytest.mark.parametrize("spoil", range(1, 6))
def test_what_was_changed_on_the_way_does_not_count(spoil: int) -> None:
    codec = MessageCodec(b"key", "a")
    _, frames = codec.pack("status", {"execution_state": "idle"}, "2026-01-01T00:00:00+00:00")
    frames[spoil] += b" "
    assert codec.unpack(frames) is None
    assert MessageCodec(b"other", "a").unpack(frames) is None


@pytest.mark.parametrize("frames", [[], [b"<IDS|MSG>"], [b"x"], [b"<IDS|MSG>", b"sig", b"{}", b"{}", b"{}"]])
def test_what_is_no_message_is_none(frames: list[bytes]) -> None:
    assert MessageCodec(b"key", "a").unpack(frames) is None
