"""Contents that become cold and come back over a network that loses replies are as plain strings."""

from __future__ import annotations

import random
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

import fdstore
from tests.chaos.conftest import Execute
from tests.chaos.proxy import Proxy
from tests.cold_model import ColdModel


@pytest.mark.thorough("the same over a network that fails")
def test_any_sequence_of_calls_matches_plain_strings(
    proxy: Proxy, execute: Execute, tmp_path: Path, seed: int
) -> None:
    @hypothesis.seed(seed)
    class OverALossyNetworkToo(ColdModel):
        @initialize(every=st.sampled_from([2, 3, 7]))
        def begin(self, every: int) -> None:
            proxy.lose_every(every)

        @rule(every=st.sampled_from([0, 2, 3, 7, 20]))
        def lose_replies(self, every: int) -> None:
            proxy.lose_every(every)

    with fdstore.connect(proxy.url) as far, proxy.cut_at_random(random.Random(seed)):
        OverALossyNetworkToo.store, OverALossyNetworkToo.execute = far, staticmethod(execute)
        OverALossyNetworkToo.folder = tmp_path

        run_state_machine_as_test(
            OverALossyNetworkToo,
            settings=settings(
                max_examples=20,  # in each profile: with a tenth of them no content may become cold
                stateful_step_count=20,
                deadline=None,
                database=None,
                phases=[Phase.generate],  # the network differs each time, so nothing can be shrunk
                suppress_health_check=list(HealthCheck),
            ),
        )
        proxy.lose_every(0)
    assert OverALossyNetworkToo.moved, "no content became cold, so this proved nothing"
