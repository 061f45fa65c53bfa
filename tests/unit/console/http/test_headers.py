"""Cookies, and where they count."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.console import page
from holdfast.console.http import endpoint
from holdfast.console.http import headers as access
from holdfast.console.http.guard import is_open
from holdfast.model.errors import HoldfastError


def test_only_our_own_cookie_is_read_and_only_a_few_of_it() -> None:
    header = b"holdfast-1=a; other=b; holdfast-2=c;holdfast-1=d; holdfast-1=; holdfast-1=" + b"x" * 200
    assert access.cookies({b"cookie": [header]}, 1) == [access.hashed("a"), access.hashed("d")]
    assert len(access.cookies({b"cookie": [b"; ".join([b"holdfast-1=x"] * 100)]}, 1)) == 4
    assert access.cookies({}, 1) == []


@pytest.mark.parametrize(
    ("method", "headers", "socket", "good"),
    [
        ("GET", {}, False, True),
        ("GET", {b"sec-fetch-site": [b"none"]}, False, True),
        ("GET", {b"sec-fetch-site": [b"same-site"]}, False, False),
        ("GET", {b"sec-fetch-site": [b"same-origin", b"same-origin"]}, False, False),
        ("POST", {}, False, False),
        ("DELETE", {b"sec-fetch-site": [b"none"]}, False, False),
        ("POST", {b"origin": [b"http://ours"]}, False, True),
        ("POST", {b"sec-fetch-site": [b"same-origin"]}, False, True),
        ("POST", {b"origin": [b"http://ours"], b"sec-fetch-site": [b"cross-site"]}, False, False),
        ("GET", {}, True, False),
        ("GET", {b"sec-fetch-site": [b"same-origin"]}, True, False),
        ("GET", {b"origin": [b"http://ours"]}, True, True),
    ],
)
def test_a_cookie_counts_where_our_own_page_asks(
    method: str, headers: access.Headers, socket: bool, good: bool
) -> None:
    assert (access.cookie_refused(method, headers, socket=socket) is None) is good


def test_everything_but_the_page_is_closed() -> None:
    for path in ("/", "/index.html", "/sessions/x", "/healthz", "/api/login", "/apix", "/mcpx"):
        assert is_open(path, "GET"), path
    for path in ("/api", "/api/", "/api/me", "/mcp", "/mcp/", "/api/login/", "/api/healthz"):
        assert not is_open(path, "GET"), path


def test_a_file_is_found_by_its_own_name_and_nothing_outside_is(tmp_path: Path) -> None:
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "assets" / "a.js").write_text("1")
    (folder / ".hidden").write_text("2")
    (tmp_path / "outside").write_text("3")
    (folder / "link").symlink_to(tmp_path / "outside")
    assert page.find(str(folder), "/assets/a.js") == str((folder / "assets" / "a.js").resolve())
    for path in (
        "/../outside",
        "/assets/../../outside",
        "/.hidden",
        "/link",
        "/assets",
        "/",
        "//etc/passwd",
        "/a\\b",
        "/assets/a.js\0",
        "/assets//a.js",
        "/" + "x" * 5000,
    ):
        assert page.find(str(folder), path) is None, path


def test_a_query_is_what_the_table_says_or_refused() -> None:
    from holdfast.console.handlers.sessions import All

    assert endpoint.parse_query(All, [("all", "1")]).all is True
    assert endpoint.parse_query(All, []).all is False
    assert endpoint.parse_query(All, [("all", "")]).all is False
    for wrong in ([("all", "x")], [("more", "1")], [("all", "1"), ("all", "1")]):
        with pytest.raises(HoldfastError):
            endpoint.parse_query(All, wrong)
