"""Who a connection acts as: an agent operator with a key and a narrow grant of its own, never the person who set it up.

    inside an agent's session ──> that agent, by the host's own word
    else ───────────────────────> the agent NAME, enrolled on first use with the person's key

Whatever is asked here is checked by the host again: a grant on its own sessions, and never approve, delegate or enrol.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ..client._async.host import AsyncHost
from ..client.process import acts_for
from ..model.errors import HoldfastError
from ..model.limits import NAME_MAX

Json = dict[str, Any]

NAME_DEFAULT = "agent"  # of a client that does not say what it is called


def name_from(client: str) -> str:
    """An operator's name from what a client calls itself: `Visual Studio Code` is `visual-studio-code`."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in client.lower())
    name = "-".join(part for part in plain.split("-") if part)[:NAME_MAX]
    return name or NAME_DEFAULT


class Agent:
    """One operator's way to the host: everything its connection does is done, checked and recorded as this operator."""

    def __init__(self, host: AsyncHost, me: Json) -> None:
        self.host, self.id, self.name = host, str(me["id"]), str(me["name"])
        # For who only listens: a host that was sent to rest is not woken by it.
        self.listening = AsyncHost(host.home.path, autostart=False)
        self.listening.operator = host.operator
        self.asked: dict[tuple[str, str], str] = {}  # files that a person is asked about: (run, path) to the item
        self.verifying: dict[str, asyncio.Future[Any]] = {}  # tasks whose verification is under way, by name

    def close(self) -> None:
        for task in self.verifying.values():
            task.cancel()
        self.host.close()
        self.listening.close()


def _host(home: str | None, operator: str | None) -> AsyncHost:
    """With exactly this operator: the environment's choice is the caller's to pass on."""
    host = AsyncHost(home)
    host.operator = operator
    host.ancestor = acts_for()  # what an agent holds is held for the client that started this server
    return host


async def enrol_agent(home: str | None, name: str, *, why: str = "first use over MCP") -> Agent:
    """The agent of this name, enrolled if there is none; inside an agent's session, the session's own operator."""
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
    """An agent that is enrolled already, by name or id."""
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
            name = f"{name[: NAME_MAX - 4]}-mcp"  # a client that is called like a person or a service is neither
        if name in known:
            _check(known[name])
            if known[name]["kind"] != "agent":
                raise HoldfastError("not_allowed", f"{name} is no agent", "an MCP connection acts as one: --name NAME")
            return name
        try:
            made = await person.add_operator(name, "agent", why=why)
            return str(made["name"])
        except HoldfastError as e:
            if attempt == 2 or e.code == "host_gone":
                raise
            await asyncio.sleep(0)  # another server of the same client was quicker: then it is there now
    raise AssertionError("unreachable")


def _check(operator: Json) -> None:
    name = operator["name"]
    if operator["revoked_at"] is not None:
        raise HoldfastError("not_allowed", f"{name} was revoked", "a person enrols it anew under another name: --name")
    if operator["kind"] == "human":
        raise HoldfastError("not_allowed", f"{name} is a person", "an MCP connection acts as an agent: --name NAME")
