"""Commands about recorded output: logs, replay, export. Stand on the client and `cli.ui`."""
