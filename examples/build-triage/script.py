"""The scripted model of this example: it acts on what it was shown."""

import re

from fdstore.testing import Request, Turn, call, element, say, turn

BEFORE = 500


def triage(request: Request) -> Turn:
    match request.turn_number:
        case 0:
            log = element(request.system, "fd_result")
            search = call("search_fd", fd=log["fd"], pattern="fatal error|undefined reference")
            return turn(say(f"The log has {log['total_lines']} lines. I search for failures."), search)
        case 1:
            found = element(request.last_text(), "fd_search")
            lines = [int(line.partition(":")[0]) for line in found.body.splitlines()]
            readers = [spawn_reader(found["fd"], max(1, line - BEFORE), line) for line in lines]
            return turn(say(f"{len(readers)} failures. A reader studies each."), *readers)
        case _:
            reports = [element(result.text, "process_result").body for result in request.tool_results()[1:]]
            cause = next((report for report in reports if "command not found" in report), reports[0])
            return say(f'There are {len(reports)} failures of one cause.\n<ref id="cause">\n{cause}\n</ref>')


def spawn_reader(fd: str, first: int, last: int) -> Turn:
    query = f"What went wrong in lines {first}-{last} of the log?"
    return call("spawn", program_name="reader", query=query, additional_preload_fds=[f"{fd}#L{first}-{last}"])


def reader(request: Request) -> Turn:
    if request.turn_number == 0:
        part = element(request.system, "fd_result")
        return call("search_fd", fd=part["fd"], pattern="not found|error|undefined reference")
    first = re.search(r"lines (\d+)-", str(request.messages[0]["content"]))
    offset = int(first[1]) - 1 if first else 0
    hits = [line.split(":", 1) for line in element(request.last_text(), "fd_search").body.splitlines()]
    proof = "\n".join(f"{int(number) + offset}: {text}" for number, text in hits)
    return say(f"The first thing that went wrong is in line {int(hits[0][0]) + offset}:\n{proof}")


script = {"You find out why": triage, "You study a part": reader}
