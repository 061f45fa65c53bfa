"""Connections to a keeper: handshake, frames, requests."""
