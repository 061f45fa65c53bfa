"""The tree that `hold ps` draws."""

from __future__ import annotations

from typing import Any

from holdfast.cli.sessions.ps import cpu_time, tree


def process(pid: int, ppid: int) -> dict[str, Any]:
    return {"pid": pid, "ppid": ppid, "command": f"p{pid}"}


def drawn(*pairs: tuple[int, int]) -> list[str]:
    return [branch + p["command"] for branch, p in tree([process(*pair) for pair in pairs])]


def test_children_stand_below_their_parents_in_the_order_of_their_pids() -> None:
    assert drawn((10, 1), (13, 11), (11, 10), (12, 10), (14, 11)) == [
        "p10",
        "├─ p11",
        "│  ├─ p13",
        "│  └─ p14",
        "└─ p12",
    ]


def test_orphans_stand_at_the_left() -> None:
    assert drawn((10, 1), (20, 1), (21, 20)) == ["p10", "p20", "└─ p21"]


def test_a_very_deep_tree_is_drawn() -> None:
    assert len(drawn(*((n + 1, n) for n in range(1, 3000)))) == 2999


def test_cpu_time_is_short() -> None:
    assert [cpu_time(s) for s in (0.034, 59.99, 60, 3599, 3600, 90061)] == [
        "0.03s",
        "59.99s",
        "1m00s",
        "59m59s",
        "1h00m",
        "25h01m",
    ]
