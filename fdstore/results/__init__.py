"""How the result of a tool becomes a descriptor, and what the model sees of it."""
