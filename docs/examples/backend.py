"""Your own backend: `hold backend add writer -- python3 docs/examples/backend.py`. Standard library only.

It is started in the project's root. The contract is a file, the instructions are on stdin, and exit code 0 means that
it is finished: the contract's verification decides. This one writes what the contract expects, with the goal in it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> int:
    contract = json.loads(Path(os.environ["HOLDFAST_CONTRACT"]).read_text())
    if "## Earlier attempts" in sys.stdin.read():
        sys.stdout.write("an earlier attempt failed; the instructions say why\n")
    if not contract["artifacts"]:
        sys.stdout.write("the contract expects no file, and this backend can do nothing else\n")
        return 1
    for name in contract["artifacts"]:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{contract['goal']}\n\nWritten in attempt {os.environ['HOLDFAST_ATTEMPT']}.\n")
        sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
