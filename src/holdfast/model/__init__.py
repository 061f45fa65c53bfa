"""The shared vocabulary: ids, limits, errors, sessions, work. Pure: no socket, clock, thread or database."""
