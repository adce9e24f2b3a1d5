"""Where the links of templates lead: to pages of the inspector, or, in an exported run, to its own anchors.

Templates use `links` for what both show. An empty string means that there is nothing to link to.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from fdstore.inspection.entries import ConversationEntry
from fdstore.web.descriptor_url import descriptor_url


class Links:
    """Links to the pages of the inspector, whose scripts run."""

    has_scripts = True

    def process(self, process: str) -> str:
        return f"/process/{quote(process, safe='')}"

    def descriptor(self, process: str, fd: str) -> str:
        return descriptor_url(process, fd)

    def record(self, process: str, position: int) -> str:
        return f"{self.process(process)}/record/{position}"

    def asks(self, process: str, call: str) -> str:
        """Return the link to the asks of a call."""
        return f"{self.process(process)}/asks?{urlencode({'call': call})}"

    def entry_id(self, process: str, entry: ConversationEntry) -> str:
        """Return the id of the element of an entry."""
        return f"e{entry.position}-{entry.part}"

    def entry(self, process: str, entry: ConversationEntry) -> str:
        return f"{self.process(process)}?from={entry.position}#{self.entry_id(process, entry)}"

    def span(self, process: str, position: int) -> str:
        """Return the link from a bar of the timeline to its step."""
        return f"{self.process(process)}?at={position}-0#pane"


LINKS = Links()
