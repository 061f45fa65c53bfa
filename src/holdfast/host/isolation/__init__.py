"""Isolated sessions: their sandbox, and the socket inside it."""
