"""Kernels over MCP: an agent starts one, runs code in it, and gets outputs and errors as data, never as a flood."""

from __future__ import annotations

import base64
from typing import Any

import mcp_types as types
import pytest

from tests.support.agents import ERAS, Refused, Tools, on_stdio
from tests.support.home import HomeForTests

PICTURE = (
    "from IPython.display import display\n"
    "class P:\n"
    "    def _repr_mimebundle_(self, include=None, exclude=None):\n"
    "        return {'image/png': b'\\x89PNG' + bytes(50_000), 'text/plain': '<a picture>'}\n"
    "display(P())"
)


async def code(tools: Tools, source: str, **more: Any) -> Any:
    """Run it, however long the kernel takes to start."""
    done = await tools("exec", session="calc", command=source, **more)
    assert done["state"] == "exited", done
    return done


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_gets_a_cells_outputs_and_error_as_data(hold: HomeForTests, era: str) -> None:
    async with on_stdio(hold, era, "--wait-max", "60s") as tools:
        with pytest.raises(Refused) as refused:
            await tools("run", kernel="python3", command="ls")
        assert refused.value.code == "invalid"
        with pytest.raises(Refused):
            await tools("run", kernel="no-such-kernel")
        await tools("run", name="calc", kernel="python3", why="to reckon")
        done = await code(tools, "print('seen')\nx = 6\nx * 7")
        assert (done["state"], done["exit_code"], done["error"]) == ("exited", 0, None)
        assert done["outputs"][0] == {"output_type": "stream", "name": "stdout", "text": "seen\n"}
        assert done["outputs"][1]["data"] == {"text/plain": "42"}
        assert {"output", "outputs", "error"} <= set(done["untrusted"])
        bad = await code(tools, "def f():\n    return x / 0\nf()")
        assert (bad["exit_code"], bad["error"]["ename"]) == (1, "ZeroDivisionError")
        assert "return x / 0" in bad["error"]["traceback"]
        assert bad["outputs"][-1] == {"output_type": "error", "ename": "ZeroDivisionError"}
        again = await tools("read", session="calc", exec_id=bad["exec_id"])
        assert again["error"] == bad["error"]
        run = (await tools("task", do="start", task="reckon"))["run"]
        for _ in range(2):  # the second time it is not run again, and says the same
            step = await code(tools, "x += 1; x", step=f"{run}:more")
            assert step["outputs"][0]["data"] == {"text/plain": "7"}


async def test_long_outputs_keep_their_ends_and_a_picture_is_an_address(hold: HomeForTests) -> None:
    async with on_stdio(hold, "legacy", "--wait-max", "60s") as tools:
        await tools("run", name="calc", kernel="python3")
        long = await code(tools, "'<' + 'x' * 100_000 + '>'", max_tokens=200)
        text = long["outputs"][0]["data"]["text/plain"]
        assert (text[:2], text[-2:]) == ("'<", ">'")
        assert len(text) < 1000
        assert len(long["output"]) < 1000
        many = await code(tools, "for n in range(300): print(n); display(n)", max_tokens=200)
        assert many["outputs_left_out"] > 200
        assert many["outputs"][-1]["data"]["text/plain"] == "299"
        done = await code(tools, PICTURE)
        (item,) = done["outputs"]
        assert item["data"] == {"text/plain": "<a picture>"}
        (more,) = item["more"]
        assert (more["type"], more["bytes"]) == ("image/png", 50_004)
        (content,) = (await tools.client.read_resource(more["uri"])).contents
        assert isinstance(content, types.BlobResourceContents)
        assert content.mime_type == "image/png"
        assert base64.b64decode(content.blob) == b"\x89PNG" + bytes(50_000)
        with pytest.raises(Exception, match="no such resource"):
            await tools.client.read_resource(more["uri"].replace("image%2Fpng", "image%2Fgif"))
