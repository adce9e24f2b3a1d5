"""A hypothesis state machine: any sequence of calls gives the results of plain strings.

Needs only a client and a function that sends one command, so it runs on fakes and real servers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, NotFound
from fdstore.store.contents import contents
from tests.slices import check_slice, lines_of, some_numbers, texts, units_of
from tests.stored_keys import Execute, check_keys


class StoreModel(RuleBasedStateMachine):
    """Calls in any order on the processes of one tree, compared with a model of dicts and strings.

    A subclass sets the store, the function that sends a command, and the directory for files.
    """

    store: Store
    execute: Execute
    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.execute("FLUSHALL")
        self.clients: dict[str, list[Process]] = {"t": [self.store.process("t")]}
        self.tables: dict[str, dict[str, tuple[str, int]]] = {"t": {}}
        self.next_fd = {"t": 1}
        self.children = {"t": 0}

    # what the rules choose from

    def draw_process(self, data: st.DataObject) -> Process:
        return self.draw_client(data, data.draw(st.sampled_from(sorted(self.clients)), "process"))

    def draw_client(self, data: st.DataObject, process: str) -> Process:
        clients = self.clients[process]
        return clients[data.draw(st.integers(0, len(clients) - 1), "client")]

    def draw_descriptor(self, data: st.DataObject) -> tuple[Process, str, str, int]:
        owners = sorted(process for process in self.clients if self.tables[process])
        process = data.draw(st.sampled_from(owners), "process")
        fd = data.draw(st.sampled_from(sorted(self.tables[process])), "fd")
        return self.draw_client(data, process), fd, *self.tables[process][fd]

    def draw_part(self, data: st.DataObject, text: str, size: int) -> tuple[Any, int, int]:
        mode = data.draw(st.sampled_from(["page", "line", "char"]), "mode")
        start = data.draw(st.integers(1, max(1, len(units_of(text, size, mode)))), "start")
        return mode, start, data.draw(some_numbers, "count")

    def has_descriptors(self) -> bool:
        return any(self.tables[process] for process in self.clients)

    # making

    @rule(data=st.data(), text=texts, size=st.integers(1, 9) | st.just(4000))
    def create(self, data: st.DataObject, text: str, size: int) -> None:
        proc = self.draw_process(data)

        made = proc.create(text, page_size=size)

        assert made.fd == f"fd:{self.next_fd[proc.id]}"
        assert (made.chars, made.lines) == (len(text), len(lines_of(text)))
        self.tables[proc.id][made.fd] = (text, size)
        self.next_fd[proc.id] += 1

    @rule(data=st.data(), text=texts, name=st.sampled_from(["ref:a", "ref:b"]))
    def create_with_passage(self, data: st.DataObject, text: str, name: str) -> None:
        proc = self.draw_process(data)

        made = self.store.run(contents.create(proc.handle, text, "text", 7, name=name))

        assert made.fd == name
        self.tables[proc.id][name] = (text, 7)
        self.next_fd[proc.id] += 1

    @precondition(has_descriptors)
    @rule(data=st.data())
    def extract(self, data: st.DataObject) -> None:
        proc, fd, text, size = self.draw_descriptor(data)
        mode, start, count = self.draw_part(data, text, size)

        made = proc.extract(fd, mode=mode, start=start, count=count)

        assert made.fd == f"fd:{self.next_fd[proc.id]}"
        piece = "".join(units_of(text, size, mode)[start - 1 : start - 1 + count])
        self.tables[proc.id][made.fd] = (piece, size)
        self.next_fd[proc.id] += 1

    # reading

    @precondition(has_descriptors)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        proc, fd, text, size = self.draw_descriptor(data)
        mode, start, count = self.draw_part(data, text, size)

        found = proc.read(fd, mode=mode, start=start, count=count)

        check_slice(found, text, size, mode, start, count)

    @precondition(has_descriptors)
    @rule(data=st.data())
    def read_all(self, data: st.DataObject) -> None:
        proc, fd, text, _ = self.draw_descriptor(data)

        found = proc.read(fd, read_all=True)

        assert (found.text, found.page, found.eof) == (text, "all", True)

    @precondition(has_descriptors)
    @rule(data=st.data())
    def export(self, data: st.DataObject) -> None:
        proc, fd, text, _ = self.draw_descriptor(data)

        done = proc.export(fd, self.folder / "out.txt")

        assert (self.folder / "out.txt").read_bytes() == text.encode()
        assert (done.char_count, done.size_bytes) == (len(text), len(text.encode()))

    @precondition(has_descriptors)
    @rule(data=st.data(), wanted=st.sampled_from(["a", "line", "漢", "page ", "\r", "zz"]))
    def search(self, data: st.DataObject, wanted: str) -> None:
        proc, fd, text, _ = self.draw_descriptor(data)
        lines = [line.removesuffix("\n") for line in lines_of(text)]
        expected = [(number, line) for number, line in enumerate(lines, 1) if wanted in line]

        found = proc.search(fd, wanted, max_matches=3)

        assert (found.matches, found.lines_searched) == (len(expected), len(lines))
        assert [(hit.line, hit.text) for hit in found.hits] == expected[:3]
        for hit in found.hits:
            first, last = map(int, hit.chars.split("-"))
            assert text[first - 1 : last] == wanted

    @rule(data=st.data(), beyond=st.integers(1, 3))
    def read_out_of_range(self, data: st.DataObject, beyond: int) -> None:
        proc = self.draw_process(data)

        with pytest.raises(NotFound) as caught:
            proc.read(self.next_fd[proc.id] + beyond)

        assert set(caught.value.known) == set(self.tables[proc.id])

    # sharing

    @precondition(lambda self: len(self.tables) < 8)
    @rule(data=st.data())
    def child(self, data: st.DataObject) -> None:
        proc = self.draw_process(data)
        table = self.tables[proc.id]
        share = data.draw(st.lists(st.sampled_from(sorted(table)), unique=True)) if table else []

        self.born(proc.id, proc.child(share), {fd: table[fd] for fd in share})

    @precondition(lambda self: len(self.tables) < 8)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        proc = self.draw_process(data)

        self.born(proc.id, proc.fork(), dict(self.tables[proc.id]))

    def born(self, parent: str, child: Process, table: dict[str, tuple[str, int]]) -> None:
        self.children[parent] += 1
        assert child.id == f"{parent}.{self.children[parent]}"
        self.clients[child.id] = [child]
        self.tables[child.id] = table
        self.next_fd[child.id] = self.next_fd[parent]
        self.children[child.id] = 0

    @rule(data=st.data())
    def reopen(self, data: st.DataObject) -> None:
        proc = self.draw_process(data)

        self.clients[proc.id].append(self.store.process(proc.id))

    # dropping

    @precondition(has_descriptors)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        proc, fd, _, _ = self.draw_descriptor(data)

        proc.close(fd)

        del self.tables[proc.id][fd]

    @precondition(lambda self: len(self.clients) > 1)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        proc = self.draw_process(data)

        proc.end()
        proc.end()

        with pytest.raises(FDStoreError, match="has ended"):
            proc.create("too late")
        del self.clients[proc.id]
        self.tables[proc.id] = {}

    # what holds after every step

    @invariant()
    def counters_match_stored_keys(self) -> None:
        check_keys(self.execute)

    @invariant()
    def tables_match_the_model(self) -> None:
        for process, clients in self.clients.items():
            found = {d.fd: (d.chars, d.page_size) for d in clients[0].list()}
            assert found == {fd: (len(text), size) for fd, (text, size) in self.tables[process].items()}
