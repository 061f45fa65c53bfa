"""Bytes to messages and back, pure: the keeper's frames and the host's requests."""
