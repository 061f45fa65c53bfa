"""WebSockets: terminals and the live session list."""
