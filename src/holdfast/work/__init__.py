"""The durable plane: rules as pure functions, transactions written once, and the calls that clients make by name."""
