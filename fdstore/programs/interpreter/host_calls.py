"""Calls of the host by a program: the values that the host makes of the program's, and the answers.

    a stop of the interpreter -> read_call -> AskedHost   the host is asked, and answers
                                           -> Step        answered here: unknown names, random bytes

A value that the host cannot take is an error of the program, never one of the host (`refuse`). Nothing here
knows the session: it numbers the calls, and bounds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from fdstore.programs.interpreter import failures, prelude
from fdstore.programs.interpreter.events import Answer, Failed, Raise
from fdstore.programs.interpreter.values import NotTaken, to_json, to_result

AWAITED = frozenset({"_ask", "_spawn", "_pipe", "_tool"})
"""The host calls that programs await, so that other tasks run meanwhile; `asyncio.sleep` is one, too."""

CLOCKS = frozenset({"time.time", "datetime.now", "date.today"})
SLEEPS = frozenset({"time.sleep", "asyncio.sleep"})

MAX_ENTROPY = 1 << 20
"""Bytes that one `os.urandom` returns at most."""

Step = Callable[[], Any]
"""The next step of the interpreter; returns where it stops."""


class AskedHost(msgspec.Struct, frozen=True):
    """A call that the host answers: its name in `events.py`, and its arguments as JSON has them."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}


def read_call(call: Any, random_bytes: Callable[[int], bytes]) -> AskedHost | Step:
    """Return what the host is asked, or how the interpreter goes on without it. Raises
    `values.VALUE_ERRORS`."""
    name = call.function_name
    if not call.is_os_function:
        if not name.startswith(prelude.HOST):
            unknown = failures.unknown_function(name, call.args)
            return lambda: call.resume(unknown)
        try:
            args, kwargs = to_json(list(call.args)), to_json(call.kwargs)
        except NotTaken as error:
            return answer_call(call, Raise("TypeError", str(error)))
        return AskedHost(_host_name(call), tuple(args), kwargs)
    if name in CLOCKS:
        return AskedHost("clock")
    if name in SLEEPS:
        return AskedHost("sleep", (float(call.args[0]),))
    if name == "os.urandom":
        data = random_bytes(min(int(call.args[0]), MAX_ENTROPY))
        return lambda: call.resume({"return_value": data})
    if name == "import":
        return lambda: call.resume_not_handled()
    return answer_call(call, Raise("PermissionError", failures.NO_SYSTEM))


def is_awaited(call: Any) -> bool:
    """Return whether programs await this call."""
    return call.function_name == "asyncio.sleep" or _host_name(call) in AWAITED


def answer_call(call: Any, answer: Answer) -> Step:
    """Return the step that answers a call. Raises TypeError for an answer that code cannot have."""
    if call.is_os_function and not isinstance(answer, Raise):
        zone = call.args[0] if call.function_name == "datetime.now" else None
        result = to_result(answer, call.function_name, zone)
    else:
        result = to_result(answer)
    return lambda: call.resume(result)


def refuse(stop: Any, error: Exception) -> Failed | Step:
    """Return what becomes of a value of the program that the host cannot take: where it is an argument of a
    call the call raises, else the program fails."""
    import pydantic_monty

    kind: Any = "TypeError" if isinstance(error, TypeError) else "ValueError"
    text = f"this value cannot be passed: {error}"
    if isinstance(stop, pydantic_monty.FunctionSnapshot):
        return answer_call(stop, Raise(kind, text))
    return Failed(f"{kind}: {text}", keeps_session=True)


def _host_name(call: Any) -> str:
    return "_" + str(call.function_name).removeprefix(prelude.HOST)


def _stand_in(name: str) -> Callable[..., Any]:
    """Return what stands for a function of the host: the interpreter asks the host for each call of it."""

    def function(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{name} is called by programs only")

    function.__name__ = name
    return function


STAND_INS = {f"{prelude.HOST}{name}": _stand_in(f"{prelude.HOST}{name}") for name in prelude.HOST_FUNCTIONS}
"""The functions of the host by their names in programs, for code of ours that may call them."""
