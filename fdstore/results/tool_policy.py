"""The treatment of the results of one tool: stored or inline, and what is shown of a stored one.

A policy is given beside the function (`@fdstore.tool(inline="never")`), in `FDConfig(tool={...})`, or in
[file_descriptor.tool.NAME] of a program file; the configuration counts more than the function. What a policy
leaves out is as for all tools.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from fdstore.errors import InvalidArgument
from fdstore.text.numbers import MAX_INTEGER

Inline = Literal["auto", "always", "never"]
PreviewMode = Literal["auto", "head", "tail", "both"]

MIN_PREVIEW_CHARS = 100

THRESHOLDS = ("max_direct_output_chars", "max_direct_output_tokens")


def _size(description: str, minimum: int = 1) -> Meta:
    bounds = {"minimum": minimum, "maximum": MAX_INTEGER}  # for the schema only: `check` checks them
    return Meta(description=description, extra_json_schema=bounds)


class ToolPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The treatment of the results of one tool.

    inline         "always": they stay inline, however long. "never": each is stored. "auto": long ones are
    max_direct_output_chars, max_direct_output_tokens   what is long for this tool; one of them
    preview        what is shown of a stored one: "head", "tail", "both", or "auto": what kind of text it is,
                   else both
    preview_chars  how much is shown, head and tail together

    `FDConfig` and `tool` raise `InvalidArgument` for values that are wrong or contradict each other.

    >>> config = fdstore.FDConfig(tool={"build": fdstore.ToolPolicy(preview="tail", preview_chars=1000)})
    >>> config.tool["build"].preview
    'tail'
    """

    inline: Annotated[
        Inline | None,
        Meta(description='"always": results stay inline, however long; "never": each is stored.'),
    ] = None
    max_direct_output_chars: Annotated[
        int | None, _size("A result longer than this becomes a descriptor.")
    ] = None
    max_direct_output_tokens: Annotated[
        int | None, _size("Instead of characters: a result of more tokens becomes a descriptor.")
    ] = None
    preview: Annotated[
        PreviewMode | None,
        Meta(description="What is shown of a stored result: head, tail, both, or its kind where known."),
    ] = None
    preview_chars: Annotated[
        int | None, _size("How much of it is shown, head and tail together.", MIN_PREVIEW_CHARS)
    ] = None

    def check(self, where: str = "") -> None:
        """Raise `InvalidArgument` for the first wrong value; `where` is put before its name."""
        for name, choices in (("inline", get_args(Inline)), ("preview", get_args(PreviewMode))):
            if (value := getattr(self, name)) is not None and value not in choices:
                allowed = " or ".join(f'"{choice}"' for choice in choices)
                raise InvalidArgument(where + name, f"must be {allowed}")
        for name in (*THRESHOLDS, "preview_chars"):
            minimum = MIN_PREVIEW_CHARS if name == "preview_chars" else 1
            if (size := getattr(self, name)) is not None:
                check_size(where + name, size, minimum)
        thresholds = [name for name in THRESHOLDS if getattr(self, name) is not None]
        if len(thresholds) > 1:
            raise InvalidArgument(where + thresholds[1], f"{thresholds[0]} is given too; keep one of them")
        if self.inline in ("always", "never") and thresholds:
            problem = f'has no effect with inline = "{self.inline}"; leave one of them out'
            raise InvalidArgument(where + thresholds[0], problem)
        if self.inline == "always":
            for name in ("preview", "preview_chars"):
                if getattr(self, name) is not None:
                    problem = 'has no effect with inline = "always", which stores nothing'
                    raise InvalidArgument(where + name, f"{problem}; leave one of them out")

    def under(self, configured: ToolPolicy) -> ToolPolicy:
        """Return the policy of a function under that of the configuration. What decides whether a result is
        stored is taken together from one of them, since values of both might contradict each other."""
        mine, its = msgspec.structs.asdict(self), msgspec.structs.asdict(configured)
        if any(its[name] is not None for name in ("inline", *THRESHOLDS)):
            mine |= dict.fromkeys(("inline", *THRESHOLDS), None)
        if its["inline"] == "always":
            mine |= dict.fromkeys(("preview", "preview_chars"), None)
        return ToolPolicy(**mine | {name: value for name, value in its.items() if value is not None})


NO_POLICY = ToolPolicy()


def check_size(name: str, size: object, minimum: int = 1) -> None:
    """Refuse what is not an integer in the bounds of a size."""
    # not isinstance: True is an int
    if type(size) is not int or not minimum <= size <= MAX_INTEGER:
        raise InvalidArgument(name, f"must be an integer from {minimum} to {MAX_INTEGER}")
