"""What runs on this machine without being asked for: the embedded Redis and a background worker."""
