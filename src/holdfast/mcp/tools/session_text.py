"""Summarises sessions, timeline entries and inbox items for agents, in few tokens. Pure."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

WAITING = "waiting_for_approval"
ENDED_SHOWN = 5  # ended sessions in an overview, the newest; the rest are counted
_PROCESSES_SHOWN = 20  # processes of one session
_COMMAND_SHOWN = 200  # characters of a command line


def session(s: Json, me: str) -> Json:
    """One line of an overview."""
    about: Json = {"session": s["name"], "id": s["id"], "state": s["state"]}
    if s["state"] == "live":
        about |= activity(s["activity"])
    if s["exit"] is not None:
        about["exit"] = exit_of(s["exit"])
    if s["ports"]:
        about["ports"] = [port["port"] for port in s["ports"]]
    about["end"] = s["output"]["end"]
    return about | held(s, me)


def activity(a: Json) -> Json:
    told = {"activity": a["kind"]}
    if a["kind"] in ("waiting_for_input", "waiting_for_secret", "unknown"):
        told |= {"evidence": a["evidence"], "confidence": a["confidence"]}
    return told | ({"prompt": a["prompt"]} if a["prompt"] else {})


def exit_of(record: Json) -> Json:
    """How the main program ended; an unobserved exit code is unknown, not 0."""
    if not record["known"]:
        return {"known": False}
    return {k: record[k] for k in ("code", "signal", "at") if record.get(k) is not None}


def held(s: Json, me: str) -> Json:
    """Who holds the controls, if it is another operator."""
    controls = s["controls"]
    if controls["holder"] in (None, me):
        return {}
    return {"controls": {"held_by": controls["name"], "kind": controls["kind"], "since": controls["since"]}}


def full(s: Json, me: str) -> Json:
    """All facts about one session."""
    about = session(s, me) | {
        "command": " ".join(s["command"])[:_COMMAND_SHOWN],
        "cwd": s["cwd"],
        "pid": s["pid"],
        "generation": s["generation"],
        "output": {"start": s["output"]["start"], "end": s["output"]["end"]},
        "ports": [{k: p[k] for k in ("port", "address", "pid")} for p in s["ports"]],
        "processes": [
            {"pid": p["pid"], "ppid": p["ppid"], "command": p["command"][:_COMMAND_SHOWN]}
            for p in s["processes"][:_PROCESSES_SHOWN]
        ],
        "observed_at": s["observed_at"],
    }
    if s["state"] != "live":
        about["evidence"] = s["activity"]["evidence"]
    if len(s["processes"]) > _PROCESSES_SHOWN:
        about["processes_more"] = len(s["processes"]) - _PROCESSES_SHOWN
    return about


def overview(sessions: list[Json], me: str) -> Json:
    """Live sessions, and the newest ended ones."""
    live = [s for s in sessions if s["state"] in ("live", "lost")]
    ended = [s for s in sessions if s["state"] not in ("live", "lost")]
    told: Json = {"sessions": [session(s, me) for s in (*live, *ended[-ENDED_SHOWN:])]}
    if len(ended) > ENDED_SHOWN:
        told["ended_more"] = len(ended) - ENDED_SHOWN
    return told


def entry(e: Json) -> Json:
    """Who did what, from the timeline."""
    told = {"at": e["at"], "did": e["kind"], "by": e.get("name") or (e.get("actor") or {}).get("name")}
    for key in ("exec_id", "text", "signal", "why", "note"):
        if e.get(key):
            told[key] = str(e[key])[:_COMMAND_SHOWN]
    return told


def waiting(told: Json) -> Json:
    """The result of a command that waits for approval, or was approved and is about to run."""
    first = f"wait for=answer={told['ask']}, then " if told["state"] == WAITING else ""
    again = f"{first}call this again for the result"
    return {"state": told["state"], "ask": told["ask"], "expires_at": told["expires_at"], "next": again}


def item(a: Json) -> Json:
    """An inbox item."""
    told = {"ask": a["id"], "kind": a["kind"], "state": a["state"]}
    if a["session_name"]:
        told["session"] = a["session_name"]
    if a["state"] != "open":
        told |= {"answer": a["answer"], "by": (a["answered_by"] or {}).get("name")}
    return told
