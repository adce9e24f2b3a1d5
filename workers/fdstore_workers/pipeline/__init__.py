"""Pipelines: sandboxed commands that read one content and write others."""
