"""The scripted model of this example: it acts on what it was shown."""

import re

from fdstore.testing import Request, Turn, call, element, say, turn


def script(request: Request) -> Turn:
    shown = request.last_text()
    match request.turn_number:
        case 0:
            return turn(say("I run the tests."), call("run_tests"))
        case 1:
            output = element(shown, "fd_result")
            return turn(
                say(f"The output has {output['total_lines']} lines. I look for failures only."),
                call("search_fd", fd=output["fd"], pattern="^(FAIL|ERROR|AssertionError)", context=8),
                call("read_source"),
            )
        case 2:
            found, source = (result.text for result in request.tool_results()[-2:])
            failed = re.search(r"FAIL: (\w+)", found)
            error = re.search(r"AssertionError: (.*)", found)
            rule = next(line.strip() for line in source.splitlines() if line.lstrip().startswith("return"))
            if not failed or not error:
                return say("I found no failure.")
            report = f"{failed[1]} fails: {error[1]}.\nThe cause is in prices.py: `{rule}`.\n"
            return turn(
                say(f'<ref id="report">{report}</ref>'),
                call("fd_to_file", fd="ref:report", file_path="report.md"),
            )
        case _:
            return say(f"The report is in out/{element(shown, 'fd_file_result')['file_path']}.")
