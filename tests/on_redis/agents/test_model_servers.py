"""Agents, children and asks each ask the server that their program names, and none without leave."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from fdstore.agents.loop.bundle import Program
from fdstore.agents.loop.models import openai_chat, openai_responses  # noqa: F401  before threads begin
from fdstore.agents.loop.models.providers import ModelClients
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.errors import NotAllowed
from fdstore.files.permissions import Permissions
from fdstore.model.model_servers import AllowedServer, ModelAccess, ModelServer
from fdstore.model.records import ModelPrice
from fdstore.results.python_config import AskSection, PythonSection
from fdstore.store.keys import process_keys
from fdstore.store.processes import processes
from fdstore.store.processes.asks import AskSettings
from fdstore.testing import ScriptedModel, call, say, turn
from fdstore.text.quantities import format_costs
from tests.on_redis.agents.test_permissions import register, shown_by_ps
from tests.on_redis.running_agents import AgentsOf
from tests.recording_server import recording

VARIABLES = ("FDSTORE_URL", "AWS_SECRET_ACCESS_KEY", "PATH", "ANTHROPIC_API_KEY", "HOME")
CLOSED = ModelAccess(all_allowed=False)
URL_WORKER = Permissions(all_allowed=False, models=CLOSED)
ASKS = "print(await ask('What?', 'text'))"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        if name not in ("PATH", "HOME"):
            monkeypatch.setenv(name, f"secret of {name}")


@pytest.fixture
def clients() -> Iterator[ModelClients]:
    with closing(ModelClients()) as opened:
        yield opened


def allowing(*servers: str) -> Permissions:
    access = ModelAccess(all_allowed=False, allowed=tuple(map(AllowedServer.parse, servers)))
    return Permissions(all_allowed=False, models=access)


@pytest.mark.parametrize("variable", [None, *VARIABLES])
def test_an_agent_whose_server_is_not_allowed_is_not_claimed_and_ps_says_why(
    agents_of: AgentsOf, store: Store, variable: str | None, clients: ModelClients
) -> None:
    with recording() as thief:
        agents = agents_of([])
        agents.launch(base_url=thief.url, api_key_env=variable)

        assert agents.attempt("solo", permissions=URL_WORKER, model=clients) == "not allowed"

        assert (agents.record().state, agents.record().attempt) == ("ready", 0)
        register(store, "closed:1", URL_WORKER)
        shown = shown_by_ps(store)
        assert f"closed:1 says: the server of models {thief.url} is not allowed on this worker" in shown
        option = f"--allow-model-server {thief.url}{f'={variable}' if variable else ''}"
        assert option in shown.replace("\n", "")
        assert thief.seen == []


def test_a_server_that_is_allowed_gets_no_variable_that_is_not(
    agents_of: AgentsOf, store: Store, clients: ModelClients
) -> None:
    with recording() as server:
        agents = agents_of([])
        agents.launch(base_url=f"{server.url}/", api_key_env="FDSTORE_URL")

        other = allowing(server.url, f"{server.url}=GPU_KEY")
        assert agents.attempt("solo", permissions=other, model=clients) == "not allowed"

        assert server.seen == []


def test_what_is_not_allowed_is_not_asked_either_if_it_was_claimed(
    agents_of: AgentsOf, clients: ModelClients
) -> None:
    """The leave is looked at where the server is asked, whoever claims."""
    with recording() as thief:
        agents = agents_of([])
        agents.launch(base_url=thief.url, api_key_env="FDSTORE_URL")
        permissions = Permissions(models=CLOSED)

        assert agents.attempt("solo", permissions=permissions, model=clients) == "given back"
        assert "--allow-model-server" in (agents.record().trouble or "")
        with pytest.raises(NotAllowed):
            agents.attempt("solo", permissions=URL_WORKER, model=clients, wait_here=True)

        assert thief.seen == []


def test_a_child_on_a_server_that_is_not_allowed_is_left_to_other_workers(
    agents_of: AgentsOf, clients: ModelClients
) -> None:
    with recording() as thief, ScriptedModel([call("spawn", program_name="reader", query="Go.")]) as allowed:
        agents = agents_of([])
        reader = Program(name="reader", model="any", base_url=thief.url, api_key_env="FDSTORE_URL")
        agents.launch(tools=("spawn",), others=[reader], base_url=allowed.base_url, api_key_env="MINE")
        permissions = allowing(f"{allowed.base_url}=MINE")

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MINE", allowed.api_key)
            assert agents.attempt("solo", permissions=permissions, model=clients) == "waiting"
            assert agents.attempt("solo.1", permissions=permissions, model=clients) == "not allowed"

        assert thief.seen == []


def asking(agents: Any, **section: Any) -> str:
    """Launch an agent whose code asks, run it, and return the lane of its ask."""
    agents.launch(
        tools=("run_python",), python_limits=PythonSection(ask=AskSection(model="small", **section))
    )
    agents.attempt("solo")
    return "solo.1"


@pytest.fixture
def agents(agents_of: AgentsOf) -> Any:
    def answer(request: Any) -> Any:
        if not request.tools:
            return say("Yes.")
        return say("Done.") if request.turn_number else call("run_python", code=ASKS)

    return agents_of(answer)


def test_asks_of_a_server_that_is_not_allowed_are_not_claimed(
    agents: Any, store: Store, clients: ModelClients
) -> None:
    with recording() as thief:
        lane = asking(agents, base_url=thief.url, api_key_env="FDSTORE_URL")

        assert agents.attempt(lane, permissions=URL_WORKER, model=clients) == "not allowed"

        register(store, "closed:1", URL_WORKER)
        assert f"the server of models {thief.url} is not allowed" in shown_by_ps(store)
        assert thief.seen == []


def test_settings_of_asks_that_somebody_wrote_to_redis_lead_nowhere(
    agents: Any, store: Store, execute: Callable[..., Any]
) -> None:
    with recording() as thief:
        lane = asking(agents)
        keys = process_keys(store.prefix, "solo")
        [name] = [field for field in execute("HKEYS", keys.asks) if field.startswith(b"settings/")]
        forged = AskSettings(model="small", base_url=thief.url, api_key_env="FDSTORE_URL")
        execute("HSET", keys.asks, name, msgspec.json.encode(forged))

        agents.attempt(lane, permissions=URL_WORKER)
        agents.attempt("solo")

        assert thief.seen == []
        assert f"permission_error: the server of models {thief.url} is not allowed" in str(agents.results())


@pytest.mark.parametrize(
    "fields",
    [
        {"base_url": "http://user:secret@gpu1"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": 7},
        {"base_url": "http://gpu1", "api_key_env": "sk-secret"},
        {"api_key_env": ["FDSTORE_URL"]},
    ],
)
def test_a_bundle_that_somebody_wrote_to_redis_is_refused_without_its_values(
    agents_of: AgentsOf,
    store: Store,
    execute: Callable[..., Any],
    fields: dict[str, Any],
    clients: ModelClients,
) -> None:
    agents = agents_of([])
    agents.launch()
    programs = process_keys(store.prefix, "solo").tree.programs
    [digest] = execute("HKEYS", programs)
    stored = json.loads(execute("HGET", programs, digest))
    stored["programs"]["solo"] |= fields
    execute("HSET", programs, digest, json.dumps(stored))

    agents.attempt("solo", permissions=URL_WORKER, model=clients)

    assert agents.model.requests == ()
    assert agents.record().state == "failed"
    assert "secret" not in str(agents.record())


def test_the_sdk_of_an_agent_is_imported_before_its_claim(
    agents_of: AgentsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import takes seconds; a claim that waits for it could lose its lease."""
    module = "fdstore.agents.loop.models.openai_chat"
    monkeypatch.delitem(sys.modules, module)
    agents = agents_of([])
    agents.launch(provider="openai")
    agents.store.run(processes.cancel(agents.store.prefix, "solo", "killed"))

    assert agents.attempt("solo", permissions=Permissions(), lacks=ModelAccess().missing) == "not ready"

    assert module in sys.modules


def test_an_agent_for_which_a_key_or_a_package_is_missing_is_not_claimed_and_ps_says_which(
    agents_of: AgentsOf, store: Store
) -> None:
    agents = agents_of([])
    agents.launch(provider="openai")
    access = ModelAccess(
        keyless={"anthropic": "", "openai": "no key for Chat Completions: set OPENAI_API_KEY"}
    )

    assert agents.attempt("solo", permissions=Permissions(), lacks=access.missing) == "not able"

    assert (agents.record().state, agents.record().attempt) == ("ready", 0)
    register(store, "keyless:1", Permissions(models=access))
    assert "keyless:1 says: no key for Chat Completions: set OPENAI_API_KEY" in shown_by_ps(store)
    register(store, "able:2", Permissions(models=ModelAccess(keyless={"openai": ""})))
    assert "no live worker" not in shown_by_ps(store)


def test_a_worker_without_a_key_runs_agents_of_servers_that_need_none(
    agents_of: AgentsOf, store: Store
) -> None:
    agents_of([]).launch(base_url="http://gpu1:8000")

    register(store, "keyless:1", Permissions(), no_agents="there is no key")

    assert "no live worker" not in shown_by_ps(store)


def test_a_conversation_goes_on_with_the_provider_that_it_began_with(
    agents_of: AgentsOf, store: Store, execute: Callable[..., Any]
) -> None:
    agents = agents_of([call("list_fds"), say("Done.")])
    agents.launch(tools=("list_fds",))
    agents.crash(4)
    assert len(agents.model.requests) == 1
    programs = process_keys(store.prefix, "solo").tree.programs
    [digest] = execute("HKEYS", programs)
    stored = json.loads(execute("HGET", programs, digest))
    stored["programs"]["solo"]["provider"] = "openai"
    execute("HSET", programs, digest, json.dumps(stored))

    agents.attempt("solo")

    assert agents.record().state == "failed"
    assert 'began with the provider "anthropic" and cannot go on with "openai"' in agents.record().reason


def test_a_parent_a_child_and_an_ask_each_have_their_own_server(
    agents_of: AgentsOf, monkeypatch: pytest.MonkeyPatch, clients: ModelClients
) -> None:
    def reader(request: Any) -> Any:
        return say("Read.") if request.turn_number else call("run_python", code=ASKS)

    with (
        ScriptedModel([call("spawn", program_name="reader", query="Go."), say("Done.")]) as one,
        ScriptedModel(reader) as two,
        ScriptedModel(lambda _: say("Yes.")) as three,
    ):
        servers = {"ONE": one, "TWO": two, "THREE": three}
        for name, each in servers.items():
            monkeypatch.setenv(name, each.api_key)
        ask = AskSection(model="small", base_url=three.base_url, api_key_env="THREE")
        agents = agents_of([])
        agents.launch(
            tools=("spawn",),
            base_url=one.base_url,
            api_key_env="ONE",
            others=[
                Program(
                    name="reader",
                    model="mid",
                    base_url=two.base_url,
                    api_key_env="TWO",
                    tools=("run_python",),
                    python_limits=PythonSection(ask=ask),
                )
            ],
        )
        permissions = allowing(*(f"{each.base_url}={name}" for name, each in servers.items()))
        for process in ("solo", "solo.1", "solo.1.1", "solo.1", "solo"):
            agents.attempt(process, permissions=permissions, model=clients)

        assert agents.answer() == "Done."
        models = [[each.raw["model"] for each in server.requests] for server in servers.values()]
        assert models == [["any", "any"], ["mid", "mid"], ["small"]]


def test_code_asks_the_server_of_its_agent_unless_its_section_names_one() -> None:
    def asked(**section: Any) -> ModelServer:
        python = PythonSection(ask=AskSection(**section))
        server = {"base_url": "http://gpu1", "api_key_env": "GPU_KEY"}
        return Program(name="p", model="m", provider="openai", python_limits=python, **server).ask.server

    assert asked() == ModelServer(provider="openai", base_url="http://gpu1", api_key_env="GPU_KEY")
    assert asked(model="small") == asked()
    assert asked(provider="anthropic") == ModelServer()
    assert asked(base_url="http://gpu2") == ModelServer(provider="openai", base_url="http://gpu2")


def test_a_parent_on_one_provider_has_children_on_two_others_and_ps_their_costs(
    agents_of: AgentsOf, store: Store, monkeypatch: pytest.MonkeyPatch, clients: ModelClients
) -> None:
    def script(request: Any) -> Any:
        if "You are SOLO." in request.system and not request.turn_number:
            spawns = [call("spawn", program_name=name, query="Go.") for name in ("chat", "responses")]
            return turn(*spawns)
        return say(f"{request.raw['model']} is done.")

    agents = agents_of(script)
    scripted = agents.model
    monkeypatch.setenv("MINE", scripted.api_key)
    others = [
        Program(
            name=name,
            model=name,
            provider=provider,
            base_url=scripted.openai_base_url,
            api_key_env="MINE",
            price=ModelPrice(input=price, output=price, currency="USD"),
        )
        for name, provider, price in (("chat", "openai", 1e3), ("responses", "openai-responses", 2e3))
    ]
    agents.launch(
        tools=("spawn",),
        base_url=scripted.base_url,
        api_key_env="MINE",
        others=others,
        price=ModelPrice(input=3e3, output=3e3, currency="USD"),
    )
    permissions = allowing(f"{scripted.base_url}=MINE", f"{scripted.openai_base_url}/=MINE")

    for process in ("solo", "solo.1", "solo.2", "solo"):
        agents.attempt(process, permissions=permissions, model=clients)

    assert agents.answer() == "any is done."
    paths = [(each.raw["model"], "input" in each.raw, "max_tokens" in each.raw) for each in scripted.requests]
    assert {name for name, *_ in paths} == {"any", "chat", "responses"}
    assert ("responses", True, False) in paths
    members = {each.id: each for each in store.tree("solo").members}
    assert all(each.tokens and each.cost for each in members.values())
    for price, process in ((3e3, "solo"), (1e3, "solo.1"), (2e3, "solo.2")):
        assert members[process].cost == pytest.approx(price * members[process].tokens / 1e6)
    listed = CliRunner().invoke(cli, ["--url", store.url, "ps", "-a", "--json"]).output
    prices = {each["id"]: each["price"]["input"] for each in map(json.loads, listed.splitlines())}
    assert prices == {"solo": 3e3, "solo.1": 1e3, "solo.2": 2e3}
    shown = CliRunner().invoke(cli, ["--url", store.url, "ps", "-a", "solo"]).output
    assert f"cost {format_costs(list(members.values()))}" in shown
