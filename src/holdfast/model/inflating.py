"""Compressed bytes to plain ones, never more of them than the caller has room for. Pure.

A frame says how large it becomes, and that is checked before anything is allocated: zstandard's own `max_output_size`
does not count for a frame that says so. One that says less than it holds ends as an error of the decompressor. One that
does not say is not ours: every frame that Holdfast writes does.
"""

from __future__ import annotations


class Inflated(ValueError):
    """The bytes are no frame of ours, or become more than there is room for."""


def inflate(data: bytes, at_most: int) -> bytes:
    """The content of one zstd frame of at most `at_most` bytes."""
    import zstandard  # only where something is read: 5 ms

    try:
        declared = zstandard.get_frame_parameters(data).content_size
        if declared == zstandard.CONTENTSIZE_UNKNOWN:
            raise Inflated("the frame does not say how large it becomes")
        if declared > at_most:
            raise Inflated(f"{declared:,} bytes where at most {at_most:,} belong")
        return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as e:
        raise Inflated(str(e)) from None
