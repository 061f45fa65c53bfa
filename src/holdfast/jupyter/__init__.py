"""The kernel runner, a kernel session's main program: starts a Jupyter kernel, runs cells and records their outputs."""
