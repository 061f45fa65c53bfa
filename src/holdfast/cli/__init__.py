"""The command line: `hold COMMAND`. Each command is a module, loaded only when it is used."""
