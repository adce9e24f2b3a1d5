"""The functions that code of `run_python` calls, over the store.

The interpreter numbers the calls of one run, and a repeated run makes the same calls under the same numbers.
So an effect is done under the id of the run and that number, once, and answers that a repeat could find
changed are recorded before the next effect (see `recorded_answers`).

A call that waits for another process (`ask`, `spawn`, `pipe`) is answered later: `settle` starts the
questions and returns the answers when all are there.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

import msgspec

from fdstore.errors import FDStoreError, InvalidArgument, NotFound, StoreLostData, TooLarge, quoted
from fdstore.model import ends
from fdstore.model.lifecycle import ENDED
from fdstore.programs import sql_calls, text_refs
from fdstore.programs.interpreter.events import LATER, Answer, HostCall, Raise, Waiting
from fdstore.programs.interpreter.values import VALUE_ERRORS
from fdstore.programs.pending_calls import PendingCalls, PersonCall
from fdstore.programs.recorded_answers import ChangedText, Kept, RecordedAnswers
from fdstore.programs.refusals import NotForCode
from fdstore.programs.text_refs import TextRef
from fdstore.results.context import Context, Passed
from fdstore.results.people_config import ASK_PERSON
from fdstore.results.tool_outcome import Started
from fdstore.store.clock import redis_now
from fdstore.store.contents import contents, descriptors
from fdstore.store.contents.extents import SplitUnit
from fdstore.store.processes import asks, process_records, processes, waiting
from fdstore.store.processes.asks import Ask, AskAnswer, AskPart
from fdstore.store.views import worker_check
from fdstore.text.names import name_id
from fdstore.wire.operation import Disk, Operation

MAX_QUESTION_CHARS = 100_000

MAX_NAMED = 20
"""Functions that an error names."""

MAX_SLEEP_S = 86_400.0
"""The most seconds by which one sleep moves the clock of the code."""

SPAWN, PIPE = "spawn", "pipe"
"""The tools that do what the functions of these names do."""


class Starters(msgspec.Struct, frozen=True):
    """The functions that start processes for code: an agent of a program with a query and texts, and a
    pipeline of commands with an input, each under the id of its call. Both return the id of the process."""

    spawn: Callable[[str, str, list[str], str], Operation[str]]
    pipe: Callable[[list[str], str | None, str], Operation[str]]


class Host:
    """Answers the calls of one run. `recorded` are the answers to repeat, by the numbers of the calls;
    `pending` are its waits, which go on here."""

    def __init__(
        self,
        context: Context,
        starters: Starters,
        run_id: str,
        recorded: Mapping[int, bytes],
        pending: PendingCalls,
    ) -> None:
        self._context = context
        self._handle = context.handle
        self._config = context.python
        self._starters = starters
        self._run_id = run_id
        self._answers = RecordedAnswers(context.handle, run_id, recorded)
        self._text_refs: dict[str, TextRef] = {}
        self.pending = pending
        self._unasked: list[Ask] = []
        self._settled: dict[int, Answer] = {}
        """Answers of calls that waited for a person, until all awaited calls have one."""
        self._heard: dict[int, Passed] = {}
        """What people have said to calls that are not over."""
        self._functions: dict[str, Callable[..., Operation[Any]]] = {
            "_fd": self._fd,
            "_fds": self._fds,
            "_read": self._read,
            "_search": self._search,
            "_split": self._split,
            "_create": self._create,
            "_ask": self._ask,
            "_spawn": self._spawn,
            "_pipe": self._pipe,
            "_sql": self._sql,
            "_tool": self._tool,
            "clock": self._clock,
            "sleep": self._sleep,
        }

    def answer(self, call: HostCall) -> Operation[Answer]:
        """Answer a call, or return `LATER`. What is wrong with it is an exception in the code; errors that
        the code could do nothing about are raised here."""
        known = self._answers.find(call)
        if known is not None and not known.digest:
            return known.error or known.value
        if self._context.progress is not None:
            self._context.progress(call.number + 1, None)
        if (function := self._functions.get(call.name)) is None:
            return Raise("NameError", f"there is no function {call.name.removeprefix('_')} of the host")
        try:
            answer = yield from function(call.number, *call.args, **call.kwargs)
            if answer is not LATER:
                self._note_people([call.number])
            return answer
        except FDStoreError as error:
            if error.stops or isinstance(error, StoreLostData):  # of its own records
                raise
            raised = as_exception(error)
        except VALUE_ERRORS as error:  # code may call these functions itself, with anything
            raised = Raise("TypeError" if isinstance(error, TypeError) else "ValueError", str(error))
        if known is not None:  # the first run read something
            raise ChangedText(str(next(iter(call.args), "")))
        self._answers.keep(call.number, Kept(error=raised))
        return raised

    def _save(self) -> Operation[None]:
        """Record the answers that a repeat must get again: called before every effect."""
        yield from self._answers.save()

    def _slot(self, number: int) -> str:
        return f"{self._run_id}/{number}"

    def _text_ref(self, ref: object) -> Operation[TextRef]:
        """Return a text. One that stays as it is is looked up once."""
        if isinstance(ref, str) and (text_ref := self._text_refs.get(ref)) is not None:
            return text_ref
        text_ref = yield from text_refs.look_up(self._handle, ref)
        if text_ref.is_fixed:
            self._text_refs[text_ref.ref] = text_ref
        return text_ref

    def _fd(self, number: int, ref: object) -> Operation[dict[str, Any]]:
        text_ref = yield from text_refs.look_up(self._handle, ref)
        self._answers.keep(number, Kept(text_ref.facts))
        return text_ref.facts

    def _fds(self, number: int) -> Operation[list[dict[str, Any]]]:
        found = yield from descriptors.list_fds(self._handle)
        facts = [text_refs.whole(each).facts for each in found]
        self._answers.keep(number, Kept(facts))
        return facts

    def _from(self, number: int, ref: object, find: Callable[[TextRef], Operation[Any]]) -> Operation[Any]:
        """Return what `find` reads from a text."""
        text_ref = yield from self._text_ref(ref)
        answer = yield from find(text_ref)
        if not text_ref.is_fixed or number in self._answers:
            self._answers.keep_read(number, ref, answer)
        return answer

    def _read(self, number: int, ref: object, unit: text_refs.Unit, first: int, last: int) -> Operation[str]:
        limit = self._config.max_text_bytes
        if unit not in get_args(text_refs.Unit):
            raise InvalidArgument("unit", f"{quoted(unit)} is none of {', '.join(get_args(text_refs.Unit))}")

        def find(text_ref: TextRef) -> Operation[str]:
            return text_refs.read(self._handle, text_ref, unit, first, last, limit)

        text: str = yield from self._from(number, ref, find)
        return text

    def _search(
        self, number: int, ref: object, pattern: str, max_matches: int, ignore_case: bool, context: int
    ) -> Operation[list[dict[str, Any]]]:
        if not isinstance(pattern, str):
            raise InvalidArgument("pattern", f"a str is needed, not {quoted(pattern)}")

        def find(text_ref: TextRef) -> Operation[list[dict[str, Any]]]:
            return text_refs.search(
                self._handle, text_ref, pattern, max_matches, ignore_case=ignore_case, context=context
            )

        hits: list[dict[str, Any]] = yield from self._from(number, ref, find)
        return hits

    def _split(self, number: int, ref: object, unit: SplitUnit, size: int) -> Operation[list[dict[str, Any]]]:
        def find(text_ref: TextRef) -> Operation[list[dict[str, Any]]]:
            parts = yield from text_refs.split(self._handle, text_ref, unit, size)
            if text_ref.is_fixed:
                self._text_refs.update({part.ref: part for part in parts})
            return [part.facts for part in parts]

        facts: list[dict[str, Any]] = yield from self._from(number, ref, find)
        return facts

    def _create(self, number: int, text: object, name: object) -> Operation[dict[str, Any]]:
        if not self._context.code_may_create:
            raise NotForCode("create", "keep the text in a variable, or print what you need of it")
        if not isinstance(text, str):
            raise InvalidArgument("text", f"a str is needed, not {quoted(text)}")
        yield from self._save()
        descriptor = yield from contents.create(
            self._handle,
            text,
            "run_python",
            self._context.config.default_page_size,
            name="" if name is None else name_id(name),
            call_id=self._slot(number),
        )
        return text_refs.whole(descriptor).facts

    def _clock(self, number: int) -> Operation[float]:
        now_s = (yield from redis_now()) + self.pending.slept_s
        self._answers.keep(number, Kept(now_s))
        return now_s

    def _sleep(self, number: int, seconds: float) -> Operation[None]:
        # nothing that code can see happens meanwhile, so its clock alone goes on
        self.pending.slept_s += min(max(0.0, seconds), MAX_SLEEP_S)
        return None
        yield

    def _ask(self, number: int, question: object, parts: object) -> Operation[Answer]:
        if self._context.ask is None:
            raise InvalidArgument("ask", "no model is named for it; do without, or use spawn")
        if not isinstance(question, str) or not question.strip():
            raise InvalidArgument("question", "a text is needed, as ask('Which dates occur?', part)")
        if len(question) > MAX_QUESTION_CHARS:
            raise TooLarge(
                "the question", len(question), MAX_QUESTION_CHARS, "pass texts behind the question"
            )
        taken: list[str | AskPart] = []
        for part in parts if isinstance(parts, list) else [parts]:
            if not isinstance(part, str):
                text_ref = yield from self._text_ref(text_refs.ref_of(part))
                text_refs.require_text(text_ref)
                part = AskPart(ref=text_ref.ref)
            taken.append(part)
        self._unasked.append(Ask(number=number, question=question, parts=taken))
        return LATER

    def _spawn(self, number: int, program: object, query: object, refs: object) -> Operation[Answer]:
        named = [text_refs.ref_of(ref) for ref in refs] if isinstance(refs, list) else []
        arguments = {"program": str(program), "query": str(query), "texts": named}
        return (yield from self._run_tool(number, SPAWN, arguments))

    def _pipe(self, number: int, commands: object, ref: object) -> Operation[Answer]:
        if not isinstance(commands, list) or not commands:
            raise InvalidArgument("commands", 'a list of commands is needed, as [["sort"], ["uniq", "-c"]]')
        lines = [each if isinstance(each, str) else shlex.join(map(str, each)) for each in commands]
        arguments = {"commands": lines, "text": None if ref is None else text_refs.ref_of(ref)}
        return (yield from self._run_tool(number, PIPE, arguments))

    def _run_tool(self, number: int, tool: str, arguments: dict[str, Any]) -> Operation[Answer]:
        """Run a call of a function or a start of a process, after a person was asked who has to be. Return
        its answer, or `LATER`."""
        yield from self._save()
        passed = None
        if self._context.gate is not None:
            passed = yield from self._context.gate(tool, arguments, self._slot(number))
        if isinstance(passed, Started):
            assert passed.until_s is not None
            assert passed.seconds is not None
            [question] = passed.questions
            self.pending.people[number] = PersonCall(
                tool, arguments, question, passed.until_s, passed.seconds
            )
            return LATER
        if passed is not None:
            self._heard[number] = passed
            if passed.error:
                return Raise("PermissionError", passed.error)
            if passed.arguments is None:
                return {"value": passed.value}
            arguments = passed.arguments
        slot = self._slot(number)
        if tool == SPAWN:
            self.pending.processes[number] = yield from self._starters.spawn(
                arguments["program"], arguments["query"], arguments["texts"], slot
            )
        elif tool == PIPE:
            self.pending.processes[number] = yield from self._starters.pipe(
                arguments["commands"], arguments["text"], slot
            )
        if number in self.pending.processes:
            self._note_people([number])
            return LATER
        function = self._context.functions[tool]
        outcome = yield from function(arguments, slot, at_most_once=passed is not None)
        return (yield from self._function_answer(outcome))

    def _sql(self, number: int, query: object, refs: object) -> Operation[Any]:
        found = yield from sql_calls.select(self._context, query, refs, self._slot(number), self._save)
        self._answers.keep(number, Kept(found))
        return found

    def _tool(self, number: int, name: object, args: object, kwargs: object) -> Operation[Any]:
        called, names = str(name), self._context.names_for_code
        if called not in names:
            there_are = ", ".join(names[:MAX_NAMED]) or "none"
            raise InvalidArgument("", f"there is no function {quoted(name)}; there are: {there_are}")
        arguments = kwargs if isinstance(kwargs, dict) else {}
        if called == ASK_PERSON and isinstance(args, list):
            arguments = dict(zip(("question", "choices", "fd"), args, strict=False)) | arguments
        elif args:
            raise InvalidArgument("", f"{name} takes its arguments by name, as {name}(path='build.log')")
        if called == ASK_PERSON or called in self._context.functions:
            return (yield from self._run_tool(number, called, arguments))
        yield from self._save()
        assert self._context.outside is not None
        yield from self._context.outside.begin(called, arguments, self._slot(number))
        self.pending.outside.append(number)
        return LATER

    def _function_answer(self, outcome: Any) -> Operation[Answer]:
        """Return the outcome of a function as code gets it."""
        if outcome.error:
            return Raise(outcome.kind, outcome.error)
        if outcome.fd:
            return {"fd": (yield from text_refs.look_up(self._handle, outcome.fd)).facts}
        return {"value": outcome.value}

    def _begin_asks(self) -> Operation[None]:
        """Start the questions that were asked since the last time, and wake workers for them."""
        if not self._unasked or self._context.ask is None:
            return
        if not self._context.wait_for_workers:
            yield from worker_check.require_worker(
                self._context.prefix, for_agents=True, servers=[self._context.ask.server]
            )
        yield from self._save()
        unasked, self._unasked = self._unasked, []
        lanes = yield from asks.start(self._handle, self._run_id, unasked, self._context.ask)
        self.pending.asked += [each.number for each in unasked]
        self.pending.lanes = list(dict.fromkeys([*self.pending.lanes, *lanes]))

        def wake() -> None:
            for lane in lanes:
                self._context.wake(lane)

        yield Disk(wake)

    def leave(self) -> Operation[None]:
        """Cancel what the code has begun and not awaited, once the call has ended."""
        yield from cancel_all(self._context.prefix, [*self.pending.lanes, *self.pending.processes.values()])

    def waits_for(self, event: Waiting) -> list[str]:
        """Return the processes whose ends the awaited calls wait for."""
        numbers = set(event.numbers)
        others = [process for number, process in self.pending.processes.items() if number in numbers]
        return [*(self.pending.lanes if numbers & set(self.pending.asked) else []), *others]

    def asks_people(self, event: Waiting) -> list[PersonCall]:
        """Return the awaited calls that wait for a person."""
        calls = self.pending.people.items()
        return [call for number, call in calls if number in event.numbers and number not in self._settled]

    def settle(self, event: Waiting) -> Operation[dict[int, Answer]]:
        """Return the answers to all awaited calls; none if one is not over. A repeat then settles the same
        calls together, after which the tasks of the code go on in the same order."""
        yield from self._begin_asks()
        wanted = event.numbers
        found: dict[int, Answer] = yield from self._settle_people(wanted)
        asked = [number for number in wanted if number in self.pending.asked]
        if asked:
            answers = yield from asks.answers(self._handle, self._run_id, asked)
            if len(answers) < len(asked):
                if (yield from self._has_live_lanes()):
                    return {}
                # the last lane may have ended meanwhile; a log of Redis that was torn may have lost some
                answers = yield from asks.answers(self._handle, self._run_id, asked)
            for number in asked:
                answer = answers.get(number, LOST)
                found[number] = Raise("ValueError", answer.error) if answer.error else answer.text
        if self._context.outside is not None:
            for number in [each for each in wanted if each in self.pending.outside]:
                ended = yield from self._context.outside.end(self._slot(number))
                found[number] = yield from self._function_answer(ended)
        processes = self.pending.processes
        others = {number: processes[number] for number in wanted if number in processes}
        if others:
            results = yield from process_records.answers_of(self._context.prefix, list(others.values()))
            for number, result in zip(others, results, strict=True):
                if result.record.state not in ENDED:
                    return {}
                found[number] = yield from self._outcome(result)
        if len(found) < len(wanted):
            return {}
        for number in found:
            processes.pop(number, None)
        self._note_people(found)
        self.pending.asked = [number for number in self.pending.asked if number not in found]
        self.pending.outside = [number for number in self.pending.outside if number not in found]
        if not self.pending.asked:
            self.pending.lanes = []
        return found

    def _settle_people(self, wanted: Sequence[int]) -> Operation[dict[int, Answer]]:
        """Make those awaited calls again that wait for a person. Return the answers of those that have one;
        they are made again until all awaited calls have theirs, and done once."""
        waiting_calls = self.pending.people.keys() - self._settled.keys()
        for number in [each for each in wanted if each in waiting_calls]:
            call = self.pending.people[number]
            try:
                answer = yield from self._run_tool(number, call.tool, call.arguments)
            except FDStoreError as error:
                if error.stops or isinstance(error, StoreLostData):
                    raise
                answer = as_exception(error)
            if answer is not LATER:
                self._settled[number] = answer
        return {number: self._settled[number] for number in wanted if number in self._settled}

    def _note_people(self, numbers: Iterable[int]) -> None:
        """Keep what people have said to these calls, which are over."""
        for number in numbers:
            self.pending.people.pop(number, None)
            self._settled.pop(number, None)
            if (passed := self._heard.pop(number, None)) is not None and passed.shown is not None:
                self.pending.said += passed.shown.facts.people
                self.pending.notes += [passed.note] if passed.note else []

    def _has_live_lanes(self) -> Operation[bool]:
        looked = yield from waiting.look_at(self._handle, self.pending.lanes, [])
        return len(looked.ended) < len(self.pending.lanes)

    def _outcome(self, result: process_records.ProcessAnswer) -> Operation[Answer]:
        """Return the result of an ended process, as code gets it; an exception for a pipeline that the worker
        refused to run."""
        record = result.record
        said = record.reason or ""
        if record.kind == "pipeline" and ends.find(said) is ends.REFUSED:
            return Raise("PermissionError", said)
        fd = record.outputs[0] if record.kind == "pipeline" and record.outputs else result.fd
        text_ref = None if fd is None else (yield from text_refs.look_up(self._handle, fd))
        text = result.text
        if not text and text_ref is not None and record.kind != "pipeline":
            text = yield from text_refs.read(self._handle, text_ref, "all", 1, 1, self._config.max_text_bytes)
        return {
            "answer": text,
            "ref": None if text_ref is None else text_ref.facts,
            "state": record.state,
            "exit_code": record.exit_code,
            "reason": record.reason,
            "process": record.id,
        }


def cancel_all(prefix: str, begun: Iterable[str]) -> Operation[None]:
    """Cancel processes that code has begun. Those that are gone are left out."""
    for process in begun:
        with suppress(NotFound):
            yield from processes.cancel(prefix, process, ends.CANCELLED.name)


LOST = AskAnswer(error="store_lost_data: the question was lost in a crash of Redis; ask again")


def as_exception(error: FDStoreError) -> Raise:
    """Return an error as the exception that code sees: its text begins with its type."""
    said = f"{error.type}: {error}"
    return Raise("PermissionError" if error.type == "permission_error" else "ValueError", said)
