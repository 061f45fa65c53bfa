"""The MCP server: agents as operators. A surface like the command line, on top of the SDK; it holds nothing."""
