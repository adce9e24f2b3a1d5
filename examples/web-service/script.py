"""The scripted model of this example: it acts on what it was shown."""

import re

from fdstore.testing import Request, Turn, call, element, say, turn


def script(request: Request) -> Turn:
    shown = request.last_text()
    match request.turn_number:
        case 0:
            found = re.search(r"sensor (\d+)", shown)
            return turn(
                say("I fetch the measurements."), call("measurements", sensor=found[1] if found else "1")
            )
        case 1:
            stored = element(shown, "fd_result")
            hot = call("search_fd", fd=stored["fd"], pattern=r" (2[5-9]|[3-9]\d)$")
            return turn(say(f"There are {stored['total_lines']}. I search for more than 24 degrees."), hot)
        case _:
            hits = element(shown, "fd_search")
            return say(f"{hits['matches']} of them is too hot, line {hits.body}.")
