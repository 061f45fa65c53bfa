"""Projects, tasks, attempts and policies in the store. Imports `store` and what is below."""
