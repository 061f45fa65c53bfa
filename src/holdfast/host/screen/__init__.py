"""Emulators: what a session's terminal shows."""
