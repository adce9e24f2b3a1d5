"""Run an agent as one attempt at its process: restore its conversation, step it until it ends or waits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext

from fdstore.agents.loop.agent import Agent
from fdstore.agents.loop.answer_stream import open_answer_stream
from fdstore.agents.loop.conversation import Start
from fdstore.agents.loop.ends import Awaited
from fdstore.agents.loop.history import read_history
from fdstore.agents.loop.models.base import Model
from fdstore.agents.loop.models.observed import ObservedModel
from fdstore.agents.loop.program_loader import Bundle, Program
from fdstore.agents.runtime.attempt import Attempt, AttemptOutcome
from fdstore.agents.runtime.claim import Lease, WorkerStopping
from fdstore.client import Store
from fdstore.errors import InvalidProgram, NewerFormat, quoted
from fdstore.files.permissions import Permissions
from fdstore.model.lifecycle import ProcessEnd
from fdstore.model.model_servers import ModelServer
from fdstore.model.pipeline_limits import PipelineLimits
from fdstore.results.context import Context, Linked, UserCode, Watch
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import processes, questions, waiting
from fdstore.store.record_format import decoding
from fdstore.tools.asking import LOOK_EVERY_S
from fdstore.tools.catalogue import BUILT_IN
from fdstore.tools.functions.python_tool import defining_module, import_tool
from fdstore.tools.needs import EXPORT_ROOT
from fdstore.tools.process_task import ForkTask, Task
from fdstore.tools.toolbox import Toolbox

log = logging.getLogger("fdstore.agent")

_STARTING_AGENTS = frozenset(name for name, tool in BUILT_IN.items() if tool.starts == "agents")


def run_agent(
    attempt: Attempt,
    model: Callable[[ModelServer], Model],
    permissions: Permissions,
    *,
    own: Bundle | None,
    wait_here: bool,
    alone_until: int | None,
    user_code: UserCode,
) -> AttemptOutcome:
    """Run the agent until it ends, waits, or is past the journal record `alone_until`. The other parameters
    are those of `run_process`."""
    store, claim, handle, process = attempt.store, attempt.claim, attempt.handle, attempt.process
    with decoding(f"the program of process {process}"):
        bundle = own or Bundle.from_json(claim.bundle)
        program = bundle.programs[claim.program]
    check_tools(process, program)
    history = store.run(read_history(handle.keys, claim.journal))
    check_provider(history.start, program)
    if history.unknown:
        log.warning("%s: journal records of newer kinds are skipped: %s", process, history.unknown)
    toolbox = make_toolbox(
        handle,
        store.prefix,
        bundle,
        program,
        history.task,
        wake=attempt.wake,
        permissions=permissions,
        user_code=user_code,
        watch=attempt.lease.watched,
    )
    answers = None
    if claim.outputs:
        answers = store.run(open_answer_stream(handle, claim.outputs[0], history.last_answer))
    agent = Agent(
        store.run,
        handle,
        program,
        toolbox,
        ObservedModel(model(program.server)),
        history=history,
        claim=claim,
        pause=attempt.lease.pause,
        check=attempt.lease.check_held,
        answers=answers,
        keep=None if wait_here else attempt.keep,
    )
    while True:
        attempt.log.turns = len(agent.conversation.own_turns)
        attempt.lease.check()
        outcome = agent.step()
        if isinstance(outcome, Awaited):
            if wait_here:
                began = time.monotonic()
                _wait(store, handle, outcome, attempt.lease)
                agent.extend(time.monotonic() - began if outcome.questions else 0.0)
            elif store.run(waiting.park(handle, outcome.processes, outcome.left_s, outcome.questions)):
                attempt.log.left(f"waits for {outcome}")
                return "waiting"
        elif isinstance(outcome, ProcessEnd):
            return attempt.ended(outcome, agent.hand_over(outcome, attempt.end, is_root=not claim.parent))
        elif alone_until is not None and agent.written > alone_until:
            raise WorkerStopping  # past the point of the loss: continue it among the others


def _wait(store: Store, handle: ProcessHandle, awaited: Awaited, lease: Lease) -> None:
    """Wait here for the children and the person that an agent waits for, as it would if it were parked."""
    until = None if awaited.left_s is None else time.monotonic() + awaited.left_s
    while True:
        lease.check()
        slice_s = 1.0 if until is None else min(1.0, until - time.monotonic())
        if slice_s <= 0:
            return
        if not awaited.questions:
            if store.run(waiting.wait_until_ended(store.prefix, list(awaited.processes), slice_s)):
                return
        elif store.run(questions.any_settled(handle, awaited.questions)):
            return
        else:
            lease.pause(min(slice_s, LOOK_EVERY_S))


def linked_programs(bundle: Bundle, program: Program) -> dict[str, Linked]:
    """Return the programs that `program` may spawn, by alias."""
    return {
        alias: Linked(
            key=linked.key,
            description=linked.description,
            digest=bundle.digest,
            bundle=bundle.json,
            preload=bundle.programs[linked.key].preload,
            price=bundle.programs[linked.key].price,
            server=bundle.programs[linked.key].server,
        )
        for alias, linked in program.linked.items()
    }


def make_toolbox(
    handle: ProcessHandle,
    prefix: str,
    bundle: Bundle,
    program: Program,
    task: Task,
    *,
    wake: Callable[[str], None],
    permissions: Permissions,
    user_code: UserCode = nullcontext,
    watch: Watch = nullcontext,
) -> Toolbox:
    """Return the tools of a program for its process, limited by `permissions`. A fork is refused those that
    start agents unless its task allows them. Raises `NotAllowed`, `PathRefused`, `InvalidArgument`."""
    permissions.check_python(program.python)
    export_root = permissions.resolve_export_root(program.export_root)
    for name in program.tools if export_root is None else ():
        if BUILT_IN[name].needs is EXPORT_ROOT:
            log.warning("%s has no %s: this worker has no export root (--export-root)", handle.id, name)
    is_leaf = isinstance(task, ForkTask) and not task.may_spawn
    context = Context(
        handle=handle,
        prefix=prefix,
        config=program.file_descriptor,
        enabled=frozenset(program.tools),
        refused=_STARTING_AGENTS if is_leaf else frozenset(),
        fds_on=program.fds_on,
        export_root=export_root,
        preload_root=permissions.resolve_preload_root(program.preload_root),
        permissions=permissions,
        linked=linked_programs(bundle, program),
        wake=wake,
        # the tree already has the bundle, so its text is not sent again for each fork
        own_program=processes.StoredProgram(program.name, bundle.digest, "", program.price),
        forks_may_spawn=program.limits.forks_may_spawn,
        commands=program.commands,
        pipeline_limits=PipelineLimits.of(program.limits),
        user_code=user_code,
        watch=watch,
        python=program.python_limits,
        ask=program.ask,
        people=program.people,
    )
    tools_path = program.tools_path if permissions.all_allowed else None
    with user_code() if program.python else nullcontext():
        functions = {path: import_tool(path, tools_path) for path in program.python}
    permissions.check_origin({path: defining_module(each) for path, each in functions.items()})
    return Toolbox(context, list(functions.values()))


def check_provider(start: Start | None, program: Program) -> None:
    """Check that a conversation goes on with the provider that it began with: what another one said in it,
    such as what it thought, has a form of its own. Raises `InvalidProgram`."""
    if start is not None and start.provider != program.provider:
        raise InvalidProgram(
            "model.provider",
            f'this conversation began with the provider "{start.provider}" and cannot go on with'
            f' "{program.provider}"; begin a new one',
        )


def check_tools(process: str, program: Program) -> None:
    """Check that every built-in tool of a program exists here. Raises `NewerFormat`."""
    unknown = set(program.tools) - BUILT_IN.keys()
    if unknown:
        names = ", ".join(sorted(map(quoted, unknown)))
        raise NewerFormat(f"the program of process {process}", f"it has tools not known here: {names}")
