"""What is typed, as it comes in a request: base64."""

from __future__ import annotations

import base64

from ..model.errors import invalid


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise invalid("what is to be typed is not base64", "use the SDK, or the command line") from None
