"""Files: import, export, and the check of paths."""
