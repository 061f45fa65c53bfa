"""Processes that do work: the worker for Python jobs, and the runner for tasks. Stand on the client."""
