"""Commands about sessions: run, ls, status, wait, stop. Stand on the client and `cli.ui`."""
