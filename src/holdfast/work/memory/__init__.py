"""A run's short-term memory. Imports `store` and what is below."""
