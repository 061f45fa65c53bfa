"""Loads the Jobs object that MODULE:JOBS names, with one error line for each failure."""

from __future__ import annotations

import importlib
import os
import sys

from ...client.jobs import Jobs
from ...model.errors import HoldfastError, invalid, not_found


def load(wanted: str) -> Jobs:
    """Import the module as Python would in this folder, and find the jobs in it."""
    module_name, _, attribute = wanted.partition(":")
    if not module_name or not attribute:
        raise HoldfastError("usage", f"{wanted[:80]!r} is not MODULE:JOBS", "as hold worker app:jobs")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as e:
        if e.name is not None and (module_name == e.name or module_name.startswith(e.name + ".")):
            raise not_found(
                f"no module {module_name[:80]!r} in this folder or on PYTHONPATH", "run it where the module is"
            ) from None
        raise _broken(module_name, e) from e
    except Exception as e:  # an import may raise anything
        raise _broken(module_name, e) from e
    found: object = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Jobs):
        raise not_found(
            f"{module_name} has no Jobs object {attribute[:80]!r}", f"{attribute.split('.')[0][:80]} = holdfast.Jobs()"
        )
    if not len(found):
        raise invalid(f"{wanted} has no jobs", "register a function: @jobs.job")
    return found


def _broken(module: str, error: BaseException) -> HoldfastError:
    first = (str(error).splitlines() or [""])[0]
    return invalid(
        f"{module} cannot be imported: {type(error).__name__}: {first}"[:300], f"try python -c 'import {module}'"
    )
