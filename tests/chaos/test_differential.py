"""Random runs over a network that loses replies and connections give the results of plain strings.

Each seed is a run of some hundred calls: texts of any script, streams, children, forks, closes and ends.
After each call a part is read by page, line or character, and compared.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import fdstore
from fdstore.client import Process, Store, StreamWriter
from fdstore.records import TreeLimits
from tests.chaos.proxy import Proxy
from tests.properties import examples
from tests.slices import lines_of

STEPS = 120
LETTERS = [*"ab \n\x00\u2028é漢🙂", "\r\n", "e\u0301", "<fd_result>", "0123456789"]


def random_text(rng: random.Random) -> str:
    """Return a text of any script with 0 to some hundred thousand characters and short or long lines."""
    size = rng.choice([0, 1, 5, 200, 3000, 30_000, 200_000])
    letters = rng.sample(LETTERS, rng.randint(1, len(LETTERS)))
    words = ["".join(rng.choices(letters, k=rng.randint(1, 60))) for _ in range(20)]
    return "".join(rng.choices(words, k=1 + size // 40))[:size]


@dataclass(eq=False)
class Text:
    """A content: the text written to it, and whether it is still open."""

    text: str
    state: str = "sealed"

    @property
    def lines(self) -> list[str]:
        return lines_of(self.text)


@dataclass(eq=False)
class Member:
    """A process: its descriptors and the number of its next one."""

    id: str
    table: dict[str, Text] = field(default_factory=dict)
    next_fd: int = 1
    next_child: int = 1
    ended: bool = False

    @property
    def depth(self) -> int:
        """The number of its ancestors, plus one."""
        return self.id.count(".") + 1

    def add(self, text: Text) -> str:
        fd = f"fd:{self.next_fd}"
        self.next_fd += 1
        self.table[fd] = text
        return fd

    def child(self, shared: list[str]) -> Member:
        """Return a child that holds these descriptors under the same numbers and continues the numbering."""
        made = Member(f"{self.id}.{self.next_child}", {fd: self.table[fd] for fd in shared}, self.next_fd)
        self.next_child += 1
        return made

    def fork(self) -> Member:
        return self.child(list(self.table))


def held(members: list[Member]) -> set[Text]:
    """Return the contents that some process holds."""
    return {text for member in members if not member.ended for text in member.table.values()}


class Run:
    """A random run that applies each step to the store and to the model."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self.store = store
        self.rng = rng
        self.members = [Member("triage")]
        self.processes: dict[str, Process] = {"triage": store.process("triage")}
        self.streams: list[tuple[Member, str, StreamWriter, Text]] = []
        self.log: list[str] = []

    def step(self) -> None:
        member = self.rng.choice([each for each in self.members if not each.ended])
        proc = self.processes[member.id]
        steps = [self.create, self.open, self.end_stream, self.extract, self.close]
        steps += [self.child, self.fork, self.end, self.reopen_client, self.create, *[self.write] * 3]
        step = self.rng.choice(steps)
        self.log.append(f"{member.id} {step.__name__}")
        step(member, proc)
        self.compare(self.rng.choice([each for each in self.members if not each.ended]))

    # --- what is done

    def create(self, member: Member, proc: Process) -> None:
        text = random_text(self.rng)
        made = proc.create(text, page_size=self.rng.choice([None, 16, 1000]) if len(text) < 5000 else None)
        assert made.fd == member.add(Text(text))

    def open(self, member: Member, proc: Process) -> None:
        out = proc.open_stream(page_size=self.rng.choice([None, 50]))
        text = Text("", "open")
        assert out.fd == member.add(text)
        self.streams.append((member, out.fd, out, text))

    def write(self, member: Member, proc: Process) -> None:
        if self.streams:
            _, _, out, text = self.rng.choice(self.streams)
            for _ in range(self.rng.randint(1, 4)):
                piece = random_text(self.rng)
                out.write(piece)
                text.text += piece
            out.flush()

    def end_stream(self, member: Member, proc: Process) -> None:
        if self.streams:
            _, _, out, text = self.streams.pop(self.rng.randrange(len(self.streams)))
            if self.rng.random() < 0.7:
                out.end()
                text.state = "sealed"
            else:
                out.fail("it broke")
                text.state = "broken"

    def extract(self, member: Member, proc: Process) -> None:
        whole = {fd: text for fd, text in member.table.items() if text.lines}
        if whole:
            fd = self.rng.choice(list(whole))
            first, last = self.bounds(len(whole[fd].lines))
            made = proc.extract(fd, mode="line", start=first, count=last - first + 1)
            assert made.fd == member.add(Text("".join(whole[fd].lines[first - 1 : last])))

    def close(self, member: Member, proc: Process) -> None:
        closable = [fd for fd in member.table if not self.is_written(member, fd)]
        if closable:
            fd = self.rng.choice(closable)
            proc.close(fd)
            del member.table[fd]

    def child(self, member: Member, proc: Process) -> None:
        if member.depth < TreeLimits().tree_depth:
            shared = [fd for fd in member.table if self.rng.random() < 0.5]
            self.add(proc.child(share=shared), member.child(shared))

    def fork(self, member: Member, proc: Process) -> None:
        if member.depth < TreeLimits().tree_depth:
            self.add(proc.fork(), member.fork())

    def add(self, proc: Process, member: Member) -> None:
        assert proc.id == member.id
        self.members.append(member)
        self.processes[proc.id] = proc

    def end(self, member: Member, proc: Process) -> None:
        if member.id != "triage" and not any(writer is member for writer, *_ in self.streams):
            proc.end()
            member.ended = True

    def reopen_client(self, member: Member, proc: Process) -> None:
        """Continue with a new client that has nothing cached."""
        if not any(writer is member for writer, *_ in self.streams):
            self.processes[member.id] = self.store.process(member.id)

    # --- what is compared

    def compare(self, member: Member) -> None:
        proc = self.processes[member.id]
        listed = {d.fd: (d.chars, d.bytes, d.lines, d.state) for d in proc.list()}
        assert listed == {
            fd: (len(t.text), len(t.text.encode()), len(t.lines), t.state) for fd, t in member.table.items()
        }
        if member.table:
            fd = self.rng.choice(list(member.table))
            self.compare_text(proc, fd, member.table[fd])
        tree = self.store.tree("triage")
        assert tree.fds == len(held(self.members))
        assert tree.live == sum(not each.ended for each in self.members)
        assert tree.bytes == sum(len(text.text.encode()) for text in held(self.members))

    def compare_text(self, proc: Process, fd: str, text: Text) -> None:
        assert proc.read(fd, read_all=True).text == text.text
        if text.text:
            first, last = self.bounds(len(text.text))
            found = proc.read(fd, mode="char", start=first, count=last - first + 1)
            assert found.text == text.text[first - 1 : last]
            first, last = self.bounds(len(text.lines))
            found = proc.read(fd, mode="line", start=first, count=last - first + 1)
            assert found.text == "".join(text.lines[first - 1 : last])
            pages = range(1, proc.stat(fd).pages + 1)
            if len(pages) < 40:
                assert "".join(proc.read(fd, start=number).text for number in pages) == text.text
        assert proc.search(fd, "0123").matches == sum("0123" in line for line in text.lines)

    def bounds(self, size: int) -> tuple[int, int]:
        first = self.rng.randint(1, size)
        return first, min(size, first + self.rng.choice([0, 1, 10, 1000]))

    def is_written(self, member: Member, fd: str) -> bool:
        return any(text is member.table[fd] for *_, text in self.streams)


def test_any_sequence_of_calls_matches_plain_strings(
    store: Store, proxy: Proxy, faults: Any, seed: int
) -> None:
    rng = random.Random(seed)
    with fdstore.connect(proxy.url) as far:
        run = Run(far, rng)
        try:
            for number in range(examples(STEPS)):
                if number % 10 == 0:
                    proxy.lose_every(rng.choice([0, 2, 3, 7, 20]))
                    proxy.cut()
                run.step()
        except BaseException:
            print("\n".join(run.log))
            raise
        proxy.lose_every(0)
        for *_, out, _ in run.streams:
            out.end()
