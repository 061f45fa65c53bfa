"""The asyncio SDK: the source that `_sync` is made from."""
