"""How a keeper and its program start."""
