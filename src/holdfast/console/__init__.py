"""The HTTP port: a process of its own, a client of the host like any other. Today it serves MCP."""
