"""Edits the configuration of agent programs without changing other bytes, undoes it exactly, and tests it."""
