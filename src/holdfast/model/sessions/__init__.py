"""Types and pure rules of sessions: activity, controls, isolation, holdfast.toml. Imports `model` alone."""
