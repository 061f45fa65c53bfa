"""Connecting agents' programs: their configuration changed by the byte, taken back exactly, and proven by a call."""
