"""A host of programs over texts in memory: it answers their calls at once, or later."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fdstore.model.call_limits import CallLimits
from fdstore.programs.interpreter.events import (
    LATER,
    Answer,
    Event,
    Failed,
    Finished,
    HostCall,
    Raise,
    Waiting,
)
from fdstore.programs.interpreter.session import Session

EPOCH_S = 1_700_000_000.0


def facts(ref: str, text: str) -> dict[str, Any]:
    return {
        "ref": ref,
        "fd": ref.partition("#")[0],
        "total_chars": len(text),
        "total_lines": text.count("\n") + (not text.endswith("\n")),
        "total_pages": 1 + len(text) // 100,
        "source": "user",
        "kind": "text",
        "state": "sealed",
    }


class Host:
    """Texts by reference, and every event of the calls so far in `events`."""

    def __init__(self, *texts: str, later: Collection[str] = ()) -> None:
        self.texts = {f"fd:{number}": text for number, text in enumerate(texts, 1)}
        self.later = later
        self.events: list[Event] = []
        self.postponed: dict[int, Answer] = {}

    @property
    def calls(self) -> list[HostCall]:
        return [event for event in self.events if isinstance(event, HostCall)]

    def run(self, session: Session, code: str) -> Finished | Failed:
        """Run the code to its end; calls that are answered later are settled one after the other."""
        self.postponed.clear()
        event = self.note(session.feed(code))
        while not isinstance(event, Finished | Failed):
            if isinstance(event, Waiting):
                number = event.numbers[-1]
                event = self.note(session.settle({number: self.postponed[number]}))
            else:
                event = self.note(self.reply(session, event))
        return event

    def note(self, event: Event) -> Event:
        self.events.append(event)
        return event

    def reply(self, session: Session, call: HostCall) -> Event:
        answer = self.answer(call)
        if call.name not in self.later:
            return session.resume(answer)
        self.postponed[call.number] = answer
        return session.resume(LATER)

    def answer(self, call: HostCall) -> Answer:
        try:
            return getattr(self, f"on_{call.name.lstrip('_')}")(*call.args)
        except (AttributeError, TypeError, ValueError) as error:
            return Raise("TypeError", str(error))
        except KeyError as error:
            return Raise("ValueError", f"not_found: {error.args[0]} does not exist")

    def on_fd(self, ref: int | str) -> Answer:
        name = f"fd:{ref}" if isinstance(ref, int) else ref
        return facts(name, self._text(name))

    def on_fds(self) -> Answer:
        return [facts(ref, text) for ref, text in self.texts.items()]

    def on_read(self, ref: str, unit: str, first: int | None, last: int | None) -> Answer:
        text = self._text(ref)
        if first is None or last is None:
            return text
        if unit in ("chars", "window"):
            return text[first - 1 : last]
        size = 100 if unit == "pages" else 0
        units = [text[at : at + size] for at in range(0, len(text), size)] if size else text.splitlines(True)
        return "".join(units[first - 1 : last])

    def on_search(self, ref: str, pattern: str, most: int, ignore_case: bool, context: int) -> Answer:
        lines = self._text(ref).splitlines()
        found = [(number, line) for number, line in enumerate(lines, 1) if pattern in line][:most]
        return [
            {
                "line": n,
                "text": line,
                "chars": f"C{n}",
                "groups": [pattern],
                "before": lines[max(0, n - 1 - context) : n - 1],
                "after": lines[n : n + context],
            }
            for n, line in found
        ]

    def on_split(self, ref: str, unit: str, size: int) -> Answer:
        text = self._text(ref)
        starts = range(0, len(text), size)
        return [facts(f"{ref}#C{at + 1}-{at + size}", text[at : at + size]) for at in starts]

    def on_create(self, text: str, name: str | None) -> Answer:
        ref = f"fd:{len(self.texts) + 1}"
        self.texts[ref] = text
        return facts(ref, text)

    def on_ask(self, question: str, parts: list[Any]) -> Answer:
        if question == "fail":
            return Raise("ValueError", "refused: the model does not answer")
        texts = [self._text(part["ref"]) if isinstance(part, dict) else part for part in parts]
        return f"{question}: {'+'.join(texts)}"

    def on_spawn(self, program: str, query: str, refs: list[str]) -> Answer:
        answer = f"{program}: {query} {refs}"
        return {"answer": answer, "ref": refs[0] if refs else None, "state": "finished", "exit_code": 0}

    def on_pipe(self, commands: list[list[str]], ref: str | None) -> Answer:
        return {"ref": self.on_create(f"{commands} {ref}", None), "exit_code": 0}

    def on_tool(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Answer:
        if name == "large":
            return {"fd": self.on_create("large", None)}
        return {"value": [name, args, kwargs]}

    def on_clock(self) -> Answer:
        return EPOCH_S + len(self.events)

    def on_sleep(self, seconds: float) -> Answer:
        return None

    def _text(self, ref: str) -> str:
        whole, _, part = ref.partition("#C")
        text = self.texts[whole]
        if not part:
            return text
        first, last = map(int, part.split("-"))
        return text[first - 1 : last]


def value(code: str, *texts: str, functions: Collection[str] = ()) -> str | None:
    """Return the value of the code in a session of its own."""
    with Session(functions=[*functions]) as session:
        ended = Host(*texts).run(session, code)
    assert isinstance(ended, Finished), ended
    return ended.value


def failure(code: str, limits: CallLimits | None = None, host: Host | None = None) -> Failed:
    """Return how the code fails in a session of its own."""
    with Session(limits) as session:
        ended = (host or Host()).run(session, code)
    assert isinstance(ended, Failed), ended
    return ended


def failing(session: Session, code: str, *texts: str) -> Failed:
    """Return how the code fails in this session."""
    ended = Host(*texts).run(session, code)
    assert isinstance(ended, Failed), ended
    return ended
