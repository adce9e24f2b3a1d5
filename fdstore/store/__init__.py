"""The stored data: keys, Lua scripts, and the operations on them. `fdstore.wire` runs the operations."""
