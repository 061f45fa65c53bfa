"""What the keeper sees of its program: terminal, blocked calls, queries."""
