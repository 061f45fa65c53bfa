"""Finds a kernelspec's command: `python -I find_kernelspec.py SPEC` prints it as JSON. Run, never imported.

A separate process, so that the daemon does not load Jupyter's code. It searches in the host's environment.
"""

from __future__ import annotations

import json
import logging
import re
import sys

_NAMES_SHOWN = 20  # kernels named in the error: one line
_PLACE = re.compile(r"\{([a-z_]+)\}")


def find(name: str) -> dict[str, object]:
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError as e:
        return {"missing": str(e.name or e)}
    manager = KernelSpecManager()
    manager.log.setLevel(logging.CRITICAL)  # the answer holds the error
    try:
        spec = manager.get_kernel_spec(name)
    except NoSuchKernel:
        return {"known": sorted(manager.find_kernel_specs())[:_NAMES_SHOWN]}
    except (OSError, ValueError) as e:
        return {"broken": f"{type(e).__name__}: {e}"[:300]}
    words = [str(word) for word in spec.argv]
    if not words:
        return {"broken": "it has no command"}
    if re.fullmatch(r"python(3(\.\d+)?)?", words[0]):
        words[0] = sys.executable  # like Jupyter: a bare `python` is the one that runs Jupyter
    places = {"prefix": sys.prefix, "resource_dir": spec.resource_dir}
    return {
        "argv": [_PLACE.sub(lambda m: places.get(m[1], m[0]), word) for word in words],
        "env": {str(k): str(v) for k, v in (spec.env or {}).items()},
        "spec": name,
        "display_name": str(spec.display_name),
        "language": str(spec.language),
        "interrupt_mode": str(spec.interrupt_mode or "signal"),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(find(sys.argv[1])))
