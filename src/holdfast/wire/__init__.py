"""Bytes to messages and back, pure: the keeper's frames, the host's requests, and in `sealed` the relay's channel.

Imports `model` alone.
"""
