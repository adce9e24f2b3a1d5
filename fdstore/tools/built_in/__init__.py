"""The tools that fdstore offers to models, one per file, as its `TOOL`; `tools.catalogue` finds them."""
