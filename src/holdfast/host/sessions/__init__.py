"""A session's life in the host: start, connect, restart, end."""
