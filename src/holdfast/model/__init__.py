"""The words of Holdfast: ids, limits, errors, sessions. Pure: no socket, clock, thread or database."""
