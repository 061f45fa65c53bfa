"""Checkpoints of runs. Imports `store` and what is below."""
