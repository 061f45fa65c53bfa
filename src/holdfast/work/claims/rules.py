"""What a claim says, and whether it still holds: what was seen then beside what the kernel says now. Pure."""

from __future__ import annotations

from typing import Any

from ...model.errors import invalid

Json = dict[str, Any]
KINDS = ("port", "file", "pid", "command", "session")
STATES = ("holds", "drifted", "unknown")
_WORST = {"drifted": 0, "unknown": 1, "holds": 2}


def told(claim: Json) -> str:
    """A claim in one line."""
    spec, seen = claim["spec"], claim["seen"]
    kind = claim["kind"]
    if kind == "port":
        owner = seen.get("session_name") or seen.get("command")
        return f"port {spec['port']} is served" + (f" by {owner}" if owner else "")
    if kind == "file":
        return f"{spec['path']} has SHA-256 {seen['sha256'][:12]}…"
    if kind == "pid":
        return f"process {spec['pid']} ({seen.get('name') or '?'}) is alive"
    if kind == "command":
        return f"`{spec['command']}` succeeds"
    return f"session {seen.get('session_name') or spec['session']} is live"


def check(kind: object, spec: object, seen: object) -> tuple[str, Json, Json]:
    """As the store may keep it; whoever made the observation is the client."""
    if kind not in KINDS:
        raise invalid(f"there is no claim of kind {str(kind)[:40]!r}", "one of " + ", ".join(KINDS))
    if not isinstance(spec, dict) or not isinstance(seen, dict):
        raise invalid("a claim has what is claimed and what was seen", "hold claim add --help")
    needed = {"port": "port", "file": "path", "pid": "pid", "command": "command", "session": "session"}[str(kind)]
    if spec.get(needed) in (None, ""):
        raise invalid(f"a claim of kind {kind} names its {needed}", "hold claim add --help")
    numbers = {"port": (1, 65535), "pid": (1, 1 << 31)}
    if str(kind) in numbers:
        least, most = numbers[str(kind)]
        if type(spec[needed]) is not int or not least <= spec[needed] <= most:
            raise invalid(f"{str(spec[needed])[:40]!r} is not a {kind}", f"a number from {least} on")
    elif not isinstance(spec[needed], str):
        raise invalid(f"a claim's {needed} is text", f"not {type(spec[needed]).__name__}")
    # What a look or a brief relies on later, whoever makes it.
    wanted: list[tuple[Json, str, Any, bool]] = [
        (spec, "session", str, True),
        (seen, "session", str, True),
        (seen, "generation", int, True),
    ]
    if kind == "file":
        wanted += [(seen, "sha256", str, False), (seen, "size", int, False)]
    elif kind == "command":
        wanted += [(spec, "cwd", str, False), (spec, "timeout_s", (int, float), False)]
    for where, name, form, may_lack in wanted:
        if not isinstance(where.get(name), form) and not (may_lack and where.get(name) is None):
            raise invalid(f"a claim of kind {kind} lacks its {name}", "hold claim add makes them whole")
    return str(kind), spec, seen


def worst(states: list[str]) -> str:
    """What several results come to."""
    return min(states, key=_WORST.__getitem__, default="holds")


def judge(claim: Json, now: Json) -> Json:
    """`{"state", "said", "evidence"}` from a claim and what was observed for it.

    `now` holds what the kernel said: `host`, `boot`, `session` (its status, or null where it is gone), `ports` (who
    listens on the claimed port), `process`, `file`, `command`; and `tail`, the session's last lines.
    """
    if claim["host"] and claim["host"] != now.get("host"):
        return _unknown(f"it was made on host {claim['host']}", "this host's kernel does not know", host=claim["host"])
    return _RULES[claim["kind"]](claim, now)


def _result(state: str, said: str, **evidence: Any) -> Json:
    return {"state": state, "said": said, "evidence": {k: v for k, v in evidence.items() if v is not None}}


def _unknown(what: str, why: str, **evidence: Any) -> Json:
    return _result("unknown", f"{what}: {why}", **evidence)


# -- sessions ----------------------------------------------------------------------------------------------------------


def ended_words(session: Json) -> str:
    """How a session that is not live came to that, in words."""
    if session["state"] == "lost":
        return "its keeper died, and nobody saw how it ended"
    exit = session["exit"] or {}
    if not exit.get("known", True) or not exit:
        return "how it ended is unknown"
    how = f"signal {exit['signal']}" if exit.get("signal") else f"exit code {exit['code']}"
    reaped = "reaped, " if session["state"] == "reaped" else ""
    return reaped + how + (f" at {exit['at']}" if exit.get("at") else "")


def _of_session(session: Json | None, tail: str | None) -> Json:
    """The evidence that a session gives: alive or not, how it ended, what it said last."""
    if session is None:
        return {"session_state": "gone"}
    facts: Json = {
        "session": session["id"],
        "session_name": session["name"],
        "session_state": session["state"],
        "generation": session["generation"],
        "observed_at": session["observed_at"],
    }
    if session["state"] != "live" or session["exit"]:
        facts["exit"] = session["exit"]
    if session["state"] != "live" and tail:
        facts["last_lines"] = tail
    return facts


def _session(claim: Json, now: Json) -> Json:
    session = now.get("session")
    if now.get("session_error"):
        return _unknown("the session", now["session_error"])
    if session is None:
        return _result("drifted", "the session is gone: it was removed", **_of_session(None, None))
    evidence = _of_session(session, now.get("tail"))
    if session["state"] == "live":
        later = session["generation"] - (claim["seen"].get("generation") or session["generation"])
        again = f", restarted {later} time{'s' if later != 1 else ''} since" if later > 0 else ""
        return _result("holds", f"{session['name']} is live, pid {session['pid']}{again}", **evidence)
    return _result("drifted", f"{session['name']} is {session['state']}: {ended_words(session)}", **evidence)


# -- ports -------------------------------------------------------------------------------------------------------------


def _port(claim: Json, now: Json) -> Json:
    spec, seen, rows = claim["spec"], claim["seen"], now.get("ports") or []
    port, wanted = spec["port"], spec.get("session") or seen.get("session")
    session = now.get("session")
    evidence = _of_session(session, now.get("tail")) if wanted else {}
    if rows:
        evidence["owner"] = rows[0]
    if any(wanted and row.get("session") == wanted for row in rows):
        mine = next(row for row in rows if row.get("session") == wanted)
        return _result(
            "holds",
            f"{_name(mine)} listens on {mine['address']}:{port}, pid {mine['pid']}",
            **{**evidence, "owner": mine},
        )
    if rows:
        owner = rows[0]
        if not wanted and _same_program(seen, owner):
            return _result("holds", f"{_name(owner)} listens on {owner['address']}:{port}", **evidence)
        if not wanted and not seen.get("pid"):  # nobody had it when the claim was made: it names no owner
            return _result("holds", f"{_name(owner)} listens on {owner['address']}:{port}", **evidence)
        instead = f"port {port} is served by {_name(owner)} now"
        if wanted and session is not None and session["state"] != "live":
            instead += f"; {session['name']} is {session['state']}: {ended_words(session)}"
        return _result("drifted", instead, **evidence)
    said = f"nobody listens on port {port}"
    if wanted and session is None:
        said += "; the session is gone"
    elif session is not None and session["state"] != "live":
        said += f"; {session['name']} is {session['state']}: {ended_words(session)}"
    elif session is not None:
        said += f"; {session['name']} is live and does not"
    return _result("drifted", said, **evidence)


def _same_program(seen: Json, owner: Json) -> bool:
    same_process = seen.get("pid") == owner.get("pid") and seen.get("started") == owner.get("started")
    return same_process or bool(seen.get("command") and seen.get("command") == owner.get("command"))


def _name(row: Json) -> str:
    if row.get("session_name"):
        return f"session {row['session_name']}"
    return f"{row['command']} (pid {row['pid']})" if row.get("command") else "another program"


# -- processes, files, commands ----------------------------------------------------------------------------------------


def _pid(claim: Json, now: Json) -> Json:
    spec, seen, process = claim["spec"], claim["seen"], now.get("process")
    evidence = _of_session(now.get("session"), now.get("tail")) if seen.get("session") else {}
    if seen.get("boot") and now.get("boot") and seen["boot"] != now["boot"]:
        return _result("drifted", "the machine has been started again since", **evidence)
    if process is None:
        said = f"process {spec['pid']} has ended"
        session = now.get("session")
        if session is not None and session["state"] != "live":
            said += f"; {session['name']} is {session['state']}: {ended_words(session)}"
        return _result("drifted", said, **evidence)
    if process.get("hidden"):
        return _unknown(f"process {spec['pid']}", "what it is may not be seen by who asks")
    if process["started"] != seen.get("started"):
        what = process["command"] or process["name"]
        said = f"pid {spec['pid']} was given to another process: {what}"
        return _result("drifted", said, process=process, **evidence)
    if process["state"] == "zombie":
        said = f"process {spec['pid']} has ended and waits to be reaped"
        return _result("drifted", said, process=process, **evidence)
    return _result("holds", f"process {spec['pid']} is alive ({process['state']})", process=process, **evidence)


def _file(claim: Json, now: Json) -> Json:
    path, seen, file = claim["spec"]["path"], claim["seen"], now.get("file") or {}
    if file.get("error"):
        return _unknown(path, file["error"])
    if not file.get("exists"):
        return _result("drifted", f"{path} is gone", was=_short(seen))
    if file["sha256"] != seen["sha256"]:
        said = f"{path} has changed: {seen['size']:,} bytes then, {file['size']:,} now"
        return _result("drifted", said, was=_short(seen), now=_short(file), modified_at=file.get("modified_at"))
    return _result("holds", f"{path} is as it was ({file['size']:,} bytes)", sha256=file["sha256"])


def _short(file: Json) -> Json:
    return {"sha256": file["sha256"], "size": file["size"]}


def _command(claim: Json, now: Json) -> Json:
    ran = now.get("command")
    if ran is None:
        return _unknown("the command", "it was not run")
    evidence = {k: ran.get(k) for k in ("exit_code", "duration_ms", "session", "at")}
    if ran["state"] == "passed":
        return _result("holds", "it succeeded", **evidence)
    tail = ran.get("tail") or None
    if ran["state"] == "timeout":
        said = f"it did not end within {claim['spec']['timeout_s']:g} s"
        return _result("drifted", said, last_lines=tail, **evidence)
    if ran["state"] == "failed":
        how = f"signal {ran['signal']}" if ran.get("signal") else f"exit code {ran['exit_code']}"
        return _result("drifted", f"it failed with {how}", last_lines=tail, **evidence)
    return _unknown("the command", ran.get("why") or "how it ended was not seen", last_lines=tail, **evidence)


_RULES = {"session": _session, "port": _port, "pid": _pid, "file": _file, "command": _command}
