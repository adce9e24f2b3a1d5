"""Programs over descriptors: what code of `run_python` sees, and one call of it."""
