"""Words and pure rules about work: effects, tasks, contracts, policies, scopes. Imports `model` alone."""
