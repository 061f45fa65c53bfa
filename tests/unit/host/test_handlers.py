"""Each operation has one function that carries it out, or the host does not start."""

from __future__ import annotations

import pytest

from holdfast.api.operation import load_all
from holdfast.host.handlers import collected, complete
from holdfast.host.web import ops


def test_the_functions_of_a_room_are_found_by_their_mark() -> None:
    assert "token_add" in collected([(ops, None)])


def test_two_handlers_of_one_operation_are_refused() -> None:
    with pytest.raises(TypeError, match="has two handlers"):
        collected([(ops, None), (ops, None)])


def test_an_operation_without_a_handler_is_refused() -> None:
    complete(load_all())
    with pytest.raises(TypeError, match="no handler for token_add"):
        complete(load_all().keys() - {"token_add"})
