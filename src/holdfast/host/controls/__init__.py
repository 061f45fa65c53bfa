"""Acting on a session: type, resize, signal, take, release, hand."""
