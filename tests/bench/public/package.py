"""The public tasks, and the results of their calls on the package's own simulated APIs.

The calls are texts such as `mv(source='a', destination='b')`: they are parsed, never evaluated. The APIs draw
from seeds and show no clock, so each run has the same results.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

FOLDER = Path(__file__).parent.parent.parent.parent / ".public"
NAME = "BFCL_v4_multi_turn_long_context.json"
SOURCES = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
"""The module of each API; its functions are defined in a file of the same name."""


class Call(NamedTuple):
    """A call of a model, and the text that it gets."""

    name: str
    arguments: dict[str, Any]
    result: str


class Turn(NamedTuple):
    """What the user says, and the calls that answer it, one after the other."""

    question: str
    calls: Sequence[Call]


class PublicTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task: the definitions of its functions, as the package has them, and its turns."""

    name: str
    definitions: Sequence[dict[str, Any]]
    turns: Sequence[Turn]

    @property
    def longest_result(self) -> int:
        """The characters of the longest result."""
        return max((len(call.result) for turn in self.turns for call in turn.calls), default=0)


def public_tasks(folder: Path = FOLDER) -> Iterator[PublicTask]:
    """Yield the tasks. Raises `FileNotFoundError` if the package is not in the folder."""
    data = folder / "bfcl_eval/data"
    answers = {each["id"]: each["ground_truth"] for each in _lines(data / "possible_answer" / NAME)}
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that it hides nothing
    for task in _lines(data / NAME):
        files = [data / "multi_turn_func_doc" / f"{MODULES[api]}.json" for api in task["involved_classes"]]
        hidden = task.get("excluded_function", ())
        apis = [_api(api, task["initial_config"].get(api, {})) for api in task["involved_classes"]]
        turns = zip(task["question"], answers[task["id"]], strict=True)
        yield PublicTask(
            name=task["id"],
            definitions=[each for file in files for each in _lines(file) if each["name"] not in hidden],
            turns=[
                Turn(message["content"], [_made(apis, written) for written in calls])
                for [message], calls in turns
            ],
        )


def _lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _api(name: str, state: dict[str, Any]) -> Any:
    api = getattr(importlib.import_module(f"{SOURCES}.{MODULES[name]}"), name)()
    if hasattr(api, "_load_scenario"):  # that of maths has no state
        api._load_scenario(copy.deepcopy(state), long_context=True)
    return api


def _made(apis: Sequence[Any], written: str) -> Call:
    match ast.parse(written, mode="eval").body:
        case ast.Call(func=ast.Name(name), args=args, keywords=keywords):
            function = next(getattr(api, name) for api in apis if hasattr(api, name))
            in_order = [ast.literal_eval(value) for value in args]
            named = {each.arg: ast.literal_eval(each.value) for each in keywords if each.arg}
            given = inspect.signature(function).bind(*in_order, **named)
            return Call(name, given.arguments, _text(function(*given.args, **given.kwargs)))
    raise ValueError(f"not a call: {written}")


def _text(result: object) -> str:
    # as the package's own runs send it to models; numbers of mpmath are the strangers in its JSON
    return json.dumps(result, default=str) if isinstance(result, dict) else str(result)
