"""Read an element where there is only its text: in messages of a loop or a framework outside fdstore.

What fdstore did itself is in `result_facts`. Two histories of others have no room for them: the messages of
a user's own loop, of which old results are cleared (`tools.clear_messages`), and the results that Haystack
hands on as texts (`integrations.haystack`). The gateway offers our tools under names of its own, and changes
them in messages (`integrations.gateway.rewriting`).
"""

from __future__ import annotations

import re

from fdstore.result_facts import NO_FACTS, ErrorSummary, ResultFacts, SearchSummary, ShownPart, StoredContent

_OPENING = re.compile(r"<(fd_[a-z]{1,20}) ([^<>]{0,8000})>")
_ATTRIBUTE = re.compile(r'(?<![a-z_])(fd|type)="([^"&]{1,200})"')


def read_facts(text: str) -> ResultFacts:
    r"""Return the facts of the element that a text begins with, as far as they are needed: which descriptor
    it stored, shows or searches, or the type of its error. Any tool can write the same text.

    >>> read_facts('<fd_result fd="fd:3" pages="2" source="bash">\n...').stored[0].fd
    'fd:3'
    >>> read_facts('<fd_error type="not_found" fd="fd:9">\n...').error.type
    'not_found'
    """
    opening = _OPENING.match(text)
    if opening is None:
        return NO_FACTS
    attributes = dict(_ATTRIBUTE.findall(opening[2]))
    fd = attributes.get("fd", "")
    match opening[1]:
        case "fd_result" if fd:
            return ResultFacts(stored=(StoredContent(fd=fd),))
        case "fd_content" if fd:
            return ResultFacts(shown=(ShownPart(fd=fd),))
        case "fd_search" if fd:
            return ResultFacts(search=SearchSummary(fd=fd))
        case "fd_list":
            return ResultFacts(listed=0)
        case "fd_error":
            return ResultFacts(error=ErrorSummary(type=attributes.get("type", "")))
    return NO_FACTS


def split_message(text: str) -> tuple[str, str, str]:
    r"""Split an element into what precedes its message, the message, which fdstore wrote, and what follows,
    which may be stored text. Without a message all of it follows.

    >>> split_message("<fd_close>\n<message>\nClosed.\n</message>\n</fd_close>")
    ('<fd_close>\n', '<message>\nClosed.\n</message>', '\n</fd_close>')
    """
    head, end, rest = text.partition("</message>")
    before, start, message = head.partition("<message>")
    return (before, start + message + end, rest) if end and start else ("", "", text)
