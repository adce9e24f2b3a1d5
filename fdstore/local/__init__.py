"""Processes that fdstore starts on this machine: the embedded Redis and the background worker."""
