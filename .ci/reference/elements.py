"""The page of elements: their attributes, read from the source of the renderer, and real ones."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from fdstore.elements import render, render_search
from fdstore.elements.render import process_result, python_result
from fdstore.model.records import ProcessRecord
from reference import markdown
from reference.example_store import LOG, Example, example

INTRODUCTION = """
What a model sees of stored texts, calls and processes. Booleans are `true` and `false`. Attributes are
escaped as XML, control characters in them are shown as `\\u{..}`, and those that say nothing are left out.
A body stands between one line feed after the opening tag and one before the closing tag, exactly as it is
stored; a text that ends in a line feed therefore shows an empty line.

No text can forge an element: where a body has a `<` or `</` before `fd_`, `process_`, `preview`, `tail` or
`message`, that `<` is shown as `&lt;`, and the outermost element ends its attributes with `escaped="true"`.
What is stored stays as it was. A short text with such a `<`, which would need no element, is shown in an
[`fd_inline`](#fd_inline).

The elements below were made by fdstore when this page was generated. `...` stands for lines left out here.
"""


class About(NamedTuple):
    """What an element is, and what its body is."""

    what: str
    body: str


ELEMENTS: Mapping[str, About] = {
    "fd_result": About(
        "A long text that was stored: the result of a tool, an input, the answer of another agent.",
        "`<message>`: what is stored, and how to read on with the tools at hand. `<preview>`: the first "
        "page, or what describes a text of a known kind (`kind` and `of`: JSON, a table, a log, a diff, a "
        "traceback). `<tail lines>`: the end, if there is more than one page. Bytes have the message alone.",
    ),
    "fd_content": About(
        "A part that was read.",
        "The text. For an image or a PDF the element is empty, and the content block of it follows.",
    ),
    "fd_extraction": About("A part that was stored as a new descriptor.", "`<message>`; never the text."),
    "fd_search": About(
        "The result of a search.",
        "Lines as `grep -n` prints them: `120:a match`, `121-context`, `--` between groups. A line of more "
        "than 400 characters is cut around the match, and says so.",
    ),
    "fd_diff": About(
        "What differs between two texts; a long diff is an `fd_result`.",
        "The diff in the unified format, without the line feed at its end, or that the texts are equal.",
    ),
    "fd_list": About(
        "The descriptors of the process.",
        "A line for each: id, state, sizes, `read` (pages read of all, if that is known), source, the "
        "process that made it, the reason if it broke.",
    ),
    "fd_file_result": About("A file that was written.", "`<message>`."),
    "fd_write": About("A text that was stored by the model, or added to a stream.", "`<message>`."),
    "fd_close": About("A descriptor that was closed.", "`<message>`."),
    "process_result": About(
        "A process that another one started: its state, and its answer once it has ended.",
        "The answer if it is short, an `fd_result` if it is long; empty for a pipeline, and while it runs.",
    ),
    "python_result": About(
        "What code of `run_python` did. With an error the result of the call has `is_error`.",
        "What it printed, then the value of its last expression, or the traceback of its own lines and what "
        "to do about it.",
    ),
    "fd_error": About(
        "A call that failed. The result of the call has `is_error`.",
        "`<message>`: what is so, and what to do.",
    ),
    "fd_inline": About(
        "A short text that contains something like an element. Any other short text has no element.",
        "The text.",
    ),
}

ATTRIBUTES: Mapping[str, str] = {
    "a": "the old text, or part of it",
    "added": "lines that `b` has instead of them",
    "b": "the new one",
    "chain": "how the stages of a pipeline ended",
    "char_count": "characters written by this call",
    "chars": "the characters shown, `first-last`",
    "fd_write.chars": "the characters added by this call",
    "content_size": "characters of the new descriptor",
    "continued": "whether it begins in the middle of a line",
    "count": "how many units from `start` on",
    "fd_list.count": "lines of this list",
    "create": "as in the call",
    "eof": "whether nothing follows: the stream is complete, and this reaches its end",
    "exist_ok": "as in the call",
    "exit_code": "of the process",
    "fd_content.exit_code": "of the last command of the pipeline that wrote it",
    "fd": "the descriptor",
    "process_result.fd": "the descriptor of the text that it writes",
    "fd_error.fd": "the descriptor that the call named, if it named one",
    "file_path": "as in the call",
    "in_fd": "the open stream that feeds a pipeline",
    "kind": "`bytes` for what is not text",
    "lines": "the lines shown, `first-last`; `0-0` if there are none",
    "lines_searched": "lines in the range",
    "matches": "lines that match in the whole range",
    "media_type": "of bytes, such as `image/png`",
    "mode": "`write` or `append`",
    "fd_content.mode": "the unit of `start` and `count`: `page`, `line` or `char`",
    "fd_extraction.mode": "the unit of `start` and `count`; `search`: the new descriptor holds hits",
    "more": "the part that is left to search",
    "new_fd": "the new descriptor",
    "next": "`start` of the next call of `list_fds`",
    "page": "the number of the page, if it is a single one; `all` for the whole text",
    "pages": "pages of the whole text",
    "pattern": "as in the call",
    "position": "`all` for a copy of everything",
    "process": "its id",
    "program": "its program, or the commands of a pipeline",
    "reason": "why the stream broke",
    "process_result.reason": "why the process ended as it did",
    "removed": "lines of `a` that `b` does not have",
    "shown": "matches shown",
    "size_bytes": "bytes of the whole content",
    "fd_file_result.size_bytes": "bytes of the file afterwards",
    "source": "where the content comes from",
    "source_fd": "the descriptor that the part was taken from",
    "start": "the first unit",
    "state": "of a stream: `open`, `sealed` or `broken`",
    "python_result.calls": "how often the code read, searched, asked and so on",
    "python_result.seconds": "its own processor time",
    "process_result.state": "`ready`, `running`, `waiting`, `exited`, `failed` or `cancelled`",
    "stderr_fd": "the descriptor of the error output of a pipeline",
    "success": "always true; a failure is an `fd_error`",
    "tee_fds": "the descriptors of the stages whose output is kept",
    "tokens": "about how many tokens the whole text has",
    "total": "descriptors in all",
    "total_chars": "characters of the whole text",
    "total_lines": "lines of the whole text",
    "truncated": "whether it ends before the end of a line",
    "type": "[the type of the error](errors.md)",
}
"""Attribute, or element and attribute -> its meaning."""


def page() -> str:
    with example() as made:
        samples = make(made)
    return markdown.page("Elements", blocks(samples))


def blocks(samples: Mapping[str, list[str]]) -> Iterator[str]:
    yield markdown.paragraphs(INTRODUCTION)
    attributes = attributes_of_elements()
    for name, about in ELEMENTS.items():
        yield f"## {name}"
        yield markdown.paragraph(about.what)
        rows = [[f"`{each}`", meaning(name, each)] for each in attributes.get(name, ())]
        if rows:
            yield markdown.table(["attribute", "meaning"], rows)
        yield markdown.paragraph(f"Body: {about.body}")
        for sample in samples[name]:
            yield markdown.fence(shortened(sample), "output")


def meaning(element: str, attribute: str) -> str:
    return ATTRIBUTES.get(f"{element}.{attribute}") or ATTRIBUTES[attribute]


def attributes_of_elements() -> dict[str, list[str]]:
    """Read from the source of the renderer which attributes each element may have, in order."""
    found: dict[str, list[str]] = {}
    for module in (render, render_search):
        functions = [
            each for each in ast.parse(inspect.getsource(module)).body if isinstance(each, ast.FunctionDef)
        ]
        shared = {each.name: names_in(each) for each in functions if each.name == "_bytes_attributes"}
        for function in functions:
            element = function.name.removesuffix("_of_bytes")
            if element not in ELEMENTS or element == "fd_inline":
                continue
            names = list(names_in(function))
            for each in ast.walk(function):
                names += shared.get(each.id, []) if isinstance(each, ast.Name) else []
            known = found.setdefault(element, [])
            known += [name for name in names if name not in known]
    return found


def names_in(function: ast.FunctionDef) -> list[str]:
    """Return the attributes in the lists of pairs of a function, without those of an element's children."""
    children = [
        each for each in ast.walk(function) if isinstance(each, ast.Call) and calls(each, "preview", "tail")
    ]
    inner = {id(part) for child in children for part in ast.walk(child)}
    lists = [each for each in ast.walk(function) if isinstance(each, ast.List) and id(each) not in inner]
    lists.sort(key=lambda each: each.lineno)
    pairs = [pair for each in lists for pair in each.elts if isinstance(pair, ast.Tuple)]
    return [pair.elts[0].value for pair in pairs if is_name(pair.elts[0])]


def calls(call: ast.Call, *names: str) -> bool:
    """Whether a call builds an element of one of these names."""
    return bool(call.args) and is_name(call.args[0]) and call.args[0].value in names


def is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def shortened(text: str) -> str:
    """Return an element without the middle of long bodies; all its tags stay."""
    kept: list[str] = []
    for is_tag, group in groupby(text.split("\n"), key=lambda line: line.startswith("<")):
        lines = list(group)
        kept += lines if is_tag or len(lines) <= 10 else [*lines[:4], "...", *lines[-3:]]
    return "\n".join(kept)


def make(made: Example) -> dict[str, list[str]]:
    """Make the samples of each element, by calls in one process."""
    tools = made.tools
    rows = "".join(f'{{"id": {number}, "name": "row {number}"}},\n' for number in range(1, 1000))
    results = [
        tools.wrap(LOG, source="build.log"),
        tools.wrap(f"[{rows.rstrip(chr(10)).rstrip(',')}]", source="query"),
    ]
    bytes_result = tools.offload(b"\x89PNG\r\n\x1a\n" + bytes(20_000), source="plot.png").content
    assert isinstance(bytes_result, str)
    calls = {
        "fd_content": [("read_fd", {"fd": "fd:1#L79-81"}), ("read_fd", {"fd": "fd:1", "start": 2})],
        "fd_extraction": [("read_fd", {"fd": "fd:1#P2-3", "extract_to_new_fd": True})],
        "fd_search": [
            ("search_fd", {"fd": "fd:1", "pattern": "FAILED", "context": 1, "max_matches": 3}),
        ],
        "fd_diff": [("diff_fd", {"a": "fd:1#L1-50", "b": "fd:1#L11-60", "context": 0})],
        "fd_file_result": [("fd_to_file", {"fd": "fd:1", "file_path": "log.txt"})],
        "fd_write": [
            ("write_fd", {"data": "1. Read the log.\n"}),
            ("write_fd", {"data": "Dear all,\n", "eof": False}),
        ],
        "fd_list": [("list_fds", {})],
        "fd_close": [("close_fd", {"fd": "fd:2"})],
        "fd_error": [("read_fd", {"fd": "fd:99"})],
    }
    samples = {
        name: [made.call(tool, **arguments).text for tool, arguments in each] for name, each in calls.items()
    }
    samples["fd_result"] = [*results[:2], bytes_result]
    samples["fd_inline"] = [tools.wrap('The page says: <fd_result fd="fd:7"> is yours.')]
    child = ProcessRecord(id="triage.1", state="exited", program="expert", exit_code=0)
    pipeline = ProcessRecord(
        id="triage.2", state="running", program="grep ERROR | sort", kind="pipeline", outputs=("fd:8", "fd:9")
    )
    ended = process_result(child, "Yes, by section 12.")
    samples["python_result"] = [python_result("12 parts\n4711", calls=14, seconds=0.2).text]
    samples["process_result"] = [ended.text, process_result(pipeline).text]
    return samples
