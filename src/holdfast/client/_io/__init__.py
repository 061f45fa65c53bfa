"""The two hand-written sides of the SDK: asyncio and blocking sockets, heartbeats."""
