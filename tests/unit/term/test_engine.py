"""The engine is loaded late, lean, and with a clear word where it is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.term import ghostty

pytestmark = pytest.mark.process


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_neither_the_wrapper_package_nor_cffi_is_imported() -> None:
    code = """
import sys
from holdfast.term.screen import Screen
with Screen(80, 24) as screen:
    screen.feed(b"hello")
print("pyghostty" in sys.modules, "cffi" in sys.modules, screen is not None)
"""
    assert _python(code) == "False False True"


def test_importing_the_screen_does_not_load_the_library() -> None:
    code = """
import holdfast.term.screen
print("libghostty" in open("/proc/self/maps").read())
"""
    assert _python(code) == "False"


@pytest.mark.parametrize("module", ["queries", "key_names", "plain_text", "reset"])
def test_the_light_modules_need_no_ctypes(module: str) -> None:
    assert _python(f"import sys, holdfast.term.{module}; print('ctypes' in sys.modules)") == "False"


def test_a_missing_engine_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ghostty, "PACKAGE", "no_such_package_at_all")
    with pytest.raises(ghostty.TerminalEngineMissing, match="pip install no_such_package_at_all") as caught:
        ghostty.find_library()
    assert "\n" not in str(caught.value)


def test_screens_that_are_forgotten_give_their_memory_back() -> None:
    code = """
import gc
from holdfast.term.screen import Screen
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * 4
for _ in range(20):
    Screen(80, 24).feed(b"x\\r\\n" * 5000)
gc.collect()
before = rss()
for _ in range(100):
    Screen(80, 24).feed(b"x\\r\\n" * 5000)
gc.collect()
print(rss() - before < 20000)  # a hundred screens with history would be over 100 MB
"""
    assert _python(code) == "True"
