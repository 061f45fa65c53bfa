"""What a reader needs to go on with the work. Imports `store` and what is below."""
