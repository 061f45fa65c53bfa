"""The dialects of shells: how a command is wrapped and quoted in each."""
