"""A model that reads the first page of a log, searches it, and reads the lines around the match."""

import re

from fdstore.testing import Reply, Request, call, say


def script(request: Request) -> Reply:
    results = [result.text for result in request.tool_results()]
    # Mastra puts the name of the server before the names of its tools
    tools = {name.removeprefix("fdstore_"): name for name in request.tools}
    if not results:
        return call(tools["read_fd"], fd="fd:1")
    if len(results) == 1:
        return call(tools["search_fd"], fd="fd:1", pattern="error:")
    [(line, error)] = re.findall(r"^(\d+):(.* error:.*)$", results[1], re.MULTILINE)
    if len(results) == 2:
        return call(tools["read_fd"], fd=f"fd:1#L{int(line) - 1}-{int(line) + 1}")
    assert error in results[2].splitlines()
    return say(f"The error is in line {line}: {error}")
