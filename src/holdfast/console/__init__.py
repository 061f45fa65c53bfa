"""The HTTP port: a process of its own, a client of the host like any other. It serves the page, its API, and MCP."""
