"""Where the HTTP port may listen, and by which names it may be called."""

from __future__ import annotations

import pytest

from holdfast.model import web_address
from holdfast.model.errors import HoldfastError


def test_without_a_host_it_is_this_machine_alone() -> None:
    assert web_address.parse("8787") == ("127.0.0.1", 8787)
    assert web_address.parse("localhost:0") == ("127.0.0.1", 0)
    assert web_address.parse("[::1]:80") == ("::1", 80)
    assert web_address.parse("Box.Example:443") == ("box.example", 443)


@pytest.mark.parametrize("text", ["", "x", ":", "0.0.0.0:1", "[::]:1", "*:1", "70000", "-1", "a b:1", "a/b:1", "1:x"])
def test_what_is_no_single_place_is_refused(text: str) -> None:
    with pytest.raises(HoldfastError):
        web_address.parse(text)


def test_names_are_exact() -> None:
    assert web_address.names("127.0.0.1", 8787) == {"127.0.0.1:8787", "localhost:8787"}
    assert web_address.names("::1", 8787) == {"[::1]:8787", "localhost:8787"}
    assert web_address.names("192.168.1.5", 8787) == {"192.168.1.5:8787"}
    assert web_address.names("127.0.0.1", 80) == {"127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"}
    assert web_address.origins("127.0.0.1", 8787) == {"http://127.0.0.1:8787", "http://localhost:8787"}


def test_another_address_is_an_origin_and_nothing_more() -> None:
    assert web_address.public("https://Hold.Example.org/") == "https://hold.example.org"
    assert web_address.public("https://hold.example.org:443") == "https://hold.example.org"
    assert web_address.public("http://box:8080") == "http://box:8080"
    assert web_address.public("http://[fd00::5]:81") == "http://[fd00::5]:81"
    found = web_address.origins("127.0.0.1", 8787, "https://hold.example.org")
    assert found == {"http://127.0.0.1:8787", "http://localhost:8787", "https://hold.example.org"}
    assert "hold.example.org" in web_address.names("127.0.0.1", 8787, "https://hold.example.org")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hold.example",
        "ftp://a",
        "https://",
        "https://a/b",
        "https://a?b",
        "https://a#b",
        "https://u:p@a",
        "https://a:99999",
        "https://a b",
        "https://*",
        "javascript:x",
    ],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(HoldfastError):
        web_address.public(text)


def test_a_token_comes_as_bearer_or_not_at_all() -> None:
    assert web_address.bearer("Bearer hft_abc") == "hft_abc"
    assert web_address.bearer("bearer hft_abc") == "hft_abc"
    for header in ("", "hft_abc", "Basic hft_abc", "Bearer abc", "Bearer", "Bearer hft_" + "x" * 200, "Bearer hft_ü"):
        assert web_address.bearer(header) is None
