"""Contents and their descriptors: create, name, resolve, read, search, export."""
