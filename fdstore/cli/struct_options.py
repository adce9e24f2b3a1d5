"""Options of a verb from the fields of a Struct, which has each of them once.

A field `code_allow` is the option `--code-allow`; its type is that of the option, and its `Option` says the
rest. A tuple may be given several times, and a number is at least 1.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import click
import msgspec

from fdstore.hosts.gateway.options import Option, flag_of
from fdstore.text.numbers import MAX_INTEGER

Command = TypeVar("Command", bound=Callable[..., object])


class Field(NamedTuple):
    """A field that is an option. `types` are those of its value, or of its values."""

    name: str
    types: tuple[Any, ...]
    default: object
    about: Option


def fields_of(struct: type[msgspec.Struct]) -> list[Field]:
    """Return the fields of a Struct that are options."""
    hints = get_type_hints(struct, include_extras=True)
    found = []
    for field in msgspec.structs.fields(struct):
        kind, about = get_args(hints[field.name])
        found.append(Field(field.name, (kind, *get_args(kind)), field.default, about))
    return found


def struct_options(struct: type[msgspec.Struct], *only: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of a Struct, or `only` those of some fields."""

    def add(command: Command) -> Command:
        for field in reversed(fields_of(struct)):
            if not only or field.name in only:
                command = _option(field)(command)
        return command

    return add


def given_fields(options: msgspec.Struct) -> list[Field]:
    """Return the fields that are not as usual."""
    return [each for each in fields_of(type(options)) if getattr(options, each.name) != each.default]


def check_needs(options: msgspec.Struct) -> None:
    """Raise `UsageError` for an option that is given without the one that it needs."""
    fields = fields_of(type(options))
    given = {field.name for field in given_fields(options)}
    for needed in dict.fromkeys(field.about.needs for field in fields if field.about.needs):
        needing = [field.name for field in fields if field.about.needs == needed]
        if needed not in given and given.intersection(needing):
            flags = " and ".join(map(flag_of, needing))
            raise click.UsageError(f"{flags} need{'s' * (len(needing) == 1)} {flag_of(needed)}")


def _option(field: Field) -> Callable[[Command], Command]:
    about = field.about
    more: dict[str, Any] = {} if about.usual is None else {"is_flag": False, "flag_value": about.usual}
    if get_origin(field.types[0]) is tuple:
        more["multiple"] = True
    for kind in field.types:
        if get_origin(kind) is Literal:
            more["type"] = click.Choice(get_args(kind))
        elif kind is int:
            more["type"] = click.IntRange(1, MAX_INTEGER)
        elif kind is Path:
            more["type"] = click.Path(path_type=Path)
    names = flag_of(field.name), field.name
    return click.option(*names, metavar=about.metavar, default=field.default, help=about.help, **more)
