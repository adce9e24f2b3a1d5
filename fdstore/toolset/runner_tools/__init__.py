"""The tools of a `Toolset` as the tool runner of the anthropic SDK takes them. Importing its modules imports
the SDK."""
