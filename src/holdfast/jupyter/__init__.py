"""The program of a kernel session: it starts a Jupyter kernel, runs cells in it and records what they put out."""
