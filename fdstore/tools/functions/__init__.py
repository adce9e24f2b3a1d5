"""Python functions as tools: their parameters, documentation and results."""
