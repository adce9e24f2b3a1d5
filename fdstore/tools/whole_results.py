"""Show an agent its first long results whole.

Announcing a text costs more than showing it if the model then reads all of it: another request, its first
page twice, and the tools. A short task has one such text, a file to review or a message to translate, while
a long one has many, of which most is never needed. So of the results that are longer than the threshold, the
first ones stay inline, as long as they have together at most `WHOLE_CHARS` characters; the others are
stored.

This is for agents whose sizes are the defaults: a size that is given is exact. What was shown whole is
counted from the conversation, so each attempt decides the same. A loop of the user's own decides by size
alone, since a `Toolset` does not know how long its conversation is.
"""

from __future__ import annotations

from msgspec import UNSET

from fdstore.tools.config import FDConfig
from fdstore.tools.tool_policy import ToolPolicy

WHOLE_CHARS = 24_000

_DEFAULTS = FDConfig()


class WholeResults:
    """The characters of the long texts that one agent was shown whole."""

    def __init__(self) -> None:
        self.used = 0

    def take(self, chars: int) -> bool:
        """Return whether a text of this length may be shown whole, and count it if so."""
        if self.used + chars > WHOLE_CHARS:
            return False
        self.used += chars
        return True


def has_default_threshold(config: FDConfig, policy: ToolPolicy) -> bool:
    """Return whether neither the configuration nor the policy says from which size results are stored."""
    return (
        config.max_direct_output_chars == _DEFAULTS.max_direct_output_chars
        and config.max_direct_output_tokens is UNSET
        and all(
            value is UNSET
            for value in (policy.inline, policy.max_direct_output_chars, policy.max_direct_output_tokens)
        )
    )


def has_default_input_limit(config: FDConfig) -> bool:
    """Return whether the configuration does not say from which size the input of the user is stored."""
    return config.max_input_chars == _DEFAULTS.max_input_chars
