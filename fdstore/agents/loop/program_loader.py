"""Load program files: follow their links, resolve the files they name, make the bundle that is stored.

`load` reads a root file and the files linked from it, each once and through cycles, and leaves nothing to
look up: prompts become texts, paths absolute, links keys into the bundle.

    agent.toml --expert--> expert.toml        Bundle  root "agent"
        ^                       |                     programs  "agent"  linked {expert: "expert"}
        +---------boss----------+                               "expert" linked {boss: "agent"}

Preloaded files are read when an agent is launched; here they only have to exist.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import msgspec

from fdstore.agents.loop import program_parser
from fdstore.agents.loop.bundle import Bundle, LinkedProgram, Program
from fdstore.agents.loop.models.prices import priced
from fdstore.agents.loop.program_checks import PATH_RULE, is_path
from fdstore.agents.loop.program_file import DEFAULT_MAX_TOKENS, ProgramFile, PromptSection
from fdstore.agents.loop.program_limits import Limits
from fdstore.agents.loop.program_parser import SHOWN_PATH, ProgramSource
from fdstore.errors import InvalidArgument, InvalidProgram, TargetMissing, quoted
from fdstore.results.config import FDConfig
from fdstore.results.people_config import ASK_PERSON
from fdstore.tools.catalogue import BUILT_IN, FD_TOOLS
from fdstore.tools.clearing import ClearingConfig

__all__ = ["Bundle", "Limits", "LinkedProgram", "LoadedFile", "Program", "all_mistakes", "load", "load_files"]

MAX_NAME = 48

WINDOW_SHARE = 0.7
"""The share of a model's context window that may be used before results are cleared."""

ProgramError = InvalidProgram | TargetMissing


class LoadedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A program file without mistakes, and the program that it is, before its links are followed.

    `links` maps each alias to the path of its file. `warnings` name what is allowed and cannot be what the
    author wants.
    """

    path: Path
    program: Program
    links: dict[str, Path]
    link_descriptions: dict[str, str | None]
    warnings: tuple[str, ...]


def load(path: str | Path) -> Bundle:
    """Return the bundle of the program file at `path` and of all files linked from it.

    Paths in a file are relative to that file. A price that a program does not name is that of
    `genai-prices`, if it is known there. Raises `TargetMissing` if `path` does not exist,
    and `InvalidProgram` with "file: key" for anything wrong in any of the files.
    """
    files = load_files([path])
    keys = _unique_names(files)
    programs: dict[str, Program] = {}
    for identity, file in files.items():
        linked = {}
        for alias, linked_path in file.links.items():
            target = os.path.realpath(linked_path)
            description = file.link_descriptions[alias]
            if description is None:
                description = files[target].program.description
            linked[alias] = LinkedProgram(key=keys[target], description=description)
        key = keys[identity]
        programs[key] = msgspec.structs.replace(file.program, name=key, linked=linked)
    warnings = tuple(f"{file.path}: {warning}" for file in files.values() for warning in file.warnings)
    return priced(Bundle(root=next(iter(programs)), programs=programs, warnings=warnings))


def _raise(error: ProgramError, path: Path, linked_from: Path | None) -> None:
    raise error


def load_files(
    paths: Sequence[str | Path],
    refuse: Callable[[ProgramError, Path, Path | None], None] = _raise,
) -> dict[str, LoadedFile]:
    """Load program files and all that are linked from them, by their real paths, in the order found.

    `refuse` gets each error, the path of the file and that of the file that links to it, if one does; the
    others are loaded if it returns. It may get the same error for each link to a file.

    Raises `InvalidArgument` for what cannot be a path.
    """
    files: dict[str, LoadedFile] = {}
    unread: deque[tuple[Path, Path | None, str | None]] = deque()
    for path in paths:
        if not is_path(str(path)):
            raise InvalidArgument("path", PATH_RULE)
        unread.append((Path(path), None, None))
    while unread:
        path, linked_from, named_by = unread.popleft()
        identity = os.path.realpath(path)
        if identity in files:
            continue
        try:
            files[identity] = file = _load_file(program_parser.read(path, named_by))
        except (InvalidProgram, TargetMissing) as error:
            refuse(error, path, linked_from)
            continue
        for alias, target in file.links.items():
            unread.append((target, path, f"{path}: linked_programs.{alias}"))
    return files


def _load_file(source: ProgramSource) -> LoadedFile:
    path, file = source.path, source.file
    tools = file.tools.enabled
    if file.file_descriptor.enabled and FD_TOOLS.isdisjoint(tools):
        tools = (*tools, "read_fd")  # descriptors that the model cannot read would be a dead end
    if file.people.ask and ASK_PERSON not in tools:
        tools = (*tools, ASK_PERSON)
    program = Program(
        name=program_parser.stem_name(path) if file.program.name is None else file.program.name,
        model=file.model.name,
        provider=file.model.provider,
        base_url=file.model.base_url,
        api_key_env=file.model.api_key_env,
        context_window=file.model.context_window,
        prompt_cache=file.model.prompt_cache,
        deferred_tools=file.model.deferred_tools,
        price=None if file.model.price is None else file.model.price.as_record(),
        clearing=_clearing(file),
        python_limits=file.python,
        people=file.people,
        give_up_seconds=file.model.give_up_seconds,
        description=file.program.description,
        system=_system_prompt(file.prompt, path),
        user=file.prompt.user,
        parameters=file.parameters | {"max_tokens": file.parameters.get("max_tokens", DEFAULT_MAX_TOKENS)},
        tools=tools,
        python=file.tools.python,
        file_descriptor=FDConfig.of(file.file_descriptor),
        preload=tuple(_preload_path(path, name) for name in file.preload.files),
        preload_root=_directory(path, "preload.root", file.preload.root),
        tools_path=_directory(path, "tools.path", file.tools.path),
        export_root=file.export.root,
        commands=file.commands.allow,
        limits=file.limits.of_process,
        tree_limits=file.limits.of_tree,
    )
    links = file.links
    return LoadedFile(
        path=path,
        program=program,
        links={alias: path.parent / entry.path for alias, entry in links.items()},
        link_descriptions={alias: entry.description for alias, entry in links.items()},
        warnings=tuple(_warnings(source, program)),
    )


def _clearing(file: ProgramFile) -> ClearingConfig:
    """Return the rule of clearing, which begins before the model's context is full."""
    clearing = msgspec.convert(file.context, ClearingConfig, from_attributes=True)
    if (window := file.model.context_window) is None:
        return clearing
    most = max(int(WINDOW_SHARE * window), 1)
    return msgspec.structs.replace(clearing, clear_at_tokens=min(clearing.clear_at_tokens, most))


def all_mistakes(path: Path) -> tuple[dict[str, str], list[Path]]:
    """Return the problem of each wrong key of a program file, also of those that name files which are not
    there, and the linked files that are."""
    source, wrong_keys = program_parser.read_right_keys(path)
    problems = {each.key: each.problem for each in wrong_keys}
    linked: list[Path] = []
    if source is None:
        return problems, linked
    file = source.file

    def note(look: Callable[[], object]) -> bool:
        try:
            look()
        except InvalidProgram as error:
            key = error.argument.removeprefix(f"{path}: ")
            before = problems.get(key)
            problems[key] = f"{before}; {error.problem}" if before else error.problem
            return False
        return True

    if file.program.name is None:
        note(partial(program_parser.stem_name, path))
    note(partial(_system_prompt, file.prompt, path))
    for name in file.preload.files:
        note(partial(_preload_path, path, name))
    note(partial(_directory, path, "preload.root", file.preload.root))
    note(partial(_directory, path, "tools.path", file.tools.path))
    for alias, entry in file.links.items():
        target = path.parent / entry.path
        if note(partial(program_parser.read_text, target, f"{path}: linked_programs.{alias}")):
            linked.append(target)
    return problems, linked


def _system_prompt(prompt: PromptSection, path: Path) -> str:
    if prompt.system_prompt_file is None:
        return prompt.system or ""
    file = path.parent / prompt.system_prompt_file
    return program_parser.read_text(file, f"{path}: prompt.system_prompt_file")


def _preload_path(path: Path, name: str) -> str:
    """Return the absolute path of a preload file. It is read when the agent starts, but refused now."""
    file = (path.parent / name).absolute()
    problem = ""
    if os.path.isdir(file):
        problem = "is a directory; name a file"
    elif not os.path.exists(file):
        problem = "does not exist"
    elif not os.path.isfile(file):
        problem = "is not a regular file"
    elif os.fsencode(file).decode("utf-8", "replace") != str(file):
        problem = "has a path that is not UTF-8 and cannot be stored; rename it"
    if problem:
        raise InvalidProgram(f"{path}: preload.files", f"{quoted(str(file), SHOWN_PATH)} {problem}")
    return str(file)


def _directory(path: Path, key: str, name: str | None) -> str | None:
    """Return the absolute path of a directory that the file names relative to itself."""
    if name is None:
        return None
    directory = os.path.abspath(path.parent / name)
    if not os.path.isdir(directory):
        raise InvalidProgram(f"{path}: {key}", f"{quoted(directory, SHOWN_PATH)} is not a directory")
    return directory


def _unique_names(files: dict[str, LoadedFile]) -> dict[str, str]:
    """Return a key for each file: its program's name, with -2, -3, ... where earlier files have it too."""
    keys: dict[str, str] = {}
    for identity, file in files.items():
        name = key = file.program.name
        number = 1
        while key in keys.values():
            number += 1
            suffix = f"-{number}"
            key = name[: MAX_NAME - len(suffix)] + suffix
        keys[identity] = key
    return keys


def _warnings(source: ProgramSource, program: Program) -> list[str]:
    """Return what is allowed, but cannot be what the author wants."""
    warnings = []
    if source.fd_settings and not program.fds_on:
        names = ", ".join(source.fd_settings)
        off = "descriptors are off; use enabled = true or enable an FD tool"
        warnings.append(f"[file_descriptor] sets {names}, but {off}")
    if program.deferred_tools and not program.file_descriptor.hold_back_tools:
        why = "[file_descriptor] hold_back_tools = false offers all tools from the start"
        warnings.append(f"[model] sets deferred_tools = true, but {why}")
    # as the program will be: where links lead is known once their files are loaded
    links = {alias: LinkedProgram(key=alias) for alias in source.file.linked_programs}
    configured = msgspec.structs.replace(program, linked=links)
    for tool in (BUILT_IN[name] for name in program.tools):
        if tool.needs is not None and not tool.needs.is_met(configured):
            warnings.append(f"[tools] enables {tool.name}, but {tool.needs.warning}")
    functions = [path.partition(":")[2] for path in program.python]
    for pattern in program.people.approve:
        if not any(fnmatchcase(name, pattern) for name in (*program.tools, *functions)):
            warnings.append(f"[people] approve: {quoted(pattern)} is the name of none of its tools")
    return warnings
