"""What waits for a person: items, answers, approvals, prompts, notifications."""
