"""A QR code in a terminal can be read, with colours and without."""

from __future__ import annotations

import pytest

from holdfast.cli.admin import qr_code
from tests.support import qr as reading

LINK = "http://127.0.0.1:8787/#login=" + "Ab9_-" * 8 + "xyz"


@pytest.mark.parametrize("coloured", [True, False])
@pytest.mark.parametrize("text", [LINK, LINK.replace("127.0.0.1:8787", "hold.example.org/a-longer-name")])
def test_what_is_drawn_is_read_by_another_program(text: str, coloured: bool) -> None:
    drawn = qr_code.lines(text, coloured=coloured)
    assert reading.read(reading.from_terminal("\n".join(drawn), coloured=coloured)) == text
    assert len({len(line) for line in drawn}) == 1
