"""The script of the demo's model. Each answer depends only on text that was read through fdstore, so a defect
of the store breaks the demo."""

from __future__ import annotations

import re
from collections.abc import Callable

from fdstore.testing import Request, Slow, Turn, call, element, say, slow, turn

PATTERN = r"\b(def|class|import|return|raise|if)\b"
"""Matches a few hundred thousand lines of any Python's standard library."""

COUNTS = ["cut -d/ -f1", "sort", "uniq -c", "sort -rn", "head -n 10"]
"""Pipeline that counts the lines of each directory in the text."""

COUNTED = "def "
"""The text that the second act counts."""

ASKS = 40
ASKED_S = 0.2
"""The time that the model thinks about one of them."""

PROGRAM = f"""\
import asyncio
log = await {{get}}
log = create(log) if isinstance(log, str) else log
size = max(1000, min(350_000, -(-log.total_chars // {ASKS - 1})))
parts = log.split(chars=size)[:{ASKS}]
question = "How often does {COUNTED!r} occur in this text?"
answers = await asyncio.gather(*[ask(question, part) for part in parts])
asked = sum(int(answer) for answer in answers)
counted = sum(part.text().count({COUNTED!r}) for part in parts)
print(f"{{{{len(answers)}}}} asks: {{{{asked}}}}; counted: {{{{counted}}}}")
"""

CUT_LINES = 1200
"""Number of lines that the root passes to the quoter."""


def script_for(file: str | None) -> dict[str, Callable[[Request], Turn | Slow]]:
    """Return the script of each program, by its system prompt."""
    return {
        "You are triage.": lambda request: triage(request, file),
        "You are surveyor.": surveyor,
        "You are quoter.": quoter,
        "You are counter.": lambda request: counter(request, file),
        "You are asked.": asked,
    }


def triage(request: Request, file: str | None) -> Turn:
    """Play the root: load the text, read, cut, count with programs, spawn two, report, save, end."""
    shown = request.last_text()
    match request.turn_number:
        case 0:
            get = call("load_file", path=file) if file else call("search_source", pattern=PATTERN)
            return turn(say("The brief is long and stored; first I get the text it is about."), get)
        case 1:
            text = element(shown, "fd_result")
            middle = max(1, int(text["pages"]) // 2)
            return turn(
                say(f"It has {text['pages']} pages. I look at one in the middle."),
                call("read_fd", fd=text["fd"], start=middle),
            )
        case 2:
            page = element(shown, "fd_content")
            cut = call(
                "read_fd",
                fd=page["fd"],
                mode="line",
                start=int(page["lines"].partition("-")[0]),
                count=CUT_LINES,
                extract_to_new_fd=True,
            )
            return turn(say("This region matters. I cut it out without reading it."), cut)
        case 3:
            counting = call("pipe", commands=COUNTS, in_fd=element(shown, "fd_extraction")["source_fd"])
            return turn(say("Programs count on the whole text, in the background."), counting)
        case 4:
            return turn(call("wait", target=element(shown, "process_result")["process"]))
        case 5:
            return turn(call("read_fd", fd=element(shown, "process_result")["fd"]))
        case 6:
            extraction = element(request.tool_results()[2].text, "fd_extraction")
            source, part = extraction["source_fd"], extraction["new_fd"]
            survey = call(
                "spawn",
                program_name="surveyor",
                query=f"What is {source} made of?",
                additional_preload_fds=[source],
            )
            quote = call(
                "spawn",
                program_name="quoter",
                query=f"Quote what matters in {part}.",
                additional_preload_fds=[part],
            )
            return turn(say("Two agents at the same time, on the same stored text."), survey, quote)
        case 7:
            _, _, _, _, ended, counts, *_ = [result.text for result in request.tool_results()]
            survey_text = element(shown, "process_result").body
            quotes = element(shown, "fd_result")["fd"]
            report = f"Report\n\n{survey_text}\n{counted(ended, counts)}\nThe quotations are in {quotes}.\n"
            return turn(
                say(f'<ref id="report">{report}</ref>'),
                call("fd_to_file", fd="ref:report", file_path="report.txt"),
            )
        case _:
            return turn(say("The report is saved as report.txt."))


def counted(ended: str, counts: str) -> str:
    """Return the report's section about the pipeline: its output, or why there is none."""
    pipeline = element(ended, "process_result")
    if pipeline["state"] != "exited":
        why = pipeline.attributes.get("reason", "no reason is given")
        return f"Nothing was counted, the pipeline {pipeline['state']}: {why}."
    return f"Lines for each directory, most first:\n{element(counts, 'fd_content').body}"


def surveyor(request: Request) -> Turn:
    """Play the surveyor: read three pages of the text shared by the parent, and count."""
    fd = first_id(request)
    if request.turn_number == 0:
        return turn(call("read_fd", fd=fd))
    pages = int(element(request.last_text(), "fd_content")["pages"])
    if request.turn_number == 1:
        return turn(call("read_fd", fd=fd, start=max(1, pages // 2)), call("read_fd", fd=fd, start=pages))
    read = [result.text for result in request.tool_results()]
    lines = sum(text.count("\n") - 2 for text in read)
    definitions = sum(len(re.findall(r"\bdef\b", text)) for text in read)
    return turn(
        say(
            f"I read 3 of {pages} pages, {lines} lines; {definitions} of them define a function. "
            f"The whole text has {element(read[0], 'fd_content')['total_lines']} lines."
        )
    )


def quoter(request: Request) -> Turn:
    """Play the quoter: read several pages in one call, and answer at such length that the answer is stored
    too."""
    fd = first_id(request)
    if request.turn_number == 0:
        return turn(call("read_fd", fd=fd, count=8))
    text = element(request.last_text(), "fd_content").body
    quoted = [f"{number}: {line}" for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return turn(say("\n".join(quoted)))


def counter(request: Request, file: str | None) -> Turn:
    """Play the agent of the second act: write a program, and say what it printed."""
    if request.turn_number == 0:
        get = f"load_file(path={file!r})" if file else f"search_source(pattern={PATTERN!r})"
        return turn(say("I ask about all parts at once."), call("run_python", code=PROGRAM.format(get=get)))
    return turn(say(element(request.last_text(), "python_result").body))


def asked(request: Request) -> Slow:
    """Play the model that is asked about one part."""
    content = request.messages[0]["content"]
    if isinstance(content, str):  # of Chat Completions, whose texts are one, with the question at its end
        text = content.rpartition("\n\n")[0]
    else:
        text = "".join(block["text"] for block in content[:-1])
    return slow(say(str(text.count(COUNTED))), ASKED_S)


def first_id(request: Request) -> str:
    """Return the descriptor that the query names."""
    found = re.search(r"\bfd:\d+", str(request.messages[0]["content"]))
    return found[0] if found else "fd:1"
