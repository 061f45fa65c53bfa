"""Commands about projects, tasks, runs, steps and checkpoints. Stand on the client and `cli.ui`."""
