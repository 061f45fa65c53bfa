"""What is said beside a piece of work: kept as text, or refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.wire import json_values


@pytest.mark.parametrize("said", [7, 1.5, True, ["a"], {"a": 1}])
def test_a_reason_that_is_no_text_is_refused_and_no_fault_of_ours(said: Any) -> None:
    with pytest.raises(HoldfastError) as refused:
        json_values.said(said, "the reason")
    assert refused.value.code == "invalid"
    assert "the reason is text" in refused.value.message


def test_what_is_said_is_kept_as_every_backend_can_keep_it() -> None:
    assert json_values.said("a\0b\udcff", "the reason") == "a\\0b\\udcff"
    assert json_values.said("", "the reason") is None
