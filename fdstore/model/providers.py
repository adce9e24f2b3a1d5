"""The providers of models: one table, from which everything else about them derives.

A provider is an API and the client that speaks it. A row has what must be known before the client is
imported: which packages and variables it needs, and what it lacks that program files can ask for. The values
of `[model] provider` are the keys of `PROVIDERS`; clients are opened by `agents.loop.models.providers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

CLIENTS = "fdstore.agents.loop.models"

EVERYWHERE = "*"
"""In `defers`: each of the provider's servers takes deferred tools."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table.

    title     the API, in words
    api       its short name: providers with the same one are spoken to alike, see `SPEAKERS`
    client    the class of its client, as "module:class" in `CLIENTS`
    packages  what the client imports, as `import` names it, and the `extra` that brings it
    keys      variables that the SDK reads its key from: one is enough. Empty if the API needs no key
    url       the variable that the SDK reads the URL of the server from, and `own_url` that without it; ""
              where the URL has the region or another name in it
    needs     further variables that the SDK needs, of each group one. The first group is needed in any case
    sign_in   how the SDK may sign in without one of `keys`; "" if it cannot
    elsewhere variables and paths where the SDK looks for what `keys` and the first of `needs` lack: without
              any of them it need not be imported to know that something is missing
    versioned whether a URL of its servers ends in the version of the API, as `/v1`; else the SDK adds that
    defers    the hosts that are known to take tools that are loaded later, or `EVERYWHERE`
    marks_blocks  whether marks of the prompt cache are known in blocks alone, not of a whole request
    lacks     what program files may ask for and the API has not: the key, and what there is instead
    prices    its id in the tables of the package `genai-prices`
    """

    title: str
    api: str = "messages"
    client: str
    packages: tuple[str, ...]
    extra: str
    keys: tuple[str, ...]
    url: str
    own_url: str = ""
    needs: tuple[tuple[str, ...], ...] = ()
    sign_in: str = ""
    elsewhere: tuple[str, ...] = ()
    versioned: bool = False
    defers: frozenset[str] = frozenset()
    marks_blocks: bool = False
    lacks: Mapping[str, str] = {}
    prices: str

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables of the row."""
        return (*self.keys, self.url, *(name for group in self.needs for name in group))

    def takes_deferred_tools(self, host: str) -> bool:
        """Return whether a server is known to take tools that are loaded later.

        >>> PROVIDERS["anthropic"].takes_deferred_tools("api.anthropic.com")
        True
        >>> PROVIDERS["anthropic"].takes_deferred_tools("localhost")
        False
        """
        return EVERYWHERE in self.defers or host in self.defers


_NOT_OF_OPENAI = {
    "parameters.thinking": "is of the Messages API; this API has reasoning_effort or reasoning",
    "model.deferred_tools": "has no effect: this API has no tools that are loaded later",
    "model.prompt_cache": "has no effect: these servers cache by themselves, for a time of their own",
}

PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(
        title="the Messages API",
        client="anthropic:AnthropicModel",
        packages=("anthropic",),
        extra="agents",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        url="ANTHROPIC_BASE_URL",
        own_url="https://api.anthropic.com",
        sign_in="a profile of the SDK",
        elsewhere=(
            *("ANTHROPIC_PROFILE", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_CONFIG_DIR"),
            *("~/.config/anthropic", "~/AppData/Roaming/Anthropic"),
        ),
        defers=frozenset({"api.anthropic.com"}),
        prices="anthropic",
    ),
    "bedrock": Provider(
        title="the Messages API in Amazon Bedrock",
        client="anthropic_platforms:BedrockModel",
        packages=("anthropic", "boto3", "botocore"),
        extra="bedrock",
        keys=("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
        url="ANTHROPIC_BEDROCK_BASE_URL",
        needs=(("AWS_REGION", "AWS_DEFAULT_REGION"),),
        sign_in="the files and roles of AWS",
        elsewhere=("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "~/.aws"),
        defers=frozenset({EVERYWHERE}),
        marks_blocks=True,
        prices="aws",
    ),
    "vertex": Provider(
        title="the Messages API in Google Vertex AI",
        client="anthropic_platforms:VertexModel",
        packages=("anthropic", "google.auth"),
        extra="vertex",
        keys=("GOOGLE_APPLICATION_CREDENTIALS",),
        url="ANTHROPIC_VERTEX_BASE_URL",
        needs=(("CLOUD_ML_REGION",), ("ANTHROPIC_VERTEX_PROJECT_ID",)),
        sign_in="the application default credentials of Google",
        defers=frozenset({EVERYWHERE}),
        marks_blocks=True,
        prices="google",
    ),
    "foundry": Provider(
        title="the Messages API in Microsoft Foundry",
        client="anthropic_platforms:FoundryModel",
        packages=("anthropic",),
        extra="agents",
        keys=("ANTHROPIC_FOUNDRY_API_KEY",),
        url="ANTHROPIC_FOUNDRY_BASE_URL",
        needs=(("ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"),),
        defers=frozenset({EVERYWHERE}),
        prices="azure",
    ),
    "openai": Provider(
        title="Chat Completions",
        api="chat",
        client="openai_chat:OpenAIChatModel",
        packages=("openai",),
        extra="openai",
        keys=("OPENAI_API_KEY",),
        url="OPENAI_BASE_URL",
        own_url="https://api.openai.com/v1",
        versioned=True,
        lacks=_NOT_OF_OPENAI,
        prices="openai",
    ),
    "openai-responses": Provider(
        title="the Responses API",
        api="responses",
        client="openai_responses:OpenAIResponsesModel",
        packages=("openai",),
        extra="openai",
        keys=("OPENAI_API_KEY",),
        url="OPENAI_BASE_URL",
        own_url="https://api.openai.com/v1",
        versioned=True,
        lacks=_NOT_OF_OPENAI,
        prices="openai",
    ),
}

if TYPE_CHECKING:
    ProviderName = str
else:
    ProviderName = Literal[tuple(PROVIDERS)]

DEFAULT_PROVIDER = "anthropic"
SPEAKERS: dict[str, str] = {}
"""The first provider of each API: its client speaks to every server of the API."""
for _name, _row in PROVIDERS.items():
    SPEAKERS.setdefault(_row.api, _name)
KEY_VARIABLES = frozenset(name for each in PROVIDERS.values() for name in each.keys)
VARIABLES = frozenset(name for each in PROVIDERS.values() for name in each.variables)
