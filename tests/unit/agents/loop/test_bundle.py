"""Bundles of programs: stored as JSON, identified by a digest."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.agents.loop.program_loader import Bundle, Limits, LinkedProgram, Program, load
from fdstore.errors import InvalidProgram
from fdstore.model.records import TreeLimits
from fdstore.results.config import FDConfig

MODEL = '[model]\nname = "claude-x"\n'

names = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,47}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
sizes = st.integers(1, 1 << 53)
json_values = st.recursive(
    st.booleans()
    | st.integers(-(1 << 53), 1 << 53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def bundles(draw) -> Bundle:
    keys = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    links = st.builds(LinkedProgram, key=st.sampled_from(keys), description=texts)
    programs = {
        key: Program(
            name=key,
            model=draw(texts),
            description=draw(texts),
            system=draw(texts),
            user=draw(st.none() | texts),
            parameters=draw(st.dictionaries(texts, json_values, max_size=3)),
            tools=tuple(draw(st.lists(st.sampled_from(["read_fd", "spawn"]), unique=True))),
            file_descriptor=FDConfig(enabled=draw(st.none() | st.booleans()), max_read_chars=draw(sizes)),
            preload=tuple(draw(st.lists(texts, max_size=2))),
            linked=draw(st.dictionaries(names, links, max_size=3)),
            export_root=draw(st.none() | texts),
            limits=Limits(token_budget=draw(st.none() | sizes), wall_seconds=draw(st.integers(1, 9))),
            tree_limits=TreeLimits(retention_days=draw(st.integers(0, 99) | st.floats(0, 99))),
        )
        for key in keys
    }
    return Bundle(root=draw(st.sampled_from(keys)), programs=programs)


@given(bundles())
def test_a_bundle_survives_a_json_round_trip(bundle):
    again = Bundle.from_json(bundle.json)

    assert again == bundle
    assert [list(p.linked) for p in again.programs.values()] == [
        list(p.linked) for p in bundle.programs.values()
    ]
    assert again.digest == bundle.digest


def test_a_digest_is_8_hex_digits_and_changes_with_the_content(write):
    path = write("agent.toml")
    before = load(path).digest
    write("agent.toml", "[limits]\nretention_days = 7\nwall_seconds = 3600\nmax_turns = 50")
    spelled_out = load(path).digest
    write("agent.toml", "[limits]\nmax_turns = 51")
    changed = load(path).digest

    assert len(before) == 8
    assert set(before) <= set("0123456789abcdef")
    assert before == spelled_out != changed


def test_the_budgets_of_a_tree_change_a_digest_only_where_they_are_given(write):
    bare = load(write("agent.toml"))
    given = load(write("agent.toml", "[limits]\ntree_token_budget = 1000\ntree_model_calls = 9"))

    assert "tree_token_budget" not in bare.json
    assert given.digest != bare.digest
    limits = Bundle.from_json(given.json).programs["agent"].tree_limits
    assert (limits.tree_token_budget, limits.tree_model_calls) == (1000, 9)


def test_warnings_are_neither_stored_nor_digested():
    quiet = Bundle(root="a", programs={"a": Program(name="a", model="m")})
    warned = msgspec.structs.replace(quiet, warnings=("look",))

    assert warned.json == quiet.json
    assert warned.digest == quiet.digest
    assert Bundle.from_json(warned.json).warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"root": "a"}',
        '{"root": "a", "programs": {}}',
        '{"root": "a", "programs": {"a": {"name": "a", "model": "m", "linked": {"b": {"key": "b"}}}}}',
        '{"root": "a", "programs": {"a": {"name": "a", "model": "m", "limits": {"max_turns": 0}}}}',
        '{"root": "a", "programs": {"a": {"name": "a", "model": "m", "parameters": ' + "[" * 9999,
        b'{"root": "\xff"}',
        '{"root": "a", "programs": {"a": {"name": "a", "model": "m", "python_limits": {"memory": "x"}}}}',
        '{"root": "a", "programs": {"a": {"name": "a", "model": "", "file_descriptor": {"tool": {"": 7}}}}}',
        '{"root": "a", "programs": {"a": {"name": "", "model": "", "file_descriptor": {"whole_chars": -1}}}}',
    ],
)
def test_text_that_is_not_a_bundle_is_refused(text):
    with pytest.raises(InvalidProgram, match="bundle"):
        Bundle.from_json(text)


def test_a_policy_of_a_tool_is_stored_and_changes_the_digest(write):
    path = write("agent.toml", "[file_descriptor]\nmax_read_chars = 10")
    before = load(path)
    write(
        "agent.toml", "[file_descriptor]\nmax_read_chars = 10\n[file_descriptor.tool.grep]\ninline = 'never'"
    )
    after = load(path)

    assert '"tool"' not in before.json
    assert '"tool":{"grep":{"inline":"never"}}' in after.json
    assert Bundle.from_json(after.json).programs == after.programs
    assert before.digest != after.digest
