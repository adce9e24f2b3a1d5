"""What people see of a run: conversations as entries, and the pages of `fdstore ui`."""
