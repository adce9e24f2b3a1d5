"""What models cost that name no price: by the tables of `genai-prices`, where these know the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from fdstore.agents.loop.bundle import Program
from fdstore.agents.loop.models import prices
from fdstore.agents.loop.models.prices import known_price
from fdstore.agents.loop.program_loader import load
from fdstore.agents.loop.questions import question_bundle
from fdstore.model.model_servers import ModelServer
from fdstore.model.records import ModelPrice

MODEL = "claude-sonnet-4-5"
PRICE = ModelPrice(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75, currency="USD")


def programs_of(folder: Path, text: str) -> Program:
    (folder / "agent.toml").write_text(f'[model]\nname = "{MODEL}"\n{text}')
    return load(folder / "agent.toml").programs["agent"]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_a_program_that_names_no_price_has_the_known_one(tmp_path: Path) -> None:
    assert programs_of(tmp_path, "").price == PRICE


def test_a_price_of_the_program_comes_first(tmp_path: Path) -> None:
    own = programs_of(tmp_path, "[model.price]\ninput = 1.0\noutput = 2.0\n")

    assert own.price == ModelPrice(input=1.0, output=2.0)


def test_the_model_that_code_asks_has_its_own_price(tmp_path: Path) -> None:
    program = programs_of(
        tmp_path,
        '[tools]\nenabled = ["run_python"]\n[python.ask]\nmodel = "gpt-4o-mini"\nprovider = "openai"\n',
    )
    same = programs_of(tmp_path, '[tools]\nenabled = ["run_python"]\n')
    question = question_bundle(MODEL, ask_price=None).programs["ask"]

    assert program.ask.price is not None
    assert (program.ask.price.input, program.ask.price.currency) == (0.15, "USD")
    assert same.ask.price == question.ask.price == PRICE


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "https://gateway.example/v1"])
def test_a_server_of_ones_own_has_no_price(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert known_price(MODEL, ModelServer(base_url=url)) is None
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    assert known_price(MODEL, ModelServer()) is None


def test_a_service_that_the_tables_know_has_its_prices() -> None:
    router = ModelServer(provider="openai", base_url="https://openrouter.ai/api/v1")

    assert known_price("openai/gpt-4o-mini", router) is not None
    assert known_price("a model of nobody", router) is None
    assert (
        known_price("anthropic.claude-sonnet-4-5-20250929-v1:0", ModelServer(provider="bedrock")) is not None
    )


def test_without_the_package_there_are_no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "is_installed", lambda _: False)

    assert known_price(MODEL, ModelServer()) is None
