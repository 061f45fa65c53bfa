"""Renders a session object as text: a headline, then short facts. Pure."""

from __future__ import annotations

from . import printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

_CONNECTIONS_SHOWN = 5  # --json has all: a server has hundreds


def ending(ended: Json | None) -> str:
    """How a program ended, as text."""
    if not ended or not ended.get("known"):
        return "exit status unknown"
    if ended["signal"]:
        return f"killed by {ended['signal']}"
    return f"exit code {ended['code']}"


def doing(activity: Json) -> str:
    """What the session is doing, as text; an agent at its own prompt is idle."""
    if activity["kind"] == "at_prompt" and activity.get("says"):
        return "idle"
    return str(activity["kind"]).replace("_", " ")


def headline(s: Json) -> str:
    """What the session is doing, or how it ended."""
    if s["state"] != "live":
        return f"{s['state']}, {ending(s['exit'])}"
    words = doing(s["activity"])
    if s["exit"]:
        return f"the main program ended ({ending(s['exit'])}), other processes of its tree keep running"
    return words if s["activity"]["confidence"] == "certain" else f"{words} (likely)"


def facts(s: Json, now: float) -> list[tuple[str, str]]:
    """Labels and values, the most important first. A label may occur several times."""
    out = [("command", " ".join(s["command"])), ("folder", s["cwd"])]
    born = f"started {printing.age(s['started_at'], now)} ago"
    if s["generation"] > 1:
        born += f", generation {s['generation']}, first {printing.age(s['created_at'], now)} ago"
    out.append(("session", f"{s['id']}, {s['kind']}" + (f", pid {s['pid']}" if s["pid"] else "") + f", {born}"))
    if s.get("kernel"):
        out.append(("kernel", _kernel(s["kernel"])))
    if s["exit"]:
        out.append(("exit", _exit(s["exit"], now)))
    out += [("ports", _port(s, p)) for p in s["ports"]]
    if s["state"] == "live":
        out.append(("controls", _controls(s["controls"], now)))
    out += [("attached", f"{a['name']} via {a['via']}, {a['mode']}") for a in s["attached"]]
    if s["pty"]:
        out.append(("terminal", _terminal(s["pty"])))
    out.append(("output", _output(s["output"], s.get("dropped") or 0)))
    if s.get("queued_input"):
        out.append(("input", f"{printing.size(s['queued_input'])} typed, not yet read by the program"))
    out += _policies(s, now)
    if s.get("files"):
        out.append(("files", _files(s)))
    out += _connections(s.get("connections") or [])
    return out


def _kernel(kernel: Json) -> str:
    words = f"{kernel['display_name']} ({kernel['spec']})"
    if kernel["pid"]:
        words += f", pid {kernel['pid']}, {kernel['execution_count']} cells"
    return words + (f", connection file {kernel['connection_file']}" if kernel["connection_file"] else "")


def _exit(ended: Json, now: float) -> str:
    text = ending(ended)
    if ended.get("at"):
        text += f", {printing.age(ended['at'], now)} ago"
    return text + (f", by {ended['by']}" if ended.get("by") else "")


def _port(s: Json, port: Json) -> str:
    names = {p["pid"]: p["name"] for p in s.get("processes", [])}
    name = names.get(port["pid"])
    address = f"[{port['address']}]" if ":" in port["address"] else port["address"]
    who = f"{name} ({port['pid']})" if name else f"pid {port['pid']}"
    return f"{address}:{port['port']} {port['protocol']}, {who}"


def _controls(controls: Json, now: float) -> str:
    if controls["holder"] is None:
        return f"free (epoch {controls['epoch']})"
    name = controls.get("name") or controls["holder"]
    return f"{name} ({controls['kind']}), for {printing.age(controls['since'], now)}, epoch {controls['epoch']}"


def _terminal(pty: Json) -> str:
    mode = "line by line" if pty["canonical"] else "raw"
    echo = "echo on" if pty["echo"] else "echo off"
    where = f", {pty['path']}" if pty.get("path") else ""
    return f"{pty['cols']}x{pty['rows']}, {mode}, {echo}, foreground group {pty['foreground_pgid']}{where}"


def _output(bounds: Json, dropped: int) -> str:
    start, end, durable = bounds["start"], bounds["end"], bounds["durable"]
    text = f"{printing.size(end - start)}, offsets {start} to {end}"
    if durable < end:
        text += f", on disk up to {durable}"
    return text + (f", {printing.size(dropped)} lost to a full disk" if dropped else "")


def _policies(s: Json, now: float) -> list[tuple[str, str]]:
    out = []
    if s.get("restart", "never") != "never":
        out.append(("restart", s["restart"] + (" (starting again soon)" if s.get("restart_at") else "")))
    if s.get("idle_ttl_s"):
        text = f"ended when idle for {printing.span(int(s['idle_ttl_s']))}"
        out.append(("idle", text + (f"; that is at {s['reap_at']}" if s.get("reap_at") else "")))
    return out


def _files(s: Json) -> str:
    kinds: dict[str, int] = {}
    for f in s["files"]:
        kinds[f["kind"]] = kinds.get(f["kind"], 0) + 1
    counted = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in kinds.items())
    locked = sum(1 for f in s["files"] if f["lock"])
    return f"{len(s['files'])} open: {counted}" + (f"; {locked} locked" if locked else "")


def _connections(connections: list[Json]) -> list[tuple[str, str]]:
    shown = connections[:_CONNECTIONS_SHOWN]
    out = [("connection", f"{c['local']} → {c['remote']} {c['state'].lower()}, pid {c['pid']}") for c in shown]
    if len(connections) > len(shown):
        out.append(("connection", f"and {len(connections) - len(shown)} more"))
    return out
