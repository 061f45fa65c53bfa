"""Runs, leases, the log, retention. Imports `store` and what is below."""
