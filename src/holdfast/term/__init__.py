"""The terminal: a screen from bytes, keys, queries, and what output may do to a terminal. Pure; imports `model`."""
