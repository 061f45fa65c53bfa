"""The blocking client is what the script makes of the async one."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_blocking_client_is_made_from_the_async_one_as_it_is_now() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_sync.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
