"""The page of elements: what each is and means, as it is declared, and real ones."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from itertools import groupby

from fdstore.elements.element import attributes_of
from fdstore.elements.kinds import ELEMENTS
from fdstore.elements.render import person_answer, process_result, python_result
from fdstore.model.people import PersonAnswer
from fdstore.model.records import ProcessRecord
from fdstore.text.tokens import estimate_tokens
from fdstore.tools.catalogue import BUILT_IN
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
Below each stands how many tokens it costs beside the texts that it shows, by fdstore's estimate: at most 90
for an `fd_result` after the first of a conversation, 48 for a page, 35 for lines.
"""


ORDER = ("adds", "reads", "destroys")
"""The effects of tools, in the order of their calls: a list shows what others have stored."""


def page() -> str:
    with example() as made:
        samples = make(made)
    return markdown.page("Elements", blocks(samples))


def blocks(samples: Mapping[str, list[str]]) -> Iterator[str]:
    yield markdown.paragraphs(INTRODUCTION)
    for kind in ELEMENTS:
        yield f"## {kind.name}"
        yield markdown.paragraph(inspect.getdoc(kind).partition("\n\n")[0].replace("\n", " "))
        rows = [[f"`{each.name}`", each.description] for each in attributes_of(kind)]
        if rows:
            yield markdown.table(["attribute", "meaning"], rows)
        yield markdown.paragraph(f"Body: {kind.body}")
        if kind.name not in samples:
            raise SystemExit(f"no call shows {kind.name}: name one in `shown` of its tool")
        for sample in samples[kind.name]:
            yield markdown.fence(shortened(sample), "output")
            yield markdown.paragraph(f"Beside its texts: {estimate_tokens(frame(sample))} tokens.")


def shortened(text: str) -> str:
    """Return an element without the middle of long bodies; all its tags stay."""
    kept: list[str] = []
    for is_tag, group in groupby(text.split("\n"), key=lambda line: line.startswith("<")):
        lines = list(group)
        kept += lines if is_tag or len(lines) <= 10 else [*lines[:4], "...", *lines[-3:]]
    return "\n".join(kept)


def frame(text: str) -> str:
    """Return an element without the texts in it: its tags, and the sentence of its message."""
    kept: list[str] = []
    is_said = False
    for line in text.split("\n"):
        is_said = line == "<message>" or (is_said and line != "</message>")
        if line.startswith("<") or is_said:
            kept.append(line)
    return "\n".join(kept)


def make(made: Example) -> dict[str, list[str]]:
    """Make the samples of each element, by calls in one process."""
    tools = made.tools
    rows = "".join(f'{{"id": {number}, "name": "row {number}"}},\n' for number in range(1, 1000))
    results = [
        tools.wrap(LOG, source="build.log"),
        tools.wrap(f"[{rows.rstrip(chr(10)).rstrip(',')}]", source="query"),
        tools.wrap(LOG, source="build.log"),
    ]
    bytes_result = tools.offload(b"\x89PNG\r\n\x1a\n" + bytes(20_000), source="plot.png").content
    assert isinstance(bytes_result, str)
    samples: dict[str, list[str]] = {}
    for tool in sorted(BUILT_IN.values(), key=lambda tool: ORDER.index(tool.effect)):
        for element, calls in tool.shown.items():
            samples[element] = [made.call(tool.name, **arguments).text for arguments in calls]
    samples["fd_result"] = [*results, bytes_result]
    samples["fd_inline"] = [tools.wrap('The page says: <fd_result fd="fd:7"> is yours.')]
    child = ProcessRecord(id="triage.1", state="exited", program="expert", exit_code=0)
    pipeline = ProcessRecord(
        id="triage.2", state="running", program="grep ERROR | sort", kind="pipeline", outputs=("fd:8", "fd:9")
    )
    ended = process_result(child, "Yes, by section 12.")
    samples["python_result"] = [python_result("12 parts\n4711", calls=14, seconds=0.2).text]
    answer = PersonAnswer(by="ann", door="cli", at_ms=1_795_365_840_000, text="the blue one", choice=2)
    denied = PersonAnswer(by="ann", door="cli", at_ms=1_795_365_900_000, approved=False)
    samples["person_answer"] = [
        person_answer(answer, 1, answer.text).text,
        person_answer(denied, 2, "Not on a Friday.").text,
    ]
    samples["process_result"] = [ended.text, process_result(pipeline).text]
    return samples
