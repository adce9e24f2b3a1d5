"""Use a Python function as a tool: its schema from the signature, its description from the docstring. A
function made with the SDK's `beta_tool` brings both.

The store does not know a function's side effects. If a worker dies while one runs, the next attempt runs it
again, unless it is marked `@tool(repeatable=False)`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from fdstore.elements.facts import NO_FACTS, ResultFacts
from fdstore.errors import FDStoreError, InvalidArgument, TooLarge, quoted
from fdstore.errors.description import describe_error, is_a, logged
from fdstore.results.content_blocks import content_blocks
from fdstore.results.tool_errors import error_output, is_tool_error
from fdstore.results.tool_policy import NO_POLICY, Inline, PreviewMode, ToolPolicy
from fdstore.results.wrapping import to_text
from fdstore.store.contents import reading
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.ref_tags import placeholders
from fdstore.text.selection import selector
from fdstore.tools.arguments import require_object
from fdstore.tools.functions.docstrings import split_docstring
from fdstore.tools.functions.parameters import parameters_of
from fdstore.tools.functions.sdk_tools import function_of, is_sdk_tool
from fdstore.wire.operation import Operation

log = logging.getLogger("fdstore.tools")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SDK_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

_REPEATABLE = "__fdstore_repeatable__"
_POLICY = "__fdstore_policy__"

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_tools_paths: list[str] = []
"""Directories from which functions were imported, each appended to `sys.path` once."""

MAX_NESTING = 100
"""Maximum nesting of arguments that are searched for `{{...}}` placeholders."""

MAX_EXPANDED = 20
"""The maximum number of `{{...}}` selectors that the facts of a result list."""


class PythonTool(msgspec.Struct, frozen=True):
    """A function with its definition for the model, and the conversion of a model's arguments to its values.
    The definition is encoded, so that callers cannot modify it."""

    name: str
    encoded_definition: bytes
    convert: Callable[[object], dict[str, Any]]
    function: Callable[..., Any]
    repeatable: bool = True
    policy: ToolPolicy = NO_POLICY

    def definition(self) -> dict[str, Any]:
        """Return the Messages API tool dict."""
        found: dict[str, Any] = msgspec.json.decode(self.encoded_definition)
        return found


def tool(
    *,
    repeatable: bool = True,
    inline: Inline | None = None,
    max_direct_output_chars: int | None = None,
    max_direct_output_tokens: int | None = None,
    preview: PreviewMode | None = None,
    preview_chars: int | None = None,
) -> Callable[[F], F]:
    """Set how a function runs as a tool, and what becomes of its results.

    repeatable   False: one call of the model runs it at most once. If the worker dies meanwhile, the next
                 attempt does not run it again: the model gets `unknown_outcome`, and the advice to check
                 whether it took effect. A call without an id (`Toolset.call` without `call_id`) cannot be
                 told from another and runs each time.
    inline, max_direct_output_chars, max_direct_output_tokens, preview, preview_chars
                 as in `ToolPolicy`; what the configuration says of this tool counts more

    Raises `InvalidArgument` for values that are wrong or contradict each other.

    >>> @fdstore.tool(repeatable=False)
    ... def send_mail(to: str, text: str) -> str:
    ...     "Send a mail."
    ...     return f"sent to {to}"
    >>> tools = fdstore.Toolset(proc, python=[send_mail])
    >>> tools.call("send_mail", {"to": "ann", "text": "hello"}, call_id="1").content
    'sent to ann'
    """

    given: dict[str, Any] = {
        "inline": inline,
        "max_direct_output_chars": max_direct_output_chars,
        "max_direct_output_tokens": max_direct_output_tokens,
        "preview": preview,
        "preview_chars": preview_chars,
    }
    policy = ToolPolicy(**{name: value for name, value in given.items() if value is not None})
    policy.check()

    def mark(function: F) -> F:
        setattr(function, _REPEATABLE, repeatable)
        setattr(function, _POLICY, policy)
        return function

    return mark


def python_tool(function: Callable[..., Any]) -> PythonTool:
    """Return the tool for a function. Its parameters need JSON types, dataclasses, TypedDicts, enums,
    Literals, msgspec Structs, or types that pydantic validates. Annotations (`Annotated[int, "text"]`) and an
    `Args:` section of the docstring describe them to the model.

    Raises `InvalidArgument` if the function cannot be a tool.
    """
    if is_sdk_tool(function):
        return _sdk_tool(function)
    name = getattr(function, "__name__", "")
    if not callable(function) or not _NAME.fullmatch(name):
        raise InvalidArgument("python", f"{quoted(name or function)} is not a function with a plain name")
    try:
        names = list(inspect.signature(function).parameters)
        description, described = split_docstring(inspect.getdoc(function) or "", names)
        parameters = parameters_of(function, name, described)
    except (TypeError, NameError, ValueError) as error:
        raise InvalidArgument("python", f"{name} cannot be a tool: {error}") from error
    definition = {"name": name, "description": description or name, "input_schema": parameters.schema}
    repeatable = getattr(function, _REPEATABLE, True)
    policy = getattr(function, _POLICY, NO_POLICY)
    return PythonTool(name, msgspec.json.encode(definition), parameters.convert, function, repeatable, policy)


def _sdk_tool(tool: Any) -> PythonTool:
    """Return the tool for a function of the SDK's tool runner. Raises `InvalidArgument`."""
    definition = tool.to_dict()
    name = definition["name"]
    if not _SDK_NAME.fullmatch(name):
        raise InvalidArgument("python", f"{quoted(name)} has a name that not every model API takes")
    # the mark may be above or below the SDK's decorator
    repeatable = getattr(tool, _REPEATABLE, getattr(tool.func, _REPEATABLE, True))
    policy = getattr(tool, _POLICY, getattr(tool.func, _POLICY, NO_POLICY))
    encoded = msgspec.json.encode(definition)
    return PythonTool(name, encoded, require_object, function_of(tool), repeatable, policy)


def import_tool(path: str, tools_path: str | None = None) -> Callable[..., Any]:
    """Import the function "package.module:function", also from the directory `tools_path`. That directory is
    last on `sys.path`: a file there never shadows an installed package. Raises `InvalidArgument`."""
    module, _, name = path.partition(":")
    if tools_path is not None and tools_path not in _tools_paths:
        _tools_paths.append(tools_path)
        sys.path.append(tools_path)
    try:
        home = import_module(module)
        found: Callable[..., Any] = getattr(home, name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InvalidArgument("tools.python", f"{quoted(path)} cannot be imported here: {error}") from error
    except KeyboardInterrupt:
        raise
    # a module may call sys.exit or load an extension that panics: fail the agent, not the worker
    except BaseException as error:
        log.error("%s cannot be imported", path, exc_info=logged(error))
        problem = f"{quoted(path)} cannot be imported here: {describe_error(error)[:300]}"
        raise InvalidArgument("tools.python", problem) from error
    if tools_path is not None:
        _check_home(module, getattr(home, "__file__", None) or "", tools_path)
    return found


def defining_module(function: Any) -> str:
    """Return the module in which a function was defined, also one that was made a tool of the SDK."""
    defined = function.func if is_sdk_tool(function) else function
    return str(getattr(defined, "__module__", ""))


def _check_home(module: str, file: str, tools_path: str) -> None:
    """Refuse a module of another program's directory: Python keeps one module of each name."""
    for other in _tools_paths:
        if file.startswith(other + os.sep) and not file.startswith(tools_path + os.sep):
            problem = (
                f"the module {quoted(module)} of another program was imported here from {quoted(other, 300)}"
            )
            raise InvalidArgument("tools.python", f"{problem}; give one of them another name")


def call_function(
    tool: PythonTool, values: dict[str, Any]
) -> tuple[str | bytes | list[Any] | FDStoreError, bool]:
    """Call a function. Return its result as text, bytes or content blocks, or its error, and whether it
    failed. An error is for the model to read, so its text starts with the exception."""
    result = result_of(tool, values, _output_of)
    if not isinstance(result, Raised):
        return result, False
    output = error_output(result.error)
    return (output if isinstance(output, FDStoreError) else _output_of(output)), True


class Raised(msgspec.Struct, frozen=True):
    """The exception that a function has raised."""

    error: BaseException


def result_of(tool: PythonTool, values: dict[str, Any], convert: Callable[[Any], T]) -> T | Raised:
    """Call a function, also a coroutine function. Return its converted result, or what it or the conversion
    has raised, which is logged unless it is meant for the model."""
    try:
        result = tool.function(**values)
        if inspect.iscoroutine(result):
            # in a new thread, since this one may have a running event loop, as in a notebook
            with ThreadPoolExecutor(1) as thread:
                result = thread.submit(asyncio.run, result).result()
        return convert(result)
    except KeyboardInterrupt:
        raise
    # sys.exit, a panic of a Rust extension or a CancelledError of the function's own event loop must not
    # end the agent. A cancellation of the task that awaits the call is not raised here.
    except BaseException as error:
        if not is_a(error, FDStoreError) and not is_tool_error(error):
            log.error("the tool %s failed", tool.name, exc_info=logged(error))
        return Raised(error)


def _output_of(result: Any) -> str | bytes | list[Any]:
    if isinstance(result, (bytes, bytearray)):
        return bytes(result)
    blocks = content_blocks(result)
    return to_text(result) if blocks is None else list(blocks)


def expand_placeholders(
    handle: ProcessHandle, arguments: Any, limit: int
) -> Operation[tuple[Any, ResultFacts]]:
    """Replace every `{{fd:3#L10-20}}` in the arguments by the text it names. Return them, and which were
    replaced.

    Raises `TooLarge` if these texts together have more than `limit` characters; little more than that is
    read.
    """
    counts = Counter(found.selector for text in texts_in(arguments) for found in placeholders(text))
    texts: dict[str, str] = {}
    total = 0
    for name, times in counts.items():
        chosen = selector(name)
        part = yield from reading.read(handle, chosen.fd, chosen.part, limit)
        texts[name] = part.text
        total += times * len(part.text)
        if total > limit:
            raise TooLarge("the text that {{...}} stands for", total, limit, "pass a smaller part")
    if not texts:
        return arguments, NO_FACTS
    return _replace_placeholders(arguments, texts), ResultFacts(expanded=tuple(texts)[:MAX_EXPANDED])


def texts_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield all strings in the arguments. Raises `InvalidArgument` if they are nested too deep."""
    if depth > MAX_NESTING:
        raise InvalidArgument("", f"the arguments are nested deeper than {MAX_NESTING} levels")
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_in(each, depth + 1)


def _replace_placeholders(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, str):
        parts, end = [], 0
        for found in placeholders(value):
            parts += [value[end : found.start], texts[found.selector]]
            end = found.end
        return "".join([*parts, value[end:]])
    if isinstance(value, dict):
        return {key: _replace_placeholders(each, texts) for key, each in value.items()}
    if isinstance(value, list):
        return [_replace_placeholders(each, texts) for each in value]
    return value
