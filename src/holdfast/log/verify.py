"""Reading a whole log against its checksums: what is sound, what is damaged, what is missing."""

from __future__ import annotations

from ..model.doctor_findings import Finding, fail, ok, some
from .reader import LogReader


class LogCheck:
    """What a log's check found; `damaged` and `missing` are stretches of offsets."""

    __slots__ = ("bytes", "damaged", "missing", "unindexed")

    def __init__(self) -> None:
        self.bytes = self.unindexed = 0
        self.damaged: list[tuple[int, int]] = []
        self.missing: list[tuple[int, int]] = []


def verify(folder: str) -> LogCheck:
    """Check every record of the log in `folder`; safe while it is being written and pruned."""
    reader, verdict = LogReader(folder), LogCheck()
    start, end = reader.bounds()
    for piece in reader.pieces(start, end):
        if piece.corrupt:
            verdict.damaged.append((piece.offset, piece.end))
        elif piece.data is None:
            verdict.missing.append((piece.offset, piece.end))
        else:
            verdict.bytes += len(piece.data)
            if not piece.time_us:  # every record carries its time: these bytes have none, so no checksum either
                verdict.unindexed += len(piece.data)
    if reader.bounds()[0] > start:  # pruned meanwhile: what makes room is not what is missing
        oldest = reader.bounds()[0]
        verdict.missing = [(a, b) for a, b in verdict.missing if b > oldest]
        verdict.damaged = [(a, b) for a, b in verdict.damaged if b > oldest]
    return verdict


def finding(checked: list[tuple[str, LogCheck]]) -> Finding:
    """What the checks of several logs amount to, by session name."""
    damaged = [f"{name} at offset {v.damaged[0][0]} ({len(v.damaged)} in all)" for name, v in checked if v.damaged]
    if damaged:
        return fail(
            "logs",
            f"stretches that do not match their checksums: {some(damaged)}",
            "they are read as gaps and the rest as it was; check the disk, and restore a backup if you need them",
        )
    total, gaps = sum(v.bytes for _, v in checked), sum(len(v.missing) for _, v in checked)
    return ok("logs", f"{len(checked)} with {total} bytes match their checksums" + (f", {gaps} gaps" if gaps else ""))
