"""The options of the gateway on the command line, which are those of one declaration."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.cli.gateway import gateway
from fdstore.cli.struct_options import check_needs
from fdstore.hosts.gateway.options import GatewayOptions

words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=9)
options = st.builds(
    GatewayOptions,
    process=st.none() | words,
    tools=st.sampled_from([None, "none", "read", "all"]),
    code=st.sampled_from([None, "also", "only"]),
    code_allow=st.lists(words, max_size=2).map(tuple),
    max_direct_output_chars=st.none() | st.integers(1, 2**53),
    max_read_chars=st.integers(1, 2**53),
)


@given(options)
def test_the_words_of_options_are_read_as_the_same_options(given_options: GatewayOptions) -> None:
    with gateway.make_context("gateway", [*given_options.words(), "--", "server"]) as context:
        read = {name: value for name, value in context.params.items() if name != "command"}

    assert GatewayOptions(**read) == given_options


@pytest.mark.parametrize(
    ("given_options", "problem"),
    [
        (GatewayOptions(header=("a: b",)), "--listen and --header need --http"),
        (GatewayOptions(http="u", header_path=("/p",)), "--header-path needs --listen"),
        (GatewayOptions(name="docs"), "--code-allow and --name need --code"),
    ],
)
def test_an_option_without_the_one_that_it_needs_is_refused(
    given_options: GatewayOptions, problem: str
) -> None:
    with pytest.raises(click.UsageError, match=f"^{problem}$"):
        check_needs(given_options)
