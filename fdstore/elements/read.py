"""What a result of fdstore's own tools refers to: the element that it begins with, in words."""

from __future__ import annotations

import re
from html import unescape

MAX_ATTRIBUTES = 24
MAX_VALUE_CHARS = 200

_OPENING = re.compile(r"<((?:fd_[a-z_]{1,20})|process_result)((?: [a-z_]{1,20}=\"[^\"<>]{0,2000}\")*) ?/?>")
_ATTRIBUTE = re.compile(r' ([a-z_]{1,20})="([^"]*)"')


def read_element(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and the attributes of the element that a result begins with; "" and {} if it is other
    text. A tool can write the same, so this says only what the model was shown.

    >>> read_element('<fd_result fd="fd:3" pages="2" source="a &amp; b">\\n...')
    ('fd_result', {'fd': 'fd:3', 'pages': '2', 'source': 'a & b'})
    """
    found = _OPENING.match(text)
    if found is None:
        return "", {}
    pairs = _ATTRIBUTE.findall(found[2])[:MAX_ATTRIBUTES]
    return found[1], {name: unescape(value)[:MAX_VALUE_CHARS] for name, value in pairs}


def describe_element(name: str, attributes: dict[str, str]) -> str:
    """Return an element in words: which descriptor, and which part of it.

    >>> describe_element("fd_result", {"fd": "fd:3", "pages": "2549", "total_chars": "10200000"})
    'fd:3, stored: 2549 pages, 10,200,000 characters'
    >>> describe_element("fd_content", {"fd": "fd:3", "page": "2", "pages": "2549", "lines": "81-160"})
    'fd:3, page 2 of 2549, lines 81-160'
    >>> describe_element("fd_extraction", {"source_fd": "fd:2", "new_fd": "fd:3", "content_size": "78000"})
    'fd:3, a part of fd:2, 78,000 characters'
    >>> describe_element("fd_diff", {"a": "fd:1", "b": "fd:2", "removed": "1", "added": "2"})
    'fd:1 to fd:2, +2 -1 lines'
    >>> describe_element("process_result", {"process": "triage.1", "state": "exited", "exit_code": "0"})
    'triage.1 exited with code 0'
    """
    get = attributes.get
    fd = get("fd", "")
    match name:
        case "fd_result" if get("kind") == "bytes":
            parts = [f"{fd}, stored: {_count(get('size_bytes'))} bytes of {get('media_type', '?')}"]
        case "fd_result":
            size = f"{_count(get('total_chars'))} characters" if get("total_chars") else ""
            parts = [f"{fd}, stored: {_pages(get('pages'))}", size]
        case "fd_extraction":
            what = "hits of a search in" if get("mode") == "search" else "a part of"
            if get("position") == "all":
                what = "all of"
            size = f"{_count(get('content_size'))} characters"
            parts = [get("new_fd", "?"), f"{what} {get('source_fd', '?')}", size]
        case "fd_file_result":
            done = "appended to" if get("mode") == "append" else "written to"
            parts = [f"{fd} {done} {get('file_path', '?')}", f"{_count(get('size_bytes'))} bytes"]
        case "fd_content":
            page = f"page {get('page')} of {get('pages', '?')}" if get("page") else ""
            parts = [fd, page, f"lines {get('lines')}" if get("lines") else "", get("media_type", "")]
        case "fd_diff":
            parts = [
                f"{get('a', '?')} to {get('b', '?')}",
                f"+{get('added', '?')} -{get('removed', '?')} lines",
            ]
        case "process_result":
            code = f" with code {get('exit_code')}" if get("exit_code") else ""
            parts = [f"{get('process', '?')} {get('state', '')}{code}", get("reason", ""), fd]
        case "fd_error":
            parts = [get("type", ""), fd]
        case _:
            some = ("fd", "pattern", "matches", "total", "file_path")
            parts = [f"{key} {value}" if key != "fd" else value for key in some if (value := get(key))]
    return ", ".join(filter(None, parts))


def message_of(text: str) -> str:
    r"""Return the message in an element, or the text if there is none.

    >>> message_of('<fd_error type="not_found">\n<message>\nNo fd:9 here.\n</message>\n</fd_error>')
    'No fd:9 here.'
    """
    _, begun, rest = text.partition("<message>\n")
    return unescape(rest.partition("\n</message>")[0]) if begun else text


def _count(number: str | None) -> str:
    return f"{int(number):,}" if number and number.isascii() and number.isdecimal() else "?"


def _pages(number: str | None) -> str:
    return "1 page" if number == "1" else f"{number or '?'} pages"
