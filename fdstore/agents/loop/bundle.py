"""The record of a program as it is stored, and the bundle of all programs that a tree may need.

A `Bundle` stands on its own: stored as JSON with the root process, it is all that a worker on another
machine needs to run any process of the tree. `program_loader` makes one of program files.

    programs  "agent"  linked {expert: "expert"}      root  "agent"
              "expert" linked {boss: "agent"}

Links are keys into the bundle, never objects: so a cycle can be written as JSON.
"""

from __future__ import annotations

import hashlib
import os
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from fdstore.agents.loop.models.base import PromptCache
from fdstore.agents.loop.program_file import DEFAULT_MAX_TOKENS
from fdstore.agents.loop.program_limits import Limits
from fdstore.errors import InvalidArgument, InvalidProgram, NewerFormat, quoted
from fdstore.model.model_servers import ModelServer
from fdstore.model.msgspec_types import prepare, without_absent
from fdstore.model.records import ModelPrice, TreeLimits
from fdstore.results.config import FDConfig
from fdstore.results.people_config import PeopleSection
from fdstore.results.python_config import PythonSection
from fdstore.store.processes.asks import AskSettings
from fdstore.tools.catalogue import has_descriptors
from fdstore.tools.clearing import ClearingConfig

BUNDLES_KEPT = 32
"""The bundles that are kept parsed: the attempts of a tree, and of others like it, have the same one."""

_NEWER = ("Object contains unknown field", "Invalid enum value")
"""The beginnings of msgspec's messages for a program with keys or choices that this version does not have."""


class LinkedProgram(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that may be spawned: its key in the bundle, and its description for the model."""

    key: str
    description: str = ""


class Program(ModelServer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The program of one agent, with nothing left to look up.

    `name` is its key in the bundle. `system` and `user` are texts, `tools` built-in tools in the
    order of the file, `python` functions as "package.module:function", `preload` absolute paths of files,
    `preload_root` that of the directory below which the model may name others, `tools_path` that of the
    directory that `python` is imported from if it is not installed (both count on the author's machine),
    `linked` maps aliases to programs, `export_root` is None or a path relative to where
    the agent's process runs, `commands` what pipelines may run, `python_limits` the limits of run_python,
    `people` what a person decides. `tree_limits` count in the root only. `context_window` is for screens
    alone, because `clearing` follows from it.
    """

    name: str
    model: str
    give_up_seconds: float = AskSettings(model="").give_up_seconds
    description: str = ""
    system: str = ""
    user: str | None = None
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"max_tokens": DEFAULT_MAX_TOKENS})
    tools: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    file_descriptor: FDConfig = FDConfig()
    preload: tuple[str, ...] = ()
    preload_root: str | None = None
    tools_path: str | None = None
    linked: dict[str, LinkedProgram] = msgspec.field(default_factory=dict)
    export_root: str | None = None
    commands: tuple[str, ...] = ()
    limits: Limits = Limits()
    tree_limits: TreeLimits = TreeLimits()
    prompt_cache: PromptCache = True
    deferred_tools: bool | None = None
    context_window: int | None = None
    clearing: ClearingConfig = ClearingConfig()
    price: ModelPrice | None = None
    python_limits: PythonSection = PythonSection()
    people: PeopleSection = PeopleSection()

    @property
    def servers(self) -> tuple[ModelServer, ...]:
        """The servers that are asked: its own, and that of its code."""
        asks = (self.ask.server,) if "run_python" in self.tools else ()
        return tuple(dict.fromkeys((self.server, *asks)))

    @property
    def ask(self) -> AskSettings:
        """Return the model that its code may ask: by default its own, at its price."""
        section = self.python_limits.ask
        server = section.server_beside(self)
        is_own = section.model in ("", self.model) and server == self.server
        own_price = self.price if is_own else None
        return AskSettings(
            provider=server.provider,
            base_url=server.base_url,
            api_key_env=server.api_key_env,
            model=section.model or self.model,
            max_tokens=section.max_tokens,
            system=section.system,
            at_once=section.at_once,
            max_chars=section.max_chars,
            price=section.price.as_record() if section.price is not None else own_price,
        )

    @property
    def fds_on(self) -> bool:
        """Return whether this agent has descriptors: asked for, or implied by a tool that works on them."""
        return has_descriptors(self.file_descriptor, self.tools)


class Bundle(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A root program and the programs that it can reach through links, by name.

    `warnings` are for the author: they are neither stored nor part of the digest.
    """

    root: str
    programs: dict[str, Program]
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.root not in self.programs:
            raise InvalidProgram("bundle: root", f"there is no program {quoted(self.root)} in it")
        for name, program in self.programs.items():
            for alias, linked in program.linked.items():
                if linked.key not in self.programs:
                    where = f"bundle: programs.{name}.linked.{alias}"
                    raise InvalidProgram(where, f"there is no program {quoted(linked.key)} in it")

    @staticmethod
    @lru_cache(BUNDLES_KEPT)
    def from_json(text: str | bytes) -> Bundle:
        """Return the bundle with this `json`. Raises `NewerFormat` for one of a newer version, with keys or
        choices that this version does not have, `InvalidProgram` for anything else."""
        try:
            return msgspec.json.decode(text, type=Bundle)
        except msgspec.ValidationError as error:
            if str(error).startswith(_NEWER):
                raise NewerFormat("the program", str(error)) from error
            raise InvalidProgram("bundle", f"is not a stored bundle: {error}") from error
        except InvalidProgram:
            raise
        except (InvalidArgument, msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise InvalidProgram("bundle", f"is not a stored bundle: {error}") from error

    @cached_property
    def json(self) -> str:
        """This bundle as one JSON document; `from_json` returns an equal one, order included. Defaults are
        written out, so that a worker of another version has the same, but for those that are None."""
        programs = {name: without_absent(program) for name, program in self.programs.items()}
        return msgspec.json.encode({"root": self.root, "programs": programs}).decode()

    @cached_property
    def digest(self) -> str:
        """8 hex digits that change when a program changes, and not with the order of its keys."""
        # through JSON first: 7 and 7.0 days are equal limits, but only decoding writes them alike
        stored = Bundle.from_json(self.json)
        canonical = msgspec.json.encode({"root": stored.root, "programs": stored.programs}, order="sorted")
        return hashlib.sha256(canonical).hexdigest()[:8]

    def exporting_below(self, directory: str) -> Bundle:
        """Return this bundle with every relative `export_root` below `directory`. For a store whose processes
        all run on this machine: they write below one directory, wherever their worker was started."""
        programs = {
            name: program
            if program.export_root is None
            else msgspec.structs.replace(program, export_root=os.path.join(directory, program.export_root))
            for name, program in self.programs.items()
        }
        return msgspec.structs.replace(self, programs=programs)


prepare(Bundle)
