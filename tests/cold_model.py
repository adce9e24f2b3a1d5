"""The model of `tests/store_model.py`, whose contents become cold and come back between its calls."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests import cold_contents
from tests.slices import texts
from tests.store_model import StoreModel


class ColdModel(StoreModel):
    """Any sequence of calls gives the results of plain strings, wherever the contents are."""

    moved = 0
    """Contents that became cold in all examples."""

    def __init__(self) -> None:
        super().__init__()
        self.cold = Path(tempfile.mkdtemp(dir=self.folder))  # an example may end before the rule below

    @initialize(text=texts, size=st.sampled_from([7, 100, 4000]))
    def begin_with_a_cold_content(self, text: str, size: int) -> None:
        cold_contents.use_cold(self.store, f"file://{self.cold}")
        [proc] = self.clients["t"]
        made = proc.create(text, page_size=size)
        self.tables["t"][made.fd] = (text, size)
        self.next_fd["t"] += 1
        self.turn_cold()

    @precondition(StoreModel.has_descriptors)
    @rule()
    def turn_cold(self) -> None:
        type(self).moved += cold_contents.turn_cold(self.store)

    @precondition(StoreModel.has_descriptors)
    @rule(data=st.data())
    def read_again_and_again(self, data: st.DataObject) -> None:
        proc, fd, text, _ = self.draw_descriptor(data)

        for _ in range(5):
            assert proc.read(fd, read_all=True).text == text

    @precondition(StoreModel.has_descriptors)
    @rule(data=st.data(), start=st.integers(0, 99), count=st.integers(0, 99))
    def read_bytes(self, data: st.DataObject, start: int, count: int) -> None:
        proc, fd, text, _ = self.draw_descriptor(data)
        whole = text.encode()
        first = start * len(whole) // 99

        assert proc.read_bytes(fd, first, count) == whole[first : first + count]

    @rule(data=st.data(), text=texts.map(lambda text: text + "\n"), size=st.sampled_from([7, 100, 4000]))
    def store_long(self, data: st.DataObject, text: str, size: int) -> None:
        proc, whole = self.draw_process(data), text * (20_000 // len(text))

        made = proc.ingest(io.BytesIO(whole.encode()), "a file", page_size=size)

        assert made.fd == f"fd:{self.next_fd[proc.id]}"
        self.tables[proc.id][made.fd] = (whole, size)
        self.next_fd[proc.id] += 1

    @precondition(StoreModel.has_descriptors)
    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        proc, fd, text, _ = self.draw_descriptor(data)
        start = data.draw(st.integers(1, max(1, len(text))), "start")

        assert "".join(proc.follow(fd, start=start)) == text[start - 1 :]

    def teardown(self) -> None:
        """Every object is that of a content that lives, once the sweeper has passed."""
        cold_contents.tidy(self.store)
        left = cold_contents.objects_in(self.cold)
        assert len(left) == len(cold_contents.cold_contents_of(self.store, "t")), left
