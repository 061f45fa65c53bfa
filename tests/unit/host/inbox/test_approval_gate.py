"""The gate before an agent's commands, with a real inbox behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from holdfast.host.inbox.approval_gate import Gate
from holdfast.host.inbox.items import Inbox
from holdfast.host.journal.ledger import Ledger
from holdfast.model import config_toml
from holdfast.model.errors import HoldfastError
from holdfast.model.patterns import pattern
from tests.support.home import until_async

ADA = {"operator": "op_1", "kind": "human", "name": "ada"}
BOT = {"operator": "op_2", "kind": "agent", "name": "bot"}
RULE = '[[approve]]\npattern = "git push"\nsession = "dep*"\ntimeout = "60s"\n'


class Place:
    """A gate whose configuration can be rewritten."""

    def __init__(self, ledger: Ledger) -> None:
        self.text, self.stopping = RULE, False
        self.inbox = Inbox(ledger, lambda item: None)
        self.gate = Gate(self.inbox, lambda: config_toml.parse(self.text, pattern), lambda: self.stopping)

    async def asked(self) -> dict[str, Any]:
        (item,) = await until_async(self.inbox.open_items)
        return dict(item)


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    ledger = Ledger(str(tmp_path / "host.db"))
    await ledger.open()
    yield Place(ledger)
    ledger.close()


async def test_what_no_rule_covers_goes_on_at_once(place: Place) -> None:
    assert await place.gate.approve("exec", BOT, "web", b"git push") is None
    assert await place.gate.approve("exec", BOT, "deploy", b"git pull") is None
    assert await place.gate.approve("exec", ADA, "deploy", b"git push") is None
    assert place.inbox.open_items() == []


async def test_a_yes_lets_it_go_on_and_a_no_does_not(place: Place) -> None:
    waiting = asyncio.create_task(place.gate.approve("exec", BOT, "deploy", b"git push\x1b[2K"))
    item = await place.asked()
    assert (item["text"], item["detail"]["verb"]) == ("git push⟨U+001B⟩[2K", "exec")
    await place.inbox.end(item["id"], "approve", by=ADA)
    assert (await waiting or {})["answered_by"] == ADA
    waiting = asyncio.create_task(place.gate.approve("exec", BOT, "deploy", b"git push"))
    await place.inbox.end((await place.asked())["id"], "deny", by=ADA)
    with pytest.raises(HoldfastError, match="ada") as e:
        await waiting
    assert e.value.exit_status == 4


async def test_no_answer_in_time_is_a_no(place: Place) -> None:
    place.text = RULE.replace("60s", "0.05s")
    with pytest.raises(HoldfastError, match="in time") as e:
        await place.gate.approve("exec", BOT, "deploy", b"git push")
    assert e.value.exit_status == 4


async def test_an_asker_that_leaves_takes_its_item_along_unless_the_host_itself_goes(place: Place) -> None:
    waiting = asyncio.create_task(place.gate.approve("exec", BOT, "deploy", b"git push"))
    item = await place.asked()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert (await place.inbox.find(item["id"]))["state"] == "gone"
    waiting = asyncio.create_task(place.gate.approve("exec", BOT, "deploy", b"git push"))
    item = await place.asked()
    place.stopping = True
    waiting.cancel()
    await asyncio.wait({waiting})
    assert (await place.inbox.find(item["id"]))["state"] == "open"


async def test_an_asker_that_leaves_while_its_item_is_written_takes_it_along(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, at_disk, left = place.inbox._store, asyncio.Event(), asyncio.Event()

    async def slowly(item: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        at_disk.set()
        await left.wait()
        await write(item, *args, **kwargs)

    monkeypatch.setattr(place.inbox, "_store", slowly)
    waiting = asyncio.create_task(place.gate.approve("exec", BOT, "deploy", b"git push", request="exec:1"))
    await at_disk.wait()
    waiting.cancel()
    left.set()
    await asyncio.wait({waiting})
    assert place.inbox.open_items() == []
    item = await place.inbox.by_request("exec:1")
    assert item is not None
    assert item["state"] == "gone"


async def test_the_same_request_gets_its_answer_and_another_command_does_not(place: Place) -> None:
    waiting = asyncio.create_task(place.gate.approve("exec", BOT, "deploy", b"git push", request="exec:1"))
    await place.inbox.end((await place.asked())["id"], "approve", by=ADA)
    assert await waiting
    with pytest.raises(HoldfastError) as e:
        await place.gate.approve("exec", BOT, "deploy", b"git push --force", request="exec:1")
    assert e.value.code == "conflict"


async def test_a_yes_given_while_no_host_ran_is_found_and_used_once(place: Place) -> None:
    waiting = asyncio.create_task(place.gate.approve("exec", BOT, "deploy", b"git push", request="exec:1"))
    item = await place.asked()
    place.stopping = True
    waiting.cancel()
    await asyncio.wait({waiting})
    await place.inbox.end(item["id"], "approve", by=ADA)
    assert await place.gate.approve("exec", BOT, "deploy", b"git push", request="exec:1")
    with pytest.raises(HoldfastError) as e:
        await place.gate.approve("exec", BOT, "deploy", b"git push", request="exec:1")
    assert e.value.code == "conflict"


async def test_a_broken_configuration_lets_nothing_of_an_agent_through(place: Place) -> None:
    place.text = "[["
    for verb in ("exec", "run", "send"):
        with pytest.raises(HoldfastError) as e:
            await place.gate.approve(verb, BOT, "web", b"true\r")
        assert e.value.code == "not_allowed"
    with pytest.raises(HoldfastError):
        place.gate.check_typing(BOT, "web")
    assert await place.gate.approve("exec", ADA, "web", b"true") is None


async def test_typing_and_renaming_around_a_rule_are_refused(place: Place) -> None:
    with pytest.raises(HoldfastError) as e:
        place.gate.check_typing(BOT, "deploy")
    assert e.value.exit_status == 4
    place.gate.check_typing(BOT, "web")
    place.gate.check_typing(ADA, "deploy")
    with pytest.raises(HoldfastError):
        place.gate.check_rename(BOT, "deploy", "web")
    place.gate.check_rename(BOT, "deploy", "deploy2")
    place.gate.check_rename(ADA, "deploy", "web")


async def test_what_is_too_long_to_be_looked_at_is_refused(place: Place) -> None:
    with pytest.raises(HoldfastError) as e:
        await place.gate.approve("exec", BOT, "deploy", b"git push " + b"x" * 70_000)
    assert e.value.exit_status == 4
