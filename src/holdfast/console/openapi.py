"""The API's document (OpenAPI 3.1), made from the table of routes and the types in it."""

from __future__ import annotations

from typing import Any

from . import login, sessions
from .table import Route

Json = dict[str, Any]

TABLE: list[Route] = [*login.ROUTES, *sessions.ROUTES]
