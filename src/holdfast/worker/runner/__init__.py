"""The runner for a project's tasks: attempts, backends, verification. Stands on the client."""
