"""Steps: the rule that decides whether one may run, and its rows. Imports `store` and what is below."""
