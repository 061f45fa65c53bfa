"""Translates hook events of agent programs into inbox items, and answers into hook output."""
