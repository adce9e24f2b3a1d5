"""Configuration of people in the loop: `[people]` of a program file.

The program of an agent is stored with its process, and so is this.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.fields import about
from fdstore.model.people import OnTimeout
from fdstore.text.numbers import DURATION_UNITS, parse_number

MAX_TIMEOUT_S = 366 * 86_400

ASK_PERSON = "ask_person"
"""The tool that asks a person, which nobody approves."""


class PeopleSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person decides: questions of the model, and calls of tools that wait for a yes."""

    ask: Annotated[bool, about("Whether the model may ask a person: it gets the tool ask_person.")] = False
    approve: Annotated[
        tuple[str, ...],
        about(
            "Tools whose calls wait for a person's yes, by name; * stands for any letters.",
            ["fd_to_file", "deploy_*"],
            uniqueItems=True,
        ),
    ] = ()
    timeout: Annotated[
        str, about("How long a question waits for an answer, up to 366d, as 90s, 30m, 12h or 7d.")
    ] = "24h"
    on_timeout: Annotated[
        OnTimeout,
        about('Without an answer: "deny": the call is not run, the model goes on; "fail": the agent fails.'),
    ] = "deny"

    def __post_init__(self) -> None:
        if not 1 <= (parse_number(self.timeout, DURATION_UNITS) or 0) <= MAX_TIMEOUT_S:
            problem = f"{quoted(self.timeout)} is not a time up to 366d; write it as 90s, 30m, 12h or 7d"
            raise InvalidArgument("people.timeout", problem)
        for number, pattern in enumerate(self.approve):
            if not pattern.strip():
                raise InvalidArgument("people.approve", "has an empty pattern; name tools")
            if pattern in self.approve[:number]:
                raise InvalidArgument("people.approve", f"{quoted(pattern)} is listed twice")

    @property
    def timeout_s(self) -> float:
        """How long a question waits, in seconds."""
        return float(parse_number(self.timeout, DURATION_UNITS) or 0)

    def wants_approval(self, tool: str) -> bool:
        """Return whether calls of this tool wait for a person's yes.

        >>> people = PeopleSection(approve=("deploy_*",))
        >>> people.wants_approval("deploy_site"), people.wants_approval("read_fd")
        (True, False)
        """
        return tool != ASK_PERSON and any(fnmatchcase(tool, pattern) for pattern in self.approve)
