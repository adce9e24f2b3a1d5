"""`[file_descriptor]`: its names, its defaults, and the refusal of invalid values."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.results.config import FLAGS, SIZES, FDConfig
from fdstore.results.tool_policy import THRESHOLDS
from fdstore.text.numbers import MAX_INTEGER


def test_the_names_and_defaults_are_those_of_the_program_file():
    assert msgspec.to_builtins(FDConfig()) == {
        "enabled": None,
        "default_page_size": 4000,
        "max_input_chars": 8000,
        "page_user_input": True,
        "enable_references": True,
        "json_pretty_print": False,
        "max_read_chars": 100_000,
        "max_expand_chars": 1_000_000,
        "whole_chars": 0,
        "hold_back_tools": True,
        "tool": {},
        "max_direct_output_chars": None,
        "max_direct_output_tokens": None,
        "count_tokens": None,
    }
    assert (FDConfig().direct_chars, FDConfig().whole_limit) == (8000, 0)


def test_every_field_is_checked_as_a_flag_or_as_a_size():
    with_checks_of_their_own = {"enabled", "tool", "count_tokens"}

    assert {*FLAGS, *SIZES, *THRESHOLDS} | with_checks_of_their_own == set(FDConfig.__struct_fields__)


@pytest.mark.parametrize("name", [*SIZES, *THRESHOLDS])
@pytest.mark.parametrize(
    "size", [-1, MAX_INTEGER + 1, 10**5000, True, 4000.0, "4000", math.nan], ids=lambda _: "size"
)
def test_a_size_that_is_not_a_whole_number_from_1_on_is_refused_by_name(name, size):
    with pytest.raises(InvalidArgument, match=r"must be an integer from [01] to 9007199254740992") as caught:
        FDConfig(**{name: size})

    assert caught.value.argument == name
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize("name", [*SIZES, *THRESHOLDS])
def test_only_whole_chars_may_be_0(name):
    if name == "whole_chars":
        assert FDConfig(whole_chars=0).whole_limit == 0
        return
    with pytest.raises(InvalidArgument, match=f"{name}: must be an integer from 1"):
        FDConfig(**{name: 0})


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("flag", [1, 0, "true", None])
def test_a_flag_that_is_not_a_bool_is_refused_by_name(name, flag):
    with pytest.raises(InvalidArgument, match="must be true or false") as caught:
        FDConfig(**{name: flag})

    assert caught.value.argument == name


@pytest.mark.parametrize("flag", [1, "no"])
def test_enabled_may_be_left_out_but_must_be_a_bool(flag):
    assert (FDConfig(enabled=False).enabled, FDConfig().enabled) == (False, None)

    with pytest.raises(InvalidArgument, match="enabled: must be true or false, or left out"):
        FDConfig(enabled=flag)


@pytest.mark.parametrize("name", SIZES)
def test_a_size_with_a_default_is_never_none(name):
    with pytest.raises(InvalidArgument, match=name):
        FDConfig(**{name: None})


def test_a_config_decoded_from_json_is_checked():
    with pytest.raises(InvalidArgument, match="max_read_chars"):
        msgspec.json.decode(b'{"max_read_chars": 0}', type=FDConfig)


def test_an_unknown_name_is_refused():
    with pytest.raises(TypeError, match="page_size"):
        FDConfig(page_size=10)
    with pytest.raises(msgspec.ValidationError, match="page_size"):
        msgspec.convert({"page_size": 10}, FDConfig)


sizes = st.integers(1, MAX_INTEGER)
configs = st.builds(
    FDConfig,
    enabled=st.none() | st.booleans(),
    **dict.fromkeys(SIZES, sizes),
    **{name: st.booleans() for name in FLAGS},
)


@given(configs)
def test_any_valid_config_survives_json(config):
    assert msgspec.json.decode(msgspec.json.encode(config), type=FDConfig) == config
