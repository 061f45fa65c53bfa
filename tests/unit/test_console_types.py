"""The page's types of the API are made from its document, and made again when that changes (`npm run types`)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"


def _declared(text: str) -> dict[str, set[str]]:
    """Each schema in the declarations with the names of its properties."""
    schemas = text[text.index("    schemas: {") : text.index("    responses: never;")]
    found = re.finditer(r"^ {8}(\w+): (?:\{(.*?)^ {8}\}|[^{].*?);$", schemas, re.MULTILINE | re.DOTALL)
    return {m[1]: set(re.findall(r'^ {12}"?(\w+)"?\??:', m[2] or "", re.MULTILINE)) for m in found}


def test_the_document_is_what_the_source_makes_of_it() -> None:
    command = [sys.executable, "-P", "-m", "holdfast.console.http.openapi"]
    env = {**os.environ, "PYTHONPATH": str(WEB.parent / "src")}
    made = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120).stdout
    assert made == (WEB / "openapi.json").read_text(), "run scripts/openapi"


def test_the_declarations_have_every_schema_of_the_document_with_its_properties() -> None:
    document = json.loads((WEB / "openapi.json").read_text())["components"]["schemas"]
    declared = _declared((WEB / "src/lib/api.d.ts").read_text())
    wanted = {name: set(schema.get("properties", {})) for name, schema in document.items()}
    assert declared == wanted


def test_the_declarations_are_what_the_generator_makes_of_the_document() -> None:
    if not (WEB / "node_modules").is_dir():
        pytest.skip("Node's packages are not here")
    command = [sys.executable, str(WEB.parent / "scripts/check_console.py"), "--types"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
