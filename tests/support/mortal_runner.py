"""A runner that kills itself before or after one of its calls to the host: `python -m tests.support.mortal_runner K OPTIONS`.

K counts both sides of every call: 2n is before the n-th, 2n+1 after it, when its effect is there and nobody was told.
Or it is the name of an operation: after the first of these.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

from holdfast.client._async.host import AsyncHost
from holdfast.wire import host_requests
from holdfast.worker.runner.runner import runner


def mortal(last: str) -> None:
    plain = AsyncHost.exchange
    passed = 0

    def tick() -> None:
        nonlocal passed
        if last.isdigit() and passed == int(last):
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

    async def exchange(
        self: AsyncHost, message: dict[str, Any], codec: host_requests.Codec = host_requests
    ) -> tuple[Any, int]:
        tick()
        answer = await plain(self, message, codec)
        tick()
        if message["op"] == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    AsyncHost.exchange = exchange  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    mortal(sys.argv[1])
    sys.exit(asyncio.run(runner(json.loads(sys.argv[2]))))
