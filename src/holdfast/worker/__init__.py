"""The worker: a process that runs Python jobs, keeps their leases, and takes over from one that died."""
