"""`fdstore gateway`: stands between an MCP host and any MCP server.

Messages pass with the values that they have, except answers to `tools/call` (oversized texts become
descriptors), answers to `tools/list` (the tools that read descriptors are added), and calls of those tools,
which are answered here. What is not rewritten keeps its bytes.

    options          the options of the command, each declared once
    json_scan        find the parts of a JSON text, whatever its size, depth and dialect
    json_parts       the one reader of messages: replace parts and keep the others as they are
    json_texts       long texts of a message, stored from where they stand
    messages         a message as it came, and what it says
    tool_results     which texts of a tool's result are stored, and the result without them
    tool_list        our tools in the list of the server
    rewriting        what to do with a message: pure decisions, one `Rewriter` for each connection
    descriptors      the store, connected in the background; a store out of reach changes nothing
    acting           carry the decisions out
    lines            read lines, write whole ones
    upstream         a server as a child process
    server_group     several servers as one
    group_routing    which server of a group a message goes to: pure decisions
    group_lists      the lists of all of them as one
    group_names      what the host calls their tools, and whose each is
    group_steps      what such decisions consist of
    own_requests     what a server is asked by the gateway itself, and how each request ends
    paged_list       the end of each list that a server is asked for
    host_connection  a host on standard input and output
    host_programs    with --code: the programs of its model
    relay            between standard input and output and a server
    http_connection  a session of a server by HTTP
    http_upstream    a server by HTTP, as if it were a child process
    http_programs    with --code: the programs of clients by HTTP
    http_relay       between HTTP, on a port of this machine, and a server by HTTP
    sse              events of a text/event-stream
    config_entries   the servers in a host's mcp.json
    server_config    how those of a group are started
    wrap             the gateway before each of them, and away again
    wrap_code        one gateway for all of them, and away again

With `--code` a model's programs call the tools of the server, see the package `code`.
"""
