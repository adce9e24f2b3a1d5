"""Results of tools: which become descriptors, and what the model sees of them."""
