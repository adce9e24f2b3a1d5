"""Pipelines: sandboxed commands over contents."""
