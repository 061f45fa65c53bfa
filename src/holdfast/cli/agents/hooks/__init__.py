"""Hooks of agents' own programs: what they tell, what people are asked, what they are answered."""
