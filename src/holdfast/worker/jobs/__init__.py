"""The worker for Python jobs. Stands on the client."""
