"""Commands about operators, controls, the inbox and the journal. Stand on the client and `cli.ui`."""
