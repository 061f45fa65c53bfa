"""The operator of an MCP connection: an agent with its own key and a narrow grant, never the person who set it up.

    inside an agent's session ──> that agent, as the host reports
    else ───────────────────────> the agent NAME, enrolled on first use with the person's key

The host checks every request again: a grant on the agent's own sessions, and never approve, delegate or enrol.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ..client._async.host import AsyncHost
from ..client.process import acts_for
from ..model.errors import HoldfastError
from ..model.limits import NAME_MAX

Json = dict[str, Any]

NAME_DEFAULT = "agent"  # for a client without a name


def name_from(client: str) -> str:
    """An operator's name from the client's name: `Visual Studio Code` is `visual-studio-code`."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in client.lower())
    name = "-".join(part for part in plain.split("-") if part)[:NAME_MAX]
    return name or NAME_DEFAULT


class Agent:
    """One agent's connection to the host: every act is done, checked and recorded as this operator."""

    def __init__(self, host: AsyncHost, me: Json) -> None:
        self.host, self.id, self.name = host, str(me["id"]), str(me["name"])
        # For listening only: does not start a host that was stopped.
        self.listening = AsyncHost(host.home.path, autostart=False)
        self.listening.operator = host.operator
        self.asked: dict[tuple[str, str], str] = {}  # files that wait for approval: (run, path) to the inbox item
        self.verifying: dict[str, asyncio.Future[Any]] = {}  # running verifications, by task

    def close(self) -> None:
        for task in self.verifying.values():
            task.cancel()
        self.host.close()
        self.listening.close()


def _host(home: str | None, operator: str | None) -> AsyncHost:
    """A host connection as exactly this operator; the environment's operator is ignored."""
    host = AsyncHost(home)
    host.operator = operator
    host.ancestor = acts_for()  # an agent's controls are held for the client that started this server
    return host


async def enrol_agent(home: str | None, name: str, *, why: str = "first use over MCP") -> Agent:
    """The agent of this name, enrolled on first use; inside an agent's session, the session's operator."""
    person = _host(home, None)
    try:
        me = await person.whoami()
        if me["kind"] != "human":
            return Agent(_host(home, None), me)
        chosen = await _enrolled(person, name, why)
    finally:
        person.close()
    host = _host(home, chosen)
    try:
        return Agent(host, await host.whoami())
    except BaseException:
        host.close()
        raise


async def existing(home: str | None, operator: str) -> Agent:
    """An enrolled agent, by name or id."""
    host = _host(home, operator)
    try:
        me = await host.whoami()
        _check(me)
        return Agent(host, me)
    except BaseException:
        host.close()
        raise


async def _enrolled(person: AsyncHost, name: str, why: str) -> str:
    for attempt in (1, 2):
        known = {str(o["name"]): o for o in await person.operators(all=True)}
        if name in known and known[name]["kind"] != "agent":
            name = f"{name[: NAME_MAX - 4]}-mcp"  # a client may have the name of a person or a service
        if name in known:
            _check(known[name])
            if known[name]["kind"] != "agent":
                raise HoldfastError("not_allowed", f"{name} is not an agent", "choose an agent: --name NAME")
            return name
        try:
            made = await person.add_operator(name, "agent", why=why)
            return str(made["name"])
        except HoldfastError as e:
            if attempt == 2 or e.code == "host_gone":
                raise
            await asyncio.sleep(0)  # another server of the same client enrolled it first
    raise AssertionError("unreachable")


def _check(operator: Json) -> None:
    name = operator["name"]
    if operator["revoked_at"] is not None:
        raise HoldfastError("not_allowed", f"{name} was revoked", "use another name: --name NAME")
    if operator["kind"] == "human":
        raise HoldfastError("not_allowed", f"{name} is a person", "choose an agent: --name NAME")
