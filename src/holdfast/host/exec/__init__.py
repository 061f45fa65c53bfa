"""Commands in a session's own shell: what is typed, what marks their output, what is kept of them."""
