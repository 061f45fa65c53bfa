"""The one writer of a home's work: its store, its operations, the facts behind a verdict."""
