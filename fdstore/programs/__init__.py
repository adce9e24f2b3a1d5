"""Programs over descriptors: what code of `run_python` sees, and the course of one call of it."""
