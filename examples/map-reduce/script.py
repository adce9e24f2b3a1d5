"""The scripted model of this example: it acts on what it was shown."""

import re

from fdstore.testing import Reply, Request, call, element, elements, say, slow, turn

SECONDS = 0.2
"""How long the model thinks."""


def root(request: Request) -> Reply:
    match request.turn_number:
        case 0:
            documents = re.findall(r"[\w.]+\.txt", request.last_text())
            spawns = [
                call(
                    "spawn",
                    program_name="summarizer",
                    query=f"Summarize {document}.",
                    additional_preload_files=[document],
                    background=True,
                )
                for document in documents
            ]
            return turn(say(f"{len(spawns)} summarizers, all at once."), *spawns)
        case 1:
            fds = [found["fd"] for found in elements(request.last_text(), "process_result")]
            query = "Join these summaries to one overview."
            return call("spawn", program_name="editor", query=query, additional_preload_fds=fds)
        case _:
            return say(element(request.last_text(), "process_result").body)


def summarizer(request: Request) -> Reply:
    document = re.search(r'<fd_(?:result|content) fd="(fd:\d+)"', request.system)
    fd = document[1] if document else "fd:1"
    if request.turn_number == 0:
        return slow(call("search_fd", fd=fd, pattern=r"^    [a-z]\w*\(", max_matches=10), SECONDS)
    name = re.search(r"^NAME\n +(\S+)(?: - (.*))?$", request.system, re.MULTILINE)
    about = re.search(r"^DESCRIPTION\n +(.*)$", request.system, re.MULTILINE)
    purpose = (name and name[2]) or (about and about[1]) or "no description"
    functions = re.findall(r"^\d+: +(\w+)\(", request.last_text(), re.MULTILINE)
    return slow(
        say(f"{name[1] if name else fd}: {purpose}\n{', '.join(functions) or 'no functions'}"), SECONDS
    )


def editor(request: Request) -> Reply:
    if request.turn_number == 0:
        still_open = re.findall(r'<fd_(?:result|content) fd="(fd:\d+)"', request.system)
    else:
        pages = elements(request.last_text(), "fd_content")
        still_open = [page["fd"] for page in pages if page["eof"] == "false"]
    if still_open:
        return turn(*(call("read_fd", fd=fd, wait_seconds=60) for fd in still_open))
    pages = [element(result.text, "fd_content") for result in request.tool_results()]
    # the text of a summarizer that was lost with its worker says where it starts again
    texts = [page.body.rpartition("starts again]\n\n")[2] for page in pages if page["eof"] == "true"]
    return say("\n".join(sorted(text.splitlines()[0] for text in texts)))


script = {
    "You have an overview": root,
    "Summarize the document": summarizer,
    "You are given summaries": editor,
}
