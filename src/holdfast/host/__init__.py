"""The host daemon: finds and starts keepers, observes, arbitrates, serves every client."""
