"""The store as a setting: how it is written, compared and shown."""

from __future__ import annotations

import tomllib

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.work import store_setting


@pytest.mark.parametrize(
    ("url", "plain", "password"),
    [
        ("postgresql://me:p%40ss@db/work", "postgresql://me@db/work", "p@ss"),
        ("postgresql://me@db/work?password=p%40ss&sslmode=require", "postgresql://me@db/work?sslmode=require", "p@ss"),
        ("postgresql://me@db/work?sslmode=require", "postgresql://me@db/work?sslmode=require", None),
        ("redis://:secret@cache:6379/2", "redis://cache:6379/2", "secret"),
        ("sqlite:////data/a:b@c.db", "sqlite:////data/a:b@c.db", None),
    ],
)
def test_a_password_is_taken_out_and_put_back(url: str, plain: str, password: str | None) -> None:
    assert store_setting.split(url) == (plain, password)
    assert store_setting.split(store_setting.joined(plain, password)) == (plain, password)
    assert password is None or password not in store_setting.without_password(url)


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# mine\n[notify]\ndesktop = true\n",
        '[store]\nurl = "sqlite:////old.db"  # before\n\n[notify]\ndesktop = true\n',
        '[store]\n[[approve]]\npattern = "x"\n',
        '[notify]\nkinds = ["secret"]\n[ store ] # ours\n  url="sqlite:////old.db"',
    ],
)
def test_the_file_is_written_with_all_else_as_it_was(before: str) -> None:
    for url in ("sqlite:////data/new.db", 'postgresql://me@db/we"ird\\'):
        made = store_setting.written(before, "store", url)
        known = tomllib.loads(before)
        assert tomllib.loads(made) == {**known, "store": {"url": url}}
        gone = tomllib.loads(store_setting.written(made, "store", None))
        assert {k: v for k, v in gone.items() if k != "store"} == {k: v for k, v in known.items() if k != "store"}
        assert not gone.get("store")
    assert "# mine" not in before or "# mine" in made


@pytest.mark.parametrize(
    "before", ['store.url = "sqlite:////a"', 'store = {url = "sqlite:////a"}', "no toml", "[store]\nx = 1\n"]
)
def test_a_form_that_is_not_ours_is_left_to_its_writer(before: str) -> None:
    with pytest.raises(HoldfastError, match="in a form that hold cannot edit"):
        store_setting.written(before, "store", "sqlite:////b.db")


@pytest.mark.parametrize(
    "url", ["", "nonsense", "sqlite:///", "mysql://x/y", "postgresql://", None, 5, "sqlite:////a\0b"]
)
def test_what_is_no_store_is_refused(url: object) -> None:
    with pytest.raises(HoldfastError, match="is not a valid store URL"):
        store_setting.checked(url)


def test_a_variable_is_compared_without_its_password() -> None:
    assert store_setting.mismatch("store", "postgresql://me:new@db/work", "postgresql://me@db/work") is None
    wrong = store_setting.mismatch("store", "postgresql://me:new@other/work", "postgresql://me@db/work")
    assert wrong is not None
    assert (wrong.code, wrong.exit_status, "new" in wrong.line()) == ("store_mismatch", 5, False)
    assert store_setting.mismatch("cache", "redis://a/0", None) is not None
