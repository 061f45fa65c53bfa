"""Words and pure rules about sessions: activity, controls, isolation, holdfast.toml. Imports `model` alone."""
