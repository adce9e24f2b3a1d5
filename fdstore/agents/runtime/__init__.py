"""Run processes: leases, attempts, and the queue that wakes workers."""
