"""Commands at a session's terminal: attach, screen, send, exec. Stand on the client and `cli.ui`."""
