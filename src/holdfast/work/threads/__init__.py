"""Conversation threads of agent libraries. Imports `store` and what is below."""
