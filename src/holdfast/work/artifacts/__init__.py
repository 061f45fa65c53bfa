"""Files that runs produced, kept by their content. Imports `store` and what is below."""
