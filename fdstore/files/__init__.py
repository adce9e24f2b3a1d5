"""Files: what is read into the store, what is written out of it, and which paths are allowed."""
