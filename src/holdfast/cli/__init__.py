"""The command line: `hold COMMAND`. Each command is a module here, loaded only when it is used."""
