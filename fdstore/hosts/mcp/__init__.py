"""An MCP server over the descriptors of a process: `fdstore mcp`.

    toolsets   the processes that callers may use, opened when they are first used
    tool_list  the tools as MCP describes them, and those of other modules for hosts; `calls` runs them
    server     all of it as a `Server` of the SDK, for any transport; `stdio` is one

The package `mcp` comes with the extra `[mcp]`. Importing it takes most of a start, so nothing here is
imported before it is used.
"""
