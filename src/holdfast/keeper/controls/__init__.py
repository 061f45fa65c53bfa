"""Who holds the controls, what they typed, and the record of it."""
