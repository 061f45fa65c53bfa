"""The MCP server, through which agents act as operators. Stands on the client; keeps no state."""
