"""The scripted model of this example: it acts on what it was shown."""

from fdstore.testing import Request, Turn, call, element, say, turn

COUNT = ["grep '\" 500 '", "cut -d ' ' -f 7", "sort", "uniq -c", "sort -rn", "head -n 3"]


def script(request: Request) -> Turn:
    shown = request.last_text()
    match request.turn_number:
        case 0:
            return call("put_fd", file="access.log.gz")
        case 1:
            log = element(shown, "fd_result")
            return turn(
                say(f"The log is {log['fd']}: {log['total_lines']} lines. I count the failures."),
                call("pipe", commands=COUNT, in_fd=log["fd"], tee=[1]),
            )
        case 2:
            return call("wait", target=element(shown, "process_result")["process"])
        case 3:
            ended = element(shown, "process_result")
            if ended["state"] != "exited":
                return say(f"The pipeline {ended['state']}: {ended.attributes.get('reason')}")
            return call("read_fd", fd=ended["fd"])
        case 4:
            worst = element(shown, "fd_content").body.split()[1]
            failures = element(request.tool_results()[2].text, "process_result")["tee_fds"]
            return call("search_fd", fd=failures, pattern=f"GET {worst} ", max_matches=1)
        case _:
            counts = element(request.tool_results()[3].text, "fd_content").body
            found = element(shown, "fd_search")
            return say(f"{counts}\nThe first failure of the worst, by its number among all: {found.body}")
