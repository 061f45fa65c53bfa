"""What the kernel says about a session's processes: their state, files, ports and connections."""
