"""The agent loop: run the tool calls of the model's last answer, then ask the model again.

`step` does one of the two and writes it to the journal before anything else happens. If an attempt dies at
any point, the next one continues from the last record: finished tool calls are not run again, and effects of
a call are keyed by the call's id.

A step never waits for other processes. When a turn only waits for children or for a person, `step` returns
`Awaited`; the caller decides whether to wait for them or to release the worker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import msgspec

from fdstore.agents.loop.answer_stream import AnswerStream, RunOperation, StreamListener
from fdstore.agents.loop.calibration import Calibration
from fdstore.agents.loop.conversation import (
    Assistant,
    Cleared,
    Note,
    Result,
    Start,
    ToolCall,
    Undeferred,
    encode_entry,
)
from fdstore.agents.loop.ends import Awaited, Outcome, end_after, reached_limit, store_long_answer
from fdstore.agents.loop.first_prompt import first_messages
from fdstore.agents.loop.history import History
from fdstore.agents.loop.models.base import (
    DeferralRefused,
    Model,
    ModelFailed,
    ModelRequest,
    PromptTooLong,
    Retry,
    TimeIsOver,
)
from fdstore.agents.loop.offering import offer, sent_tools
from fdstore.agents.loop.program_loader import Program
from fdstore.agents.loop.record_facts import FactCollector, answer_age_s, begin_attempt
from fdstore.elements.render import fd_error
from fdstore.errors import STORE_FAILURES, InvalidArgument, NobodyAnswered, NotFound, QuotaExceeded
from fdstore.model.ends import NO_ANSWER
from fdstore.model.lifecycle import ProcessEnd
from fdstore.results.context import FirstResult
from fdstore.results.tool_outcome import Started, ToolResult, tool_result
from fdstore.results.wrapping import reference_passages, store_passage
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import journal, leases, processes, tool_calls, waiting
from fdstore.store.processes.leases import Claim
from fdstore.text.surrogates import escape_surrogates
from fdstore.tools.clearing import ClearingConfig, find_clearable
from fdstore.tools.process_task import SpawnTask, is_long_answer
from fdstore.tools.toolbox import Toolbox
from fdstore.wire.operation import Batch, Operation

log = logging.getLogger("fdstore.agent")

Entry: TypeAlias = Start | Assistant | Result | Note | Cleared | Undeferred


class Agent:
    """One attempt at one process: its conversation, its tools, its model."""

    def __init__(
        self,
        run: RunOperation,
        handle: ProcessHandle,
        program: Program,
        toolbox: Toolbox,
        model: Model,
        *,
        history: History,
        claim: Claim,
        pause: Callable[[float], None],
        check: Callable[[], None],
        answers: AnswerStream | None = None,
        keep: Callable[[Callable[[], Operation[journal.Appended]]], journal.Appended] | None = None,
    ) -> None:
        self._run = run
        self._keep = keep or (lambda operation: run(operation()))
        self._handle = handle
        self._program = program
        self._toolbox = toolbox
        self._definitions = toolbox.definitions
        self._model = model
        self._pause = pause
        self._check = check
        self._answers = answers
        self._until_s = time.monotonic() + program.limits.wall_seconds - claim.age_s
        self._written = len(history.own)
        self._problem = ""
        self._cleared_after = 0
        """The answers after which results were cleared because the model refused the conversation."""
        self._asked_at = 0.0
        age_s = answer_age_s(claim)
        self._answered_at = None if age_s is None else time.monotonic() - age_s
        self._appended: journal.Appended | None = None
        """Limits of the tree as of the last journal write; None before the first of this attempt."""
        self._new_calls: set[str] = set()
        """Calls of an answer that this attempt got, which no attempt has begun."""
        self.task = history.task
        self.conversation = history.conversation()
        self._calibration = Calibration(self.conversation, self._definitions)
        toolbox.context = msgspec.structs.replace(
            toolbox.context,
            read_parts=self.conversation.read_parts,
            count_tokens=toolbox.context.count_tokens.calibrated_by(self._calibration),
            first_result=FirstResult(self.conversation.first_result),
        )
        self._facts = FactCollector(begin_attempt(claim))
        if history.own and isinstance(history.own[-1], Assistant):
            # the previous attempt may have ended between writing the answer and storing its references
            self._take_references()

    @property
    def written(self) -> int:
        """The number of records in the journal."""
        return self._written

    def step(self) -> Outcome:
        """Run the next step. Raises `Fenced` when another attempt runs the process."""
        if self.conversation.start is None and isinstance(self.task, SpawnTask):
            takes = self._model.takes_deferred_tools
            first = first_messages(self._toolbox, self._program, self.task, takes_deferred=takes)
            self._write(self._run(first))
            return None
        calls = self.conversation.open_calls()
        if calls:
            return self._run_calls(calls)
        own_turns = self.conversation.own_turns
        if own_turns and own_turns[-1].answer.is_last:
            return end_after(own_turns[-1].answer, self.conversation.text)
        over = self._over_limit()
        if over is None:
            self._offer_tools()
            self._clear_results()
        return over or self._ask()

    def _offer_tools(self) -> None:
        """Offer the tools that were held back, once there is a descriptor, or once the model's server has
        refused deferred ones where prompts are cached. Recorded, so that each later attempt sends the
        same."""
        conversation = self.conversation
        if conversation.is_offered:
            return
        is_late = conversation.is_undeferred and self._program.prompt_cache
        if is_late or (self._appended and self._appended.holds_any):
            self._write(offer(self._toolbox, conversation))

    def _clear_results(self) -> None:
        """Clear old results if the last answer used too many tokens. Recorded, so that each later attempt
        sends the same."""
        conversation = self.conversation
        if not conversation.own_turns or conversation.is_just_cleared:
            return
        if self._program.clearing.is_reached(conversation.own_turns[-1].answer.tokens):
            self._clear(self._program.clearing)

    def _clear_for_length(self) -> bool:
        """Clear what can be, down to the program's share of what the last answer used: the model refuses the
        conversation for its length. Return whether there was anything; once after each answer."""
        turns = self.conversation.own_turns
        if not turns or self._cleared_after == len(turns):
            return False
        self._cleared_after = len(turns)
        return self._clear(
            msgspec.structs.replace(
                self._program.clearing, clear_at_tokens=max(turns[-1].answer.tokens, 1), keep_turns=1
            )
        )

    def _clear(self, clearing: ClearingConfig) -> bool:
        conversation = self.conversation
        used = conversation.own_turns[-1].answer.tokens
        lines = self._run(
            find_clearable(
                self._handle,
                conversation.shown_results(),
                len(conversation.turns),
                used,
                self._calibration,
                clearing,
            )
        )
        if lines:
            log.info("%s: %s old results are cleared after %s tokens", self._handle.id, len(lines), used)
            self._write(Cleared(lines=lines))
        return bool(lines)

    def _ask(self) -> Outcome:
        self._asked_at = time.monotonic()
        try:
            answer = self._model.query(
                ModelRequest(
                    model=self._program.model,
                    system=self.conversation.system,
                    messages=self.conversation.messages(),
                    tools=sent_tools(self._definitions, self.conversation),
                    parameters=self._program.parameters,
                    until_s=self._until_s,
                    pause=self._pause,
                    check=self._check,
                    prompt_cache=self._program.prompt_cache,
                    is_first=not self.conversation.turns,
                    listener=None if self._answers is None else StreamListener(self._run, self._answers),
                    give_up_s=self._program.give_up_seconds,
                    report=self._note_retry,
                )
            )
        except PromptTooLong as error:
            return None if self._clear_for_length() else ProcessEnd("failed", None, str(error))
        except DeferralRefused as error:
            log.info("%s: its tools are not deferred any more: %s", self._handle.id, error)
            self._write(Undeferred(reason=str(error)))
            return None
        except TimeIsOver as error:
            return self._over_limit() or ProcessEnd("failed", None, str(error))
        except ModelFailed as error:
            return ProcessEnd("failed", None, str(error))
        self._record_problem("")
        self._facts.tell(turn=len(self.conversation.turns) + 1)
        if self._answers is None:
            self._write(answer, self._asked_at)
        else:
            self._write(msgspec.structs.replace(answer, said=self._answers.chars), self._asked_at)
            self._run(self._answers.complete(is_paused=answer.is_paused))
        self._new_calls = {call.key for call in self.conversation.open_calls()}
        self._take_references()
        return None

    def _note_retry(self, retry: Retry) -> None:
        log.info("%s: %s", self._handle.id, retry)
        self._facts.add_retry(retry, time.monotonic() - self._asked_at)
        self._record_problem(str(retry))

    def _record_problem(self, trouble: str) -> None:
        """Write what delays this agent to its process record, for status displays."""
        if trouble == self._problem:
            return
        with suppress(*STORE_FAILURES):  # then nothing can be displayed either
            self._run(leases.renew(self._handle, trouble))
            self._problem = trouble

    def _take_references(self) -> None:
        """Store the reference passages of the last answer before the tools of that turn run, so that they can
        use them. The answer must be in the journal first: another attempt might get another answer. A note to
        the model names the passages that exceed the quota."""
        text = self.conversation.text
        if "<ref" not in text:
            return
        context, slot = self._toolbox.context, f"turn{len(self.conversation.turns)}"
        *paused, _ = self.conversation.answer
        there = reference_passages(context, "".join(turn.text for turn in paused))
        refused = []
        for name, passage in reference_passages(context, text).items():
            if there.get(name) == passage:
                continue
            try:
                self._run(store_passage(context, name, passage, slot))
            except NotFound:
                continue  # an earlier attempt stored it, and a tool of this turn dropped it
            except QuotaExceeded as error:
                refused.append(f"ref:{name} was not stored.\n{fd_error(error, f'ref:{name}')}")
                log.warning("%s: ref:%s was not stored: %s", self._handle.id, name, error)
        if refused:
            self._write(Note(text="\n".join(refused)))

    def _run_calls(self, calls: list[ToolCall]) -> Outcome:
        started: list[tuple[ToolCall, Started]] = []
        unsent: Batch = []
        # a person is asked about all of them together, while the others run
        calls = sorted(calls, key=lambda each: not self._toolbox.asks_person(each.name))
        for call in calls:
            if call.malformed:
                error = InvalidArgument("", f"{call.malformed}; make the call again")
                self._write_result(call, tool_result(fd_error(error), is_error=True))
                continue
            began = time.monotonic()
            is_new = call.key in self._new_calls
            self._new_calls.discard(call.key)
            begin = self._toolbox.start(call.name, call.input, call.key, is_new=is_new, unsent=unsent)
            try:
                with self._toolbox.observed(call.name, call.id) as seen:
                    outcome = seen(self._run(begin), call.input)
            except NobodyAnswered as error:
                reason = NO_ANSWER.text(error.number, error.seconds)
                return ProcessEnd("failed", None, reason, self.conversation.text)
            if not isinstance(outcome, Started):
                # of a call that goes on after a wait, the time since its answer is known
                self._write_result(call, outcome, began if is_new else None, unsent)
                unsent = []
                continue
            started.append((call, outcome))
            if outcome.until_s is not None and not outcome.resumes and call is not calls[-1]:
                # another attempt must not wait longer; a spawn that it repeats finds its child
                self._run(tool_calls.store_results(self._handle, unsent))
                unsent = []
        return self._await(started, unsent) if started else None

    def _await(self, started: list[tuple[ToolCall, Started]], unsent: Batch) -> Awaited | None:
        """Write the results of those calls whose processes have ended. Return what the others wait for."""
        processes = [process for _, each in started for process in each.processes]
        now = self._run(waiting.look_at(self._handle, processes, unsent))
        live: list[str] = []
        questions: list[int] = []
        waits: list[float] = []
        for call, children in started:
            running = [child for child in children.processes if child not in now.ended]
            left_s = children.left_s(now.now_s)
            if not (running or children.questions) or (left_s is not None and left_s <= 0):
                if not children.resumes:  # else the next step makes the call again
                    result = self._run(self._toolbox.finished(children, now.records))
                    self._write_result(call, result, self._answered_at)
                continue
            live += running
            questions += children.questions
            if left_s is not None:
                waits.append(left_s)
        if not live and not questions:
            return None
        return Awaited(tuple(live), min(waits, default=None), tuple(questions))

    def extend(self, seconds: float) -> None:
        """Give the agent as much more time: that in which it waited for a person."""
        self._until_s += seconds

    def _over_limit(self) -> ProcessEnd | None:
        conversation = self.conversation
        if self._appended is None:
            ask_fds = not conversation.is_offered
            self._appended = self._run(journal.append(self._handle, self._written, [], ask_fds=ask_fds))
        reached = self._appended.reached
        reason = reached_limit(self._program.limits, conversation, self._until_s, time.monotonic(), reached)
        return None if reason is None else ProcessEnd("failed", None, reason, conversation.text)

    def _write_result(
        self, call: ToolCall, outcome: ToolResult, began: float | None = None, results: Batch | None = None
    ) -> None:
        content = outcome.content
        if isinstance(content, str):
            content = escape_surrogates(content)
        self._facts.tell(tool=call.name, key=call.key)
        result = Result(call=call.id, content=content, is_error=outcome.is_error, facts=outcome.facts)
        self._write(result, began, results)

    def _write(self, entry: Entry, began: float | None = None, results: Batch | None = None) -> None:
        """Append to the journal, and store `results` of calls. `began` is when the work for it began, by
        `time.monotonic`."""
        now = time.monotonic()
        record = self._facts.add_to(encode_entry(entry), None if began is None else now - began)
        usage = entry if isinstance(entry, Assistant) else None
        self._appended = self._keep(
            partial(
                journal.append,
                *(self._handle, self._written, [record]),
                usage=usage,
                results=results or (),
                ask_fds=not self.conversation.is_offered,
            )
        )
        self._facts.stored_in(time.monotonic() - now)
        if isinstance(entry, Assistant):
            self._answered_at = time.monotonic()
        self._written = self._appended.length
        self.conversation.add(entry)

    def hand_over(
        self,
        end: ProcessEnd,
        keep: Callable[[Callable[[], tuple[str, ...]]], tuple[str, ...]] = lambda step: step(),
        *,
        is_root: bool,
    ) -> tuple[str, ...]:
        """End the process. Return the ids of the ancestors to wake. `keep` calls the last step, which is
        idempotent, until the store takes it.

        A long answer is passed to the parent as a descriptor: the answer stream if it holds exactly the
        answer, else a new one. A process that is not a root and exits with 0 releases its own descriptors.
        """
        fd, answer = "", escape_surrogates(end.answer)
        if is_long_answer(self.task, answer, self._toolbox.context.count_tokens):
            if self._answers and self._answers.chars == len(answer):
                fd = self._answers.fd
            else:
                size, limit = self._program.file_descriptor.default_page_size, self.task.answer_limit
                fd, answer = self._run(store_long_answer(self._handle, answer, size, limit))
        if isinstance(self.task, SpawnTask) and self.task.hands_back:
            self._run(processes.return_descriptors(self._handle))  # first: the end releases its descriptors

        def finish() -> tuple[str, ...]:
            woken: tuple[str, ...] = self._run(
                processes.end(
                    self._handle,
                    end.state,
                    exit_code=end.exit_code,
                    reason=end.reason,
                    release=end.state == "exited" and end.exit_code == 0 and not is_root,
                    answer="" if fd else answer,
                    answer_fd=fd,
                    long_answer=answer,
                )
            )
            return woken

        return keep(finish)
