"""CrewAI: keep long texts out of what the agents of a crew read.

    with FdstoreCrew(fdstore.connect(), "chat-7") as ours:
        agent = Agent(..., backstory=ours.instructions, tools=[read_log, *ours.tools])
        Crew(agents=[agent], tasks=[...]).kickoff(inputs={"log": log})

Inside the block, hooks show long results of all tools, and long inputs of crews, as their `fd_result`; crews
that other threads or tasks of this program run are not concerned. CrewAI shows results as texts, so there are
no images, and its hooks know no ids of calls: a result of a repeated call is stored again.

The thread is that of the `FdstoreCrew`, so make one for each run of a crew, and give its id again to go on. A
crew that runs in the block of another one, as in its tools, shares its thread unless it is given one.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Unpack

from fdstore.client import Store
from fdstore.errors import InvalidArgument, MissingExtra
from fdstore.integrations.shared.content_parts import texts_in, with_texts
from fdstore.integrations.thread_tools import (
    ThreadOptions,
    ThreadTools,
    new_thread,
    thread_of_tool,
    within_tool_of,
)
from fdstore.setup.optional_packages import how_to_install

try:
    from crewai.hooks.dispatch import InterceptionPoint, get_scoped_hooks, scoped_hooks
    from crewai.hooks.tool_hooks import ToolCallHookContext
    from crewai.tools import BaseTool
    from crewai.utilities.pydantic_schema_utils import create_model_from_schema
    from pydantic import PrivateAttr
except ImportError as error:
    raise MissingExtra("crewai", how_to_install("crewai")) from error


class FdstoreCrew:
    """The hooks and tools for runs of crews.

    store    a connected store of `fdstore.connect`: CrewAI's hooks are not awaited
    thread   id of the run or conversation, which has a process of its own. None: a new one
    options  see `ThreadOptions`

    Raises `InvalidArgument`.

    >>> ours = FdstoreCrew(store, "chat-7")
    >>> [tool.name for tool in ours.tools][:2]
    ['read_fd', 'search_fd']
    >>> with ours:
    ...     pass  # crews run here
    """

    def __init__(self, store: Store, thread: str | None = None, **options: Unpack[ThreadOptions]) -> None:
        if not isinstance(store, Store):
            raise InvalidArgument("store", "a store of fdstore.connect() is needed: hooks are not awaited")
        self._ours = ThreadTools(store, **options)
        self._given, self._new = thread, new_thread()
        self._scopes: list[ExitStack] = []

    @property
    def instructions(self) -> str:
        """Return what an agent is to know of descriptors, for its backstory."""
        return self._ours.instructions

    @property
    def tools(self) -> list[BaseTool]:
        """Our tools, for the tools of an agent."""
        return [_tool(self._ours, self, each) for each in self._ours.definitions_for("anthropic")]

    @property
    def thread(self) -> str:
        """The thread of what runs now: the given one, that of the agent whose tool runs it, or its own."""
        return self._given or thread_of_tool() or self._new

    def __enter__(self) -> FdstoreCrew:
        hooks = {point: get_scoped_hooks(point) for point in InterceptionPoint}  # of blocks around this one
        hooks[InterceptionPoint.POST_TOOL_CALL].append(self._after_tool)
        hooks[InterceptionPoint.INPUT].append(self._on_input)
        hooks[InterceptionPoint.PRE_MODEL_CALL].append(self._before_model)
        with ExitStack() as scope:
            scope.enter_context(scoped_hooks(hooks))
            scope.enter_context(within_tool_of(self.thread))
            self._scopes.append(scope.pop_all())
        return self

    def __exit__(self, *error: object) -> None:
        self._scopes.pop().close()

    def _after_tool(self, call: ToolCallHookContext) -> str | None:
        """Return a result as the model is to see it; None leaves it as it is."""
        if not isinstance(call.tool_result, str) or getattr(call.tool, "result_as_answer", False):
            return None  # the answer of the agent is what its tool returned
        raw = getattr(call, "raw_tool_result", None)  # of which CrewAI 1.15 shows the repr
        value = raw if isinstance(raw, (dict, list)) and str(raw) == call.tool_result else call.tool_result
        shown = self._ours.run(self._ours.offload(self.thread, value, call.tool_name))
        return None if shown is None or shown.descriptor is None else str(shown.content)

    def _before_model(self, call: Any) -> None:
        """Look for ids of others in what the model is to see."""
        self._ours.see(self.thread, [each for each in call.messages if each.get("role") != "system"])

    def _on_input(self, context: Any) -> Any:
        """Return the inputs of a crew with their long texts stored."""
        texts = texts_in(context.payload)
        shown = [self._ours.run(self._ours.wrap_input(self.thread, text)) for text in texts]
        return None if shown == texts else with_texts(context.payload, shown)


class _Tool(BaseTool):
    """One of our tools. Its results are not cached: a stream grows."""

    _ours: ThreadTools = PrivateAttr()
    _crew: FdstoreCrew = PrivateAttr()
    _defaults: dict[str, Any] = PrivateAttr()

    def _run(self, **arguments: Any) -> str:
        # CrewAI adds the defaults, but `fd:3#L5` may not come with a start
        defaults = self._defaults
        given = {name: each for name, each in arguments.items() if each not in (None, defaults.get(name))}
        return self._ours.run(self._ours.call(self._crew.thread, self.name, given)).text


def _tool(ours: ThreadTools, crew: FdstoreCrew, definition: dict[str, Any]) -> _Tool:
    name = definition["name"]
    arguments = create_model_from_schema(definition["input_schema"], model_name=name)
    made = _Tool(
        name=name, description=definition["description"], args_schema=arguments, cache_function=_never_cached
    )
    properties = definition["input_schema"]["properties"].items()
    made._ours, made._crew = ours, crew
    made._defaults = {argument: schema.get("default") for argument, schema in properties}
    return made


def _never_cached(arguments: Any, result: Any) -> bool:
    return False
