"""fdstore in coding hosts: an MCP server, a gateway before other servers, hooks."""
