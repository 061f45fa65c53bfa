"""Descriptors to a keeper, or to the log on disk."""
