"""Names that could be taken for others."""

from __future__ import annotations

import pytest

from holdfast.model import ids
from holdfast.model.errors import HoldfastError
from holdfast.model.names import check_glob, check_operator_name, confusable, skeleton


@pytest.mark.parametrize("text", ["w\u0435b", "\u0441\u043e\u0441\u043e", "\uff41\uff44\uff41", "\ufb01le", "\u03b1da"])
def test_look_alikes_are_confusable(text: str) -> None:
    assert confusable(text)


@pytest.mark.parametrize("text", ["web", "café", "данные", "日本", "Ελλάδα", "naïve-1"])
def test_honest_words_of_any_language_are_not(text: str) -> None:
    assert not confusable(text)


def test_near_copies_share_a_skeleton() -> None:
    assert skeleton("Bot1") == skeleton("b0tl")
    assert skeleton("modern") == skeleton("modem")
    assert skeleton("bot") != skeleton("bob")


@pytest.mark.parametrize("name", ["", "a b", "a\x00", "a\u202eb", "-a", "op_x", "x" * 65, "é"])
def test_an_operators_name_is_plain_ascii(name: str) -> None:
    with pytest.raises(HoldfastError) as refused:
        check_operator_name(name)
    assert refused.value.code == "not_allowed"
    assert refused.value.message.isascii() or not name.isascii()


def test_good_names_are_themselves() -> None:
    assert check_operator_name("deploy-bot.2") == "deploy-bot.2"
    assert check_glob("web-[ab]*") == "web-[ab]*"


def test_a_sessions_name_of_look_alikes_is_refused() -> None:
    assert ids.check_name("данные") == "данные"
    with pytest.raises(HoldfastError) as refused:
        ids.check_name("w\u0435b")
    assert refused.value.code == "not_allowed"
