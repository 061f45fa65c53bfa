"""What each HTTP route does."""
