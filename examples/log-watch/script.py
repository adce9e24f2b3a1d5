"""The scripted model of this example: it acts on what it was shown."""

import re

from fdstore.testing import Request, Turn, call, element, say

LINES = 20


def script(request: Request) -> Turn:
    found = re.search(r"a running build, (fd:\d+)", request.system)
    fd = found[1] if found else "fd:1"
    if request.turn_number == 0:
        return call("read_fd", fd=fd, mode="line", start=1, count=LINES, wait_seconds=30)
    part = element(request.last_text(), "fd_content")
    first, last = map(int, part["lines"].split("-"))
    for number, line in enumerate(part.body.splitlines(), first):
        if "error:" in line:
            return say(f"Line {number} of {fd} is the first error: {line}")
    if part.attributes.get("eof") == "true":
        return say("The build has ended without an error.")
    return call("read_fd", fd=fd, mode="line", start=last + 1, count=LINES, wait_seconds=30)
