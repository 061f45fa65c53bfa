"""How a session ends: stopping the tree, the last record."""
