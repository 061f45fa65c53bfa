"""The web process: serves the console page, its API and MCP over HTTP, as an ordinary client of the host."""
