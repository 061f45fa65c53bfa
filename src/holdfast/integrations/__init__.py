"""Bridges to agent frameworks. Each needs its own extra: holdfast[langgraph], holdfast[openai]."""
