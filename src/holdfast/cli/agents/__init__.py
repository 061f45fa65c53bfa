"""Commands for agents: mcp, connect, hook. Stand on the client and `cli.ui`."""
