"""WebSockets: terminals and the live list."""
