"""Output that means harm: nothing runs, nothing is copied, nothing is typed, nothing hangs."""

from __future__ import annotations

import sys

import psutil
import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from tests.support import browser as chrome
from tests.support import responsive
from tests.support.home import HomeForTests, until

pytestmark = pytest.mark.home("file")

expect.set_options(timeout=chrome.PATIENCE_MS)

_WATCH = """
window.harm = [];
for (const name of ["alert", "confirm", "prompt", "open", "print"]) window[name] = (...a) => window.harm.push([name, ...a]);
if (navigator.clipboard) navigator.clipboard.writeText = async (t) => { window.harm.push(["clipboard", t]); };
document.execCommand = (name) => { window.harm.push(["exec", name]); return false; };
"""
HOSTILE = {
    "clipboard": b"\x1b]52;c;cm0gLXJmIC8K\x07\x1b]52;p;?\x07",
    "titles": b"\x1b]0;<img src=x onerror=harm.push(1)>\x07\x1b]2;pwned\x07\x1b[21t\x1b[22;0t\x1b[23;0t",
    "links": b"\x1b]8;;javascript:harm.push(1)\x07click me\x1b]8;;\x07 \x1b]8;;data:text/html,x\x07and me\x1b]8;;\x07",
    "questions": b"\x1b[c\x1b[>c\x1b[=c\x1b[5n\x1b[6n\x1b[?6n\x1b[18t\x1b]10;?\x07\x1b]4;1;?\x07\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1b[?1$p\x1b[>q\x05\x1bZ",
    "markup": b"<script>harm.push(1)</script><img src=x onerror=harm.push(1)>{@html harm}",
    "bidi": "\u202egnp.exe \u2066\u2067\u200f rtl \u061c".encode(),
    "sizes": b"\x1b[8;0;0t\x1b[4;0;0t\x1b[3;0;0t\x1b[2t\x1b[9;1t",
    "modes": b"\x1b[?1004h\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?9001h",
    "images": b"\x1bPq#0;2;0;0;0#0~~@@vv\x1b\\\x1b]1337;File=inline=1:AAAA\x07\x1b_Gf=24,s=1,v=1;AAAA\x1b\\",
}
_PROGRAM = "import os, sys, time; data = bytes.fromhex(sys.argv[1]); sys.stdin.readline(); os.write(1, data + b'\\r\\nthe end\\r\\n'); time.sleep(600)"


def _watched(page: Page) -> list[str]:
    """What the page sends from now on."""
    sent: list[str] = []
    page.on("websocket", lambda socket: _frames(socket, sent))
    page.add_init_script(_WATCH)
    return sent


def _frames(socket: WebSocket, sent: list[str]) -> None:
    socket.on("framesent", lambda data: sent.append(data if isinstance(data, str) else "binary"))


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_hostile_output_does_nothing(hold: HomeForTests, url: str, desk: Page, kind: str) -> None:
    sent = _watched(desk)
    session = hold.run(sys.executable, "-c", _PROGRAM, HOSTILE[kind].hex(), name="hostile")
    desk.goto(f"{url}/sessions/{session.id}")
    chrome.attached(desk)
    title = desk.title()
    session.send("", enter=True)
    chrome.shows(desk, "the end")
    desk.mouse.move(300, 300)
    desk.mouse.click(240, 200)
    desk.mouse.click(260, 180)
    assert desk.title() == title
    assert desk.evaluate("window.harm") == []
    assert not any('"input"' in frame for frame in sent)
    assert desk.url.endswith(session.id)


_ENDLESS = """
import os, sys
begin, more = bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2]) * 65536
sys.stdin.readline()
os.write(1, begin)
left = 100_000_000
while left > 0:
    left -= os.write(1, more)
sys.stdin.readline()
os.write(1, b"\\x1b\\\\\\x18\\r\\nstill here\\r\\n")
sys.stdin.readline()
"""
ENDLESS = {
    "title": (b"\x1b]0;", b"x"),
    "picture": (b"\x1bPq", b"~"),
    "numbers": (b"\x1b[", b"1"),
    "clipboard": (b"\x1b]52;c;", b"A"),
}
GROWN_MB = 150  # what 100 MB may add to a process that passes them on: windows and buffers, never all of it


@pytest.mark.parametrize("kind", sorted(ENDLESS))
@pytest.mark.home("own")
def test_an_escape_sequence_without_an_end_hangs_nothing(
    hold: HomeForTests, url: str, desk: Page, chromium: Browser, kind: str
) -> None:
    begin, more = ENDLESS[kind]
    session = hold.run(sys.executable, "-c", _ENDLESS, begin.hex(), more.hex(), name="endless")
    desk.add_init_script(responsive.OBSERVE)
    desk.goto(f"{url}/sessions/{session.id}")
    chrome.attached(desk)
    about = hold.host.call("ping")["host"]
    pids = [about["pid"], about["web"]["pid"], hold.host.call("status", session=session.id)["keeper_pid"]]
    before = [psutil.Process(pid).memory_info().rss for pid in pids]
    with responsive.watched(chromium) as watch:
        session.send("", enter=True)
        until(lambda: session.status().output.end > 100_000_000, 120)
        other = desk.context.new_page()  # in the middle of it
        other.goto(f"{url}/sessions/{session.id}")
        chrome.attached(other)
        session.send("", enter=True)
        for page in (desk, other):
            chrome.shows(page, "still here")
        assert watch.longest_ms(desk, 200.0) <= 200.0
    grown = [(responsive.peak_mb(pid) - rss / (1 << 20)) for pid, rss in zip(pids, before, strict=True)]
    assert max(grown) < GROWN_MB, grown
    assert responsive.heap_mb(desk) < 64
    other.close()


def test_a_link_that_was_printed_asks_before_it_opens(hold: HomeForTests, url: str, desk: Page) -> None:
    desk.add_init_script(_WATCH)
    session = hold.run(
        "bash",
        "-c",
        r"printf '\033]8;;https://example.org/where\033\\innocent words\033]8;;\033\\\n'; sleep 600",
        name="links",
    )
    desk.goto(f"{url}/sessions/{session.id}")
    chrome.shows(desk, "innocent words")
    box = desk.locator(".xterm-screen").bounding_box()
    assert box is not None
    dialog = desk.get_by_role("dialog", name="Open this link?")
    desk.mouse.move(box["x"] + 300, box["y"] + 100)
    desk.mouse.move(box["x"] + 30, box["y"] + 7)
    desk.locator(".xterm-cursor-pointer").wait_for()
    desk.mouse.click(box["x"] + 30, box["y"] + 7)
    expect(dialog).to_contain_text("https://example.org/where")
    assert desk.evaluate("window.harm") == []
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)


def test_a_name_cannot_look_like_another(hold: HomeForTests, url: str, desk: Page) -> None:
    session = hold.run("bash", "-c", "read -r -p $'\\u202eexe.tpircs\\u202c now? ' a", name="asks")
    desk.goto(url + "/inbox")
    card = desk.get_by_role("article", name="asks waits for a line")
    expect(card).to_be_visible()
    assert "\u202e" not in card.inner_text()
    assert session.status().state == "live"
