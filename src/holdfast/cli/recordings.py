"""A session's recording from the host: events with their times, fetched a page at a time."""

from __future__ import annotations

import base64

from ..term.queries import QueryFilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..client.sync import Host
    from ..term.cast import Event


def events(host: Host, session: str, *, lines: bool) -> Iterator[Event]:
    """`o`, `r` and `m` events from the beginning of what is kept up to its present end.

    Terminal queries are left out: whoever plays them would get answers typed. With `lines` (a program on pipes) each
    line end becomes what a terminal makes of it.
    """
    at: int | None = None
    filters, time_s = {"o": QueryFilter(), "e": QueryFilter()}, 0.0
    while True:
        page = host.call("recording", session=session, **{"from": at})
        for time_s, code, value in page["events"]:
            if code in filters:
                data = filters[code].strip(base64.b64decode(value))
                if data:
                    yield time_s, "o", data.replace(b"\n", b"\r\n") if lines else data
            elif code == "r":
                cols, _, rows = value.partition("x")
                yield time_s, "r", (int(cols), int(rows))
            else:
                yield time_s, "m", f"output {value} is gone"
        at = page["next"]
        if at is None:
            break
    for held in (f.flush() for f in filters.values()):  # half an escape sequence at the very end
        if held:
            yield time_s, "o", held
