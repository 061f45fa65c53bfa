"""Decompresses zstd frames up to a size limit. Pure.

A frame says how large it becomes, and that is checked before anything is allocated: zstandard's own `max_output_size`
is ignored for a frame that declares its size. One that declares less than it holds is an error of the decompressor. One
without a size is refused: every frame that Holdfast writes has one.
"""

from __future__ import annotations


class Inflated(ValueError):
    """The bytes are not a valid frame, or exceed the limit."""


def inflate(data: bytes, at_most: int) -> bytes:
    """The content of one zstd frame of at most `at_most` bytes."""
    import zstandard  # only where something is read: 5 ms

    try:
        declared = zstandard.get_frame_parameters(data).content_size
        if declared == zstandard.CONTENTSIZE_UNKNOWN:
            raise Inflated("the frame does not declare its size")
        if declared > at_most:
            raise Inflated(f"{declared:,} bytes where at most {at_most:,} belong")
        return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as e:
        raise Inflated(str(e)) from None
