"""Types and pure rules of work: effects, tasks, contracts, policies, scopes. Imports `model` alone."""
