"""The scripted model of this example: it acts on what it was shown."""

import re

from fdstore.testing import Request, Turn, call, element, say, turn

SUMS = "SELECT customer, month, sum(euros) AS euros FROM content GROUP BY ALL ORDER BY ALL"
BEST = """
SELECT customer, euros FROM (SELECT *, max(euros) OVER (PARTITION BY customer) AS best FROM content)
WHERE month = 12 AND euros = best ORDER BY euros DESC LIMIT 3
"""


def script(request: Request) -> Turn:
    match request.turn_number:
        case 0:
            found = re.search(r"(fd:\d+) is a CSV", request.system)
            orders = found[1] if found else "fd:1"
            return turn(
                say("First the sums of each customer and month."),
                call("sql_fd", fd=orders, query=SUMS),
            )
        case 1:
            sums = element(request.last_text(), "fd_result")
            return turn(
                say(f"They are {int(sums['total_lines']) - 1} rows: I query them in turn."),
                call("sql_fd", fd=sums["fd"], query=" ".join(BEST.split())),
            )
        case _:
            _, *rows = request.last_text().strip().splitlines()
            return say("Answer: " + ", ".join("{} with {} euros".format(*row.split(",")) for row in rows))
