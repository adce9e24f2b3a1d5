"""Records to render, and a parser of rendered frames."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

from msgspec.structs import replace

from fdstore.model.records import Descriptor, ProcessRecord, Slice

TAG = re.compile(r"<(/?)(fd_\w+|process_result|python_result|person_answer|preview|tail|message)\b[^>]*>")

DESCRIPTOR = Descriptor(
    fd="fd:1",
    state="sealed",
    chars=48000,
    bytes=48000,
    lines=500,
    pages=12,
    page_size=4000,
    source="tool_result",
    created_at=0.0,
    producer="triage",
)
PAGE = Slice(
    text="",
    fd="fd:1",
    mode="page",
    page=2,
    start=2,
    count=1,
    pages=3,
    lines="41-80",
    total_lines=100,
    chars="4001-8000",
    total_chars=9000,
    continued=False,
    truncated=True,
    state="sealed",
    eof=False,
)
PROCESS = ProcessRecord(id="triage.1", state="exited", program="expert", exit_code=0)


def descriptor(fd: str = "fd:1", **changes: object) -> Descriptor:
    return replace(DESCRIPTOR, fd=fd, **changes)


def make_slice(text: str, **changes: object) -> Slice:
    return replace(PAGE, text=text, **changes)


def process(**changes: object) -> ProcessRecord:
    return replace(PROCESS, **changes)


def parse_frame(rendered: str) -> tuple[ElementTree.Element, list[str]]:
    """Return the frame as XML and its bodies, parsed as described to the model.

    A body is the text between the LF after an opening tag and the LF before its closing tag, without another
    frame tag in between. Each body is replaced by its number, and the remainder is parsed.
    """
    tags = list(TAG.finditer(rendered))
    frame, bodies, done = "", [], 0
    for tag, following in pairwise(tags):
        if not tag[1] and following[1]:
            assert tag[2] == following[2]
            between = rendered[tag.end() : following.start()]
            assert len(between) >= 2
            assert between[0] == between[-1] == "\n"
            frame += rendered[done : tag.end()] + str(len(bodies))
            bodies.append(between[1:-1])
            done = following.start()
    return ElementTree.fromstring(frame + rendered[done:]), bodies
