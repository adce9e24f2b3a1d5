"""Which servers of models programs may name, and what two spellings of one server are."""

from __future__ import annotations

import msgspec
import pytest

from fdstore.errors import InvalidArgument, NotAllowed
from fdstore.model.model_servers import AllowedServer, ModelAccess, ModelServer, canonical_url
from fdstore.model.providers import PROVIDERS

ONE_SERVER = [
    "https://gpu1.example/v1",
    "https://gpu1.example/v1/",
    "HTTPS://GPU1.Example:443/v1",
    "https://gpu1.example.:0443/v1//",
]
NOT_URLS = [
    *("", "gpu1", "gpu1:8000", "ftp://gpu1", "http://", "http:///v1", "http://.", "file:///etc/passwd"),
    *("http://user:secret@gpu1", "http://secret@gpu1", "http://gpu1@evil.example", "http://gpu1\\@evil"),
    *("http://gpu1?key=secret", "http://gpu1#x", "http://gpu1/v1?x", "http://gpu1/../v2", "http://gpu1/./v1"),
    *(
        "http://gpu1/%2e%2e/v2",
        "http://gpu1/%2fv2",
        "http://gpu1/a%5cb",
        "http://gpu1 .example",
        "http://a\nb",
    ),
    *(
        "http://gpu1:0",
        "http://gpu1:65536",
        "http://gpu1:port",
        "http://gpu\u0131",
        "http://\u212aey.example",
    ),
    *("http://gpu1\x00", "http://gpu1/\u00e9", " http://gpu1", "http://gpu1\n", "http://" + "a" * 600),
]


@pytest.mark.parametrize("url", ONE_SERVER)
def test_all_spellings_of_a_server_have_one_form(url: str) -> None:
    assert canonical_url(url) == "https://gpu1.example/v1"
    assert canonical_url(canonical_url(url) or "") == "https://gpu1.example/v1"


@pytest.mark.parametrize("url", NOT_URLS)
def test_what_two_parsers_could_read_differently_is_no_url_and_is_not_quoted(url: str) -> None:
    assert canonical_url(url) is None
    with pytest.raises(InvalidArgument) as refused:
        ModelServer(base_url=url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "sk-ant-secret", "A B", "1A", "A=B", "A\n", "\u00c4", "x" * 300])
def test_a_key_in_place_of_the_name_of_a_variable_is_refused_and_not_quoted(name: str) -> None:
    with pytest.raises(InvalidArgument, match="must be the name of a variable") as refused:
        ModelServer(api_key_env=name)
    assert "secret" not in str(refused.value)


def test_a_provider_that_is_not_in_the_table_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidArgument, match="'opnai' is not known; there are: anthropic, bedrock"):
        ModelServer(provider="opnai")


@pytest.mark.parametrize("url", ONE_SERVER)
def test_an_operator_allows_a_server_in_any_spelling(url: str) -> None:
    access = ModelAccess(all_allowed=False, allowed=(AllowedServer.parse(f"{url}=GPU_KEY"),))

    for spelling in ONE_SERVER:
        access.check(ModelServer(base_url=spelling))
        access.check(ModelServer(base_url=spelling, api_key_env="GPU_KEY"))


@pytest.mark.parametrize(
    "url",
    [
        *("http://gpu1.example/v1", "https://gpu1.example", "https://gpu1.example/v1/other"),
        *(
            "https://gpu1.example:8443/v1",
            "https://gpu1.example.evil/v1",
            "https://evil.example/gpu1.example/v1",
        ),
    ],
)
def test_another_scheme_host_port_or_path_is_another_server(url: str) -> None:
    access = ModelAccess(all_allowed=False, allowed=(AllowedServer.parse("https://gpu1.example/v1=GPU_KEY"),))

    with pytest.raises(NotAllowed, match="--allow-model-server"):
        access.check(ModelServer(base_url=url, api_key_env="GPU_KEY"))


def test_the_value_of_a_variable_goes_to_the_server_beside_it_alone() -> None:
    pairs = ("http://a:1=KEY_A", "http://b:1=KEY_B", "http://c:1")
    access = ModelAccess(all_allowed=False, allowed=tuple(map(AllowedServer.parse, pairs)))

    access.check(ModelServer(base_url="http://a:1", api_key_env="KEY_A"))
    for url, variable in (("http://a:1", "KEY_B"), ("http://b:1", "KEY_A"), ("http://c:1", "KEY_A")):
        with pytest.raises(
            NotAllowed, match=rf"the variable {variable} .* allows it with .*{url}={variable}"
        ):
            access.check(ModelServer(base_url=url, api_key_env=variable))


def test_a_variable_for_the_own_server_of_an_sdk_needs_leave_for_that_server() -> None:
    urls = {"anthropic": "https://api.anthropic.com"}
    own = ModelServer(api_key_env="FDSTORE_URL")

    with pytest.raises(NotAllowed, match=r"--allow-model-server https://api\.anthropic\.com=FDSTORE_URL"):
        ModelAccess(all_allowed=False, own_urls=urls).check(own)
    ModelAccess(all_allowed=False).check(ModelServer())


def test_the_access_of_a_worker_survives_its_registration() -> None:
    allowed = (AllowedServer("http://a"),)
    access = ModelAccess(all_allowed=False, allowed=allowed, lacking={"openai": "no"})

    assert msgspec.json.decode(msgspec.json.encode(access), type=ModelAccess) == access


@pytest.mark.parametrize("text", ["gpu1:8000", "http://u:secret@h=KEY", "http://h=sk-secret", "http://h="])
def test_what_an_operator_cannot_mean_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        AllowedServer.parse(text)
    assert "secret" not in str(refused.value)


def test_each_row_of_the_table_names_a_variable_for_its_url() -> None:
    for name, row in PROVIDERS.items():
        assert row.url, name
        assert row.extra, name
        assert ":" in row.client, name
