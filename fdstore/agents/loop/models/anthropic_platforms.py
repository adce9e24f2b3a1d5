"""Clients of the Messages API of cloud providers: Amazon Bedrock, Google Vertex AI, Microsoft Foundry.

They sign in by the variables, files and roles that the SDK and the packages of these providers read. Their
errors are not those of the SDK: one for a missing setting is final and names it, and a sign-in that failed
for lack of a connection is retried.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import anthropic
import httpx2

from fdstore.agents.loop.models.anthropic import NO_KEY, MessagesModel
from fdstore.agents.loop.models.base import ModelFailed
from fdstore.agents.loop.models.server_names import ServerNames
from fdstore.model.providers import PROVIDERS

UNREACHED = ("TransportError", "EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError")
"""The errors of these packages for a server of sign-ins that was not reached."""
OF_PACKAGES = ("google.", "botocore.", "boto3.")


class PlatformModel(MessagesModel):
    """What the three share."""

    def problem_of(self, error: Exception, names: ServerNames) -> str:
        """Implements `MessagesModel.problem_of`: mostly a variable is not set."""
        row = PROVIDERS[names.provider]
        if isinstance(error, httpx2.InvalidURL):
            return names.no_url
        needed = ", ".join(" or ".join(group) for group in row.needs)
        return f"{row.title} lacks something: {str(error)[:300]} (it needs {needed})"

    @contextmanager
    def signing_in(self) -> Iterator[None]:
        """Translate the errors of what signs requests."""
        try:
            yield
        except (anthropic.AnthropicError, httpx2.HTTPError):
            raise
        except Exception as error:
            kind = type(error)
            if not kind.__module__.startswith(OF_PACKAGES) and not isinstance(
                error, (RuntimeError, ValueError)
            ):
                raise
            if kind.__name__ in UNREACHED:
                raise httpx2.ConnectError(f"the sign-in did not get through: {error}") from error
            raise ModelFailed(f"cannot sign in to {self._row.title}: {str(error)[:300]}") from error


class BedrockModel(PlatformModel):
    """A client of Amazon Bedrock. Reads `$AWS_REGION`, and signs with `$AWS_BEARER_TOKEN_BEDROCK` or what the
    files and roles of AWS give. A server that is given by `base_url` gets the key beside it alone."""

    def __init__(
        self, *, api_key: str | None = None, base_url: str | None = None, key_name: str = "the sign-in to AWS"
    ) -> None:
        make = partial(anthropic.AsyncAnthropicBedrock, api_key=NO_KEY if api_key == "" else api_key)
        super().__init__("bedrock", make, api_key=api_key, base_url=base_url, key_name=key_name)


class VertexModel(PlatformModel):
    """A client of Google Vertex AI. Reads `$CLOUD_ML_REGION` and `$ANTHROPIC_VERTEX_PROJECT_ID`, and signs in
    with Google's application default credentials. A server that is given by `base_url` gets the key beside it
    alone, as the access token."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        key_name: str = "the sign-in to Google Cloud",
    ) -> None:
        make = partial(anthropic.AsyncAnthropicVertex, access_token=NO_KEY if api_key == "" else api_key)
        super().__init__("vertex", make, api_key=api_key, base_url=base_url, key_name=key_name)


class FoundryModel(PlatformModel):
    """A client of Microsoft Foundry. Reads `$ANTHROPIC_FOUNDRY_API_KEY`, and `$ANTHROPIC_FOUNDRY_RESOURCE` or
    `$ANTHROPIC_FOUNDRY_BASE_URL`. A server that is given by `base_url` gets the key beside it alone."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        key_name: str = "ANTHROPIC_FOUNDRY_API_KEY",
    ) -> None:
        make = partial(anthropic.AsyncAnthropicFoundry, api_key=NO_KEY if api_key == "" else api_key)
        super().__init__("foundry", make, api_key=api_key, base_url=base_url, key_name=key_name)
