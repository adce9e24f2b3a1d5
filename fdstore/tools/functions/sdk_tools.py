"""Take functions made with `anthropic.beta_tool` and `beta_async_tool` as they are: with the schema that the
SDK sends for them, and validated by the SDK. The SDK is not imported."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from fdstore.tools.functions.pydantic_types import invalid_argument, is_validation_error


def is_sdk_tool(value: object) -> bool:
    """Return whether `value` is a function of the SDK's tool runner."""
    return all(callable(getattr(value, name, None)) for name in ("func", "to_dict", "call"))


def function_of(tool: Any) -> Callable[..., Any]:
    """Return a function that calls an SDK tool; of an async one it returns the coroutine. It raises
    `InvalidArgument` for arguments that the SDK refuses."""

    def run(**values: Any) -> Any:
        with _typed_errors():
            result = tool.call(values)
        return _awaited(result) if inspect.iscoroutine(result) else result

    return run


async def _awaited(call: Coroutine[Any, Any, Any]) -> Any:
    with _typed_errors():
        return await call


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        # the SDK's own message does not say which argument is wrong
        if error.__cause__ is None or not is_validation_error(error.__cause__):
            raise
        raise invalid_argument(error.__cause__) from error
