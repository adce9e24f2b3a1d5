"""The names and anchors of an exported run: its links lead to its own elements, or nowhere.

    p-triage.1          a process            d-triage.1-3    its descriptor fd:3
    e-triage.1-12       its record 12        e-triage.1-12-1 another entry of that record

If a pattern to redact matches the name of any process, all are called "[redacted]", followed by the numbers
that fdstore gives: `[redacted].1`; the anchors are then `p-run.1`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.web.links import Links
from fdstore.inspector.web.timeline import TimelineRow
from fdstore.model.records import ProcessRecord
from fdstore.text.redaction import MARK, Redactor


class RunLinks(Links):
    """The links of the page of one run. Templates name processes as they are shown."""

    has_scripts = False

    def __init__(self, tree: str, processes: Sequence[ProcessRecord], redactor: Redactor) -> None:
        self._tree = tree
        self._is_hidden = any(redactor.matches(each.id) for each in processes) or redactor.matches(tree)
        self._key = "run" if self._is_hidden else tree
        self._known = {self.name(each.id) for each in processes}
        self._lanes = {
            (each.parent, each.call): f"p-{self._anchor(self.name(each.id))}"
            for each in processes
            if each.kind == "asks"
        }
        self._held: tuple[str, dict[str, str]] = ("", {})

    def name(self, process: str) -> str:
        """Return how a process of the tree is shown."""
        if not self._is_hidden:
            return process
        root, dot, path = process.partition(".")
        return f"{MARK}{dot}{path}" if root == self._tree else MARK

    def hold(self, process: str, fds: Sequence[str]) -> None:
        """Say which descriptors the process has whose entries are shown next, by their shown names."""
        anchors: dict[str, str] = {}
        for number, fd in enumerate(fds):
            own = fd.removeprefix("fd:") if fd.startswith("fd:") else f"x{number}"
            anchors.setdefault(fd, f"d-{self._anchor(process)}-{own}")
        self._held = (process, anchors)

    def lane(self, process: str, call: str) -> str:
        """Return the anchor of the lanes of a call of a process, by its own id; "" if there is none."""
        return self._lanes.get((process, call), "")

    def process_id(self, process: str) -> str:
        return f"p-{self._anchor(process)}"

    def descriptor_id(self, process: str, fd: str) -> str:
        holder, anchors = self._held
        return anchors.get(fd, "") if holder == process else ""

    def end_id(self, process: str, position: int) -> str:
        return f"e-{self._anchor(process)}-{position}"

    def process(self, process: str) -> str:
        return f"#{self.process_id(process)}" if process in self._known else ""

    def descriptor(self, process: str, fd: str) -> str:
        found = self.descriptor_id(process, fd)
        return f"#{found}" if found else ""

    def record(self, process: str, position: int) -> str:
        return ""

    def asks(self, process: str, call: str) -> str:
        return f"#{call}" if call else ""  # an exported entry has the anchor in place of its call

    def entry_id(self, process: str, entry: ConversationEntry) -> str:
        return self.end_id(process, entry.position) + (f"-{entry.part}" if entry.part else "")

    def entry(self, process: str, entry: ConversationEntry) -> str:
        return f"#{self.entry_id(process, entry)}"

    def span(self, row: TimelineRow, position: int) -> str:
        if row.asked_by:
            return f"#{self.end_id(row.process, 0)}" + (f"-{position}" if position else "")
        return f"#{self.end_id(row.process, position)}"

    def _anchor(self, name: str) -> str:
        return self._key + name.partition(".")[1] + name.partition(".")[2]
