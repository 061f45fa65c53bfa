"""More of the conformance suite of durable work: work by hand, the log, artifacts, and input that cannot be kept."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from datetime import datetime

from ..model.limits import PIECE_BYTES, VALUE_BYTES_MAX
from ..store.base import Query, Transaction
from ..work.service import Work
from .store import refused
from .workers import interrupted, working


async def sound(work: Work) -> None:
    """Every name has its content, whole; and nothing is kept without a name."""
    await work.artifact_gc(older_s=0)
    assert await work.artifact_orphans() == []
    for artifact in await work.artifact_ls():
        hashed, n = hashlib.sha256(), 0
        while (piece := (await work.artifact_read(sha256=artifact["sha256"], piece=n))["data"]) is not None:
            hashed.update(base64.b64decode(piece))
            n += 1
        assert hashed.hexdigest() == artifact["sha256"], artifact["name"]


def _ran_out(run: str) -> Transaction[None]:
    """As if the lease had lasted its time."""
    yield Query("UPDATE attempt SET lease_until = {now} - 1 WHERE id = (SELECT attempt FROM run WHERE id = ?)", (run,))


class ByHandSuite:
    """Every backend passes all of it."""

    # -- by hand: people and agents between two commands -----------------------------------------------------------

    async def test_work_by_hand_needs_no_epoch_and_leaves_the_lease_free_between_steps(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(task="t"))["run"]
            assert (await work.step_begin(run=run, key="a"))["decision"] == "execute"
            assert (await work.run_status(run=run))["worker"] == "hand:op_test"
            with refused("fenced"):
                await work.step_begin(run=run, key="b", by="op_other")
            await work.step_end(run=run, key="a", result=1)
            assert not (await work.run_status(run=run))["leased"]
            assert (await work.step_begin(run=run, key="b", by="op_other"))["decision"] == "execute"
            await work.step_fail(run=run, key="b", by="op_other", error="no")
            assert (await work.step_begin(run=run, key="a"))["decision"] == "reuse"
            assert (await work.begin_run(task="t", worker="w1"))["run"] == run

    async def test_a_step_begun_twice_by_hand_is_in_doubt_and_can_be_settled_at_once(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run())["run"]
            await work.step_begin(run=run, key="a")
            assert (await work.step_begin(run=run, key="a"))["decision"] == "in_doubt"
            await work.step_settle(run=run, key="a", outcome="not_done", evidence="looked")
            assert (await work.step_begin(run=run, key="a"))["decision"] == "execute"

    async def test_a_hand_goes_on_after_its_lease_unless_another_came_meanwhile(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run())["run"]
            await work.step_begin(run=run, key="a")
            await work.store.write(lambda: _ran_out(run))
            assert (await work.step_begin(run=run, key="b"))["decision"] == "execute"
            await work.step_end(run=run, key="a", result=1)  # it took its time, and nobody else needed the run
            await work.store.write(lambda: _ran_out(run))
            assert (await work.step_begin(run=run, key="c", by="op_other"))["decision"] == "execute"
            assert [s["key"] for s in await work.step_ls(run=run, state="in_doubt")] == ["b"]
            with refused("fenced"):
                await work.step_end(run=run, key="b", result=2)
            await work.step_end(run=run, key="c", by="op_other")
            with refused("in_doubt"):
                await work.step_end(run=run, key="b", result=2)

    async def test_a_silent_hand_keeps_nobody_out_for_longer_than_a_few_minutes(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run())["run"]
            await work.step_begin(run=run, key="a")
            held = await work.run_status(run=run)
            until, now = (datetime.fromisoformat(held[k]).timestamp() for k in ("lease_until", "observed_at"))
            assert 0 < until - now <= 600

    async def test_a_worker_takes_over_from_a_hand_and_the_hand_is_fenced(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run())["run"]
            await work.step_begin(run=run, key="a")
            taken = await work.begin_run(run=run, worker="w1")
            assert taken["in_doubt"] == ["a"]
            with refused("fenced"):
                await work.step_end(run=run, key="a")
            await work.step_settle(run=run, key="a", outcome="done", result=5, evidence="looked")
            assert (await work.step_begin(run=run, key="a", epoch=taken["epoch"]))["result"] == 5

    async def test_begun_by_one_settled_by_another_finished_by_a_third(self, store_url: str) -> None:
        async with working(store_url) as first, working(store_url) as second, working(store_url) as third:
            taken = await interrupted(first, "unsafe", key="pay")
            await second.step_settle(
                run=taken["run"], key="pay", outcome="done", result="ok", evidence="receipt", by="op_anna"
            )
            assert (await third.step_begin(run=taken["run"], key="pay", epoch=taken["epoch"]))["result"] == "ok"
            await third.run_end(run=taken["run"], epoch=taken["epoch"])

    # -- the log ---------------------------------------------------------------------------------------------------

    async def test_the_log_is_numbered_without_holes_and_a_repeated_request_is_one_entry(self, store_url: str) -> None:
        async with working(store_url) as work, working(store_url) as other:
            run = (await work.begin_run())["run"]
            calls = [w.log_append(run=run, kind="decision", body={"n": i}) for i in range(20) for w in (work, other)]
            seqs = [a["seq"] for a in await asyncio.gather(*calls)]
            assert sorted(seqs) == list(range(2, 42))
            one = await work.log_append(run=run, body="x", request="req_1")
            assert await other.log_append(run=run, body="x", request="req_1") == one
            tail = await work.log_read(run=run, after=39)
            assert [e["seq"] for e in tail] == [40, 41, 42]
            assert [e["seq"] for e in await work.log_read(run=run, after=1, upto=9, limit=3)] == [2, 3, 4]
            assert (tail[-1]["body"], tail[-1]["by"], tail[-1]["kind"]) == ("x", "op_test", "note")

    # -- artifacts -------------------------------------------------------------------------------------------------

    async def test_an_artifact_has_its_content_its_maker_and_its_sources(self, store_url: str) -> None:
        content = bytes(range(256)) * 5000  # two pieces
        async with working(store_url) as work:
            run = (await work.begin_run())["run"]
            put = await work.artifact_put(
                run=run, name="out.bin", data=base64.b64encode(content).decode(), sources=["in.bin"], media="x/y"
            )
            assert put["sha256"] == hashlib.sha256(content).hexdigest()
            assert put["size"] == len(content)
            found = await work.artifact_find(run=run, name="out.bin")
            assert (found["made_by"], found["sources"], found["media"]) == ("op_test", ["in.bin"], "x/y")
            await work.artifact_put(run=run, name="empty", data="")
            assert [a["name"] for a in await work.artifact_ls(run=run)] == ["out.bin", "empty"]
            with refused("not_found"):
                await work.artifact_find(run=run, name="other")
            await sound(work)

    async def test_a_large_artifact_comes_in_pieces_and_is_checked_before_it_has_a_name(self, store_url: str) -> None:
        content = b"a" * PIECE_BYTES + b"b" * 10
        sha256 = hashlib.sha256(content).hexdigest()
        first, second = (base64.b64encode(c).decode() for c in (content[:PIECE_BYTES], content[PIECE_BYTES:]))
        async with working(store_url) as work:
            run = (await work.begin_run())["run"]
            with refused("not_found"):
                await work.artifact_put(run=run, name="big", sha256=sha256)
            await work.artifact_piece(sha256=sha256, piece=0, data=first)
            assert [o["kind"] for o in await work.artifact_orphans()] == ["upload"]
            with refused("conflict"):
                await work.artifact_put(run=run, name="big", sha256=sha256)
            await work.artifact_gc()  # too young to be collected
            await work.artifact_piece(sha256=sha256, piece=1, data=second)
            await work.artifact_put(run=run, name="big", sha256=sha256)
            await sound(work)
            assert [a["size"] for a in await work.artifact_ls()] == [len(content)]

    async def test_content_goes_with_its_last_name_and_not_before(self, store_url: str) -> None:
        def contents() -> Transaction[list[tuple[int, int]]]:
            rows = yield Query("SELECT (SELECT COUNT(*) FROM blob), (SELECT COUNT(*) FROM piece)")
            return [(int(a), int(b)) for a, b in rows]

        async with working(store_url) as work:
            run = (await work.begin_run())["run"]
            await work.artifact_put(run=run, name="a", data="eA==")
            await work.artifact_put(run=run, name="b", data="eA==")
            assert await work.store.read(contents) == [(1, 1)]
            await work.artifact_put(run=run, name="a", data="eQ==")  # replaced: b still names the first
            assert await work.store.read(contents) == [(2, 2)]
            await work.artifact_put(run=run, name="b", data="eQ==")
            assert await work.store.read(contents) == [(1, 1)]
            assert await work.artifact_rm(run=run, name="a") == {"removed": True}
            assert await work.artifact_rm(run=run, name="a") == {"removed": False}
            await work.artifact_rm(run=run, name="b")
            assert await work.store.read(contents) == [(0, 0)]

    async def test_a_collection_beside_writers_takes_nothing_that_gets_a_name(self, store_url: str) -> None:
        async with working(store_url) as work, working(store_url) as other:
            runs = [(await work.begin_run())["run"] for _ in range(4)]
            data = [base64.b64encode(bytes([n])).decode() for n in range(3)]

            async def write(run: str) -> None:
                for n in range(12):
                    await work.artifact_put(run=run, name=f"n{n % 2}", data=data[n % 3])

            async def collect() -> None:
                for _ in range(12):
                    await other.artifact_gc(older_s=0)

            await asyncio.gather(*(write(run) for run in runs), collect(), collect())
            assert len(await work.artifact_ls()) == 8
            await sound(work)

    async def test_the_same_content_from_many_at_once_is_kept_once_and_whole(self, store_url: str) -> None:
        parts = [b"a" * 600, b"b" * 400]
        other = [parts[0] + parts[1][:1], parts[1][1:]]  # the same content, cut elsewhere
        sha256, data = hashlib.sha256(b"".join(parts)).hexdigest(), base64.b64encode(b"".join(parts)).decode()
        async with working(store_url) as work, working(store_url) as second:
            runs = [(await work.begin_run())["run"] for _ in range(4)]

            async def send(which: Work, pieces: list[bytes]) -> None:
                for n, piece in enumerate(pieces):
                    await which.artifact_piece(sha256=sha256, piece=n, data=base64.b64encode(piece).decode())

            for _ in range(5):
                both = zip(runs, (work, second) * 2, strict=True)
                puts = [which.artifact_put(run=run, name="x", data=data) for run, which in both]
                await asyncio.gather(*puts, send(work, parts), send(second, other))
                assert len(await work.artifact_ls()) == 4
                await sound(second)
                await asyncio.gather(*(second.artifact_rm(run=run, name="x") for run in runs))
                await sound(work)

    # -- what cannot be kept ---------------------------------------------------------------------------------------

    async def test_input_that_cannot_be_kept_is_one_line_and_changes_nothing(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1")
            run, epoch = made["run"], made["epoch"]
            await work.step_begin(run=run, key="k", epoch=epoch)
            huge = "x" * (VALUE_BYTES_MAX + 1)
            bad = [
                work.log_append(run=run, body=huge),
                work.log_append(run=run, body="\udcff"),
                work.log_append(run=run, body=object()),
                work.log_append(run=run, body="x", kind="poem"),
                work.step_end(run=run, key="k", epoch=epoch, result=huge),
                *(work.step_begin(run=run, key=key, epoch=epoch) for key in ("", "a\0b", "\udcff", "k" * 10_000)),
                work.step_begin(run=run, key="x", epoch=epoch, effect="some"),
                work.begin_run(items=["a", "a"]),
                work.begin_run(worker="w", ttl_s=0),
                work.begin_run(worker="w" * 999),
                work.artifact_put(run=run, name="a"),
                work.artifact_put(run=run, name="a", data="no base64!"),
                work.artifact_put(run=run, name="a", sha256="zz"),
                work.run_end(run=run, epoch=epoch, state="odd"),
                work.call("step_begin", run=run, key="k", colour="red"),
                work.call("log_append", run=run),
            ]
            for call in bad:
                with refused("invalid"):
                    await call
            with refused("usage"):
                await work.call("drop_everything")
            for unknown in ("run_0000000000000000", "run_uu", "nonsense"):  # no id has a u
                with refused("not_found"):
                    await work.run_status(run=unknown)
            assert (await work.run_status(run=run[:12]))["run"] == run
            status = await work.run_status(run=run)
            assert (status["log_end"], status["steps"]["open"]) == (2, 1)
            zero = await work.log_append(run=run, body="a\0b ü")
            assert (await work.log_read(run=run, after=zero["seq"] - 1))[0]["body"] == "a\0b ü"
