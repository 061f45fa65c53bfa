"""What changed since a cursor."""
