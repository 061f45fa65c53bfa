"""One POST of JSON to where the configuration says."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from urllib.parse import urlsplit


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A webhook is where the configuration says, not where the answer says."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


def post_json(url: str, told: dict[str, str], timeout_s: float) -> None:
    body = json.dumps(told).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "holdfast"}
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            answer.read(1024)
    except urllib.error.HTTPError as e:
        e.close()
        raise OSError(f"{urlsplit(url).hostname} answered {e.code}") from None  # the address may hold a token
