"""`Toolset`: descriptors and tools for any agent loop.

    tools = fdstore.Toolset(proc, enabled=["read_fd", "fd_to_file"], python=[search_code], export_root="out")
    reply = client.messages.create(tools=tools.definitions, system=tools.instructions, ...)
    result = tools.call(block.name, block.input, call_id=block.id)      # .content, .is_error

`fdstore.aio.Toolset` is the asyncio version.
"""
