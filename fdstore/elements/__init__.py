"""The elements that a model sees: they are written, escaped and read here alone."""
