"""Code in front of MCP servers (`fdstore gateway --code`): a model writes programs that call their tools."""
