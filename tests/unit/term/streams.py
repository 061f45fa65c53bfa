"""Seeded random terminal output: well-formed sequences in any order, and bytes that are not."""

from __future__ import annotations

import random
from collections.abc import Callable

WORDS = (
    "a",
    "word",
    "hello world",
    "x" * 30,
    "漢字",
    "é",
    "e\u0301",
    "☁\ufe0f",
    "👩‍💻",
    "🇩🇪",
    "─│┌",
    "tab\tq",
    "😀",
    "한글",
)
COLORS = (
    *("0", "1", "2", "3", "4", "5", "7", "8", "9", "21", "22", "24", "27", "31", "32", "44", "45", "97", "103"),
    *("39", "49", "53", "4:3", "58:5:3", "38;5;200", "48;5;99", "38;2;1;2;3", "48;2;9;8;7"),
)
MODES = (
    1,
    5,
    9,
    12,
    25,
    45,
    66,
    67,
    1000,
    1002,
    1003,
    1004,
    1005,
    1006,
    1007,
    1015,
    1016,
    1035,
    1036,
    2004,
    2026,
    2027,
)

# Each makes one piece of output from a source of randomness. More frequent kinds stand more than once.
_WRITERS: tuple[Callable[[random.Random], str], ...] = (
    lambda r: r.choice(WORDS),
    lambda r: r.choice(WORDS) * r.randrange(1, 40),
    lambda r: r.choice(WORDS) + "\r\n",
    lambda r: "\r\n",
    lambda r: "\x1b[" + ";".join(r.choice(COLORS) for _ in range(r.randrange(1, 4))) + "m",
    lambda r: "\x1b[" + ";".join(r.choice(COLORS) for _ in range(r.randrange(1, 4))) + "m",
    lambda r: f"\x1b[{r.randrange(30)};{r.randrange(60)}H",
    lambda r: f"\x1b[{r.randrange(3)}{r.choice('JK')}",
    lambda r: f"\x1b[{r.randrange(10)}{r.choice('ABCDEFGXP@LMSTd')}",
    lambda r: r.choice(("\r", "\n", "\b", "\t", "\x1bM", "\x1bD", "\x1bE")),
    lambda r: f"\x1b[{r.randrange(8)};{r.randrange(8, 25)}r",
    lambda r: r.choice(("\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l", "\x1b[20h", "\x1b[20l")),
    lambda r: r.choice(("\x1b7", "\x1b8", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?1047h", "\x1b[?1047l")),
    lambda r: f"\x1b[?{r.choice(MODES)}{r.choice('hhhllsr')}",
    lambda r: r.choice(("\x1b(0", "\x1b(B", "\x1b)0", "\x0e", "\x0f", "\x1bn", "\x1b~")),
    lambda r: r.choice(("\x1b]8;;http://e\x07", "\x1b]8;id=x;http://f\x07", "\x1b]8;;\x07")),
    lambda r: r.choice(('\x1b[1"q', '\x1b[0"q', "\x1b[?1J", "\x1b[?0K")),
    lambda r: r.choice(("\x1b[>5u", "\x1b[>1u", "\x1b[<u", "\x1b[=3;1u", "\x1b[>4;2m", "\x1b[>4;1m", "\x1b[>4m")),
    lambda r: r.choice(("\x1b]2;title\x07", "\x1b]7;file:///tmp\x07", "\x1b]4;9;#aabbcc\x07", "\x1b]11;#010203\x07")),
    lambda r: r.choice(("\x1b]104\x07", "\x1b]111\x07", f"\x1b[{r.randrange(7)} q", "\x1bH", "\x1b[g", "\x1b[2I")),
)


def output(source: random.Random, pieces: int) -> bytes:
    return "".join(source.choice(_WRITERS)(source) for _ in range(pieces)).encode()


def hostile(source: random.Random, size: int) -> bytes:
    """Random bytes, sequences with huge numbers, and well-formed output with bytes flipped, cut and repeated."""
    kind = source.randrange(3)
    if kind == 0:
        return source.randbytes(size)
    if kind == 1:
        alphabet = b"\x1b[]P_^X\\?>=<!$\"' ;:0123456789mhlHJKrstunqpcABCDLMPSTXdfgxy#(*%@"
        alphabet += b"\x07\x18\x9b\x9d\xc2\xe2\x82\xac\x00\n\r\t"
        return bytes(source.choices(alphabet, k=size))
    data = bytearray(output(source, size // 8))
    for _ in range(len(data) // 20):
        data[source.randrange(len(data))] = source.randrange(256)
    cut = source.randrange(len(data) + 1)
    return bytes(data[cut:] + data[:cut])
