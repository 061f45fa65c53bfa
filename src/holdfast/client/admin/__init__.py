"""Starting, stopping, replacing, saving and restoring a host and its home."""
