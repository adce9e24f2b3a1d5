"""The elements that a model sees: they are written and escaped here, and read for histories of others."""
