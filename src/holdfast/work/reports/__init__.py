"""What was done in a time span, by whom. Imports `store` and what is below."""
