"""The cost of agents whose programs say what a model costs."""

from __future__ import annotations

from pathlib import Path

import pytest

import fdstore
from fdstore.agents.loop.program_loader import load
from fdstore.cli.processes import format_usage
from fdstore.errors import InvalidProgram
from fdstore.model.records import ModelPrice
from fdstore.testing import Request, Usage, call, say, turn

PRICED = """
[model]
name = "any"

[model.price]
input = 3
output = 15
cache_read = 0.3
currency = "USD"

[prompt]
system = "You lead."

[tools]
enabled = ["spawn"]

[linked_programs]
worker = "worker.toml"
"""
FREE = '[model]\nname = "any"\n[prompt]\nsystem = "You work."\n'


def test_each_process_has_the_price_of_its_program(fdstore_agent, tmp_path: Path) -> None:
    (tmp_path / "lead.toml").write_text(PRICED)
    (tmp_path / "worker.toml").write_text(FREE + "[model.price]\ninput = 1\noutput = 2\n")
    used = Usage(input_tokens=100_000, output_tokens=1000, cache_read_input_tokens=900_000)

    def lead(request: Request):
        if request.turn_number == 0:
            return turn(call("spawn", program_name="worker", query="go"), usage=used)
        return turn(say("done"), usage=Usage(input_tokens=0, output_tokens=0))

    run = fdstore_agent(
        tmp_path / "lead.toml",
        {"You lead.": lead, "You work.": [turn(say("ok"), usage=Usage(input_tokens=10, output_tokens=5))]},
        "Go.",
    )
    store: fdstore.Store = run.process.store
    root, child = store.tree(run.process.id).members

    assert root.price == ModelPrice(input=3, output=15, cache_read=0.3, currency="USD")
    assert root.cost == pytest.approx(0.3 + 0.27 + 0.015)
    assert child.price == ModelPrice(input=1, output=2)
    assert child.cost == pytest.approx(0.00002)
    assert "cost 0.58 USD + <0.0001" in format_usage(store.tree(run.process.id))


def test_a_negative_price_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(FREE + "[model.price]\ninput = -1\noutput = 2\n")

    with pytest.raises(InvalidProgram, match=r"model\.price\.input"):
        load(tmp_path / "odd.toml")
