"""Trees of processes: their limits, what they have used of them, and their end."""
