"""Commands about the host, the home and the machine. Stand on the client and `cli.ui`."""
