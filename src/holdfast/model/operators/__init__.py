"""Operators and what they may do: grants as pure rules. Imports `model` alone."""
