"""Claims about the machine: rules and rows. Imports `store` and what is below."""
