"""Random runs over a network that loses replies and connections give the results of plain strings.

Beside the calls of the model of `tests/store_model.py`: long texts, and streams that are read while they are
written.
"""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

import fdstore
from tests.chaos.conftest import Execute
from tests.chaos.proxy import Proxy
from tests.properties import examples
from tests.slices import texts

LONG_CHARS = 200_000


@pytest.mark.thorough("long sequences")
def test_any_sequence_of_calls_matches_plain_strings(
    store_model: Any, proxy: Proxy, execute: Execute, tmp_path: Path, seed: int
) -> None:
    @hypothesis.seed(seed)
    class OverALossyNetwork(store_model):
        @initialize(every=st.sampled_from([2, 3, 7]))
        def begin(self, every: int) -> None:
            proxy.lose_every(every)

        @rule(every=st.sampled_from([0, 2, 3, 7, 20]))
        def lose_replies(self, every: int) -> None:
            proxy.lose_every(every)

        @rule(
            data=st.data(),
            text=texts.filter(bool),
            size=st.sampled_from([1000, 4000]),
            how=st.sampled_from(["create", "ingest"]),
        )
        def store_long(self, data: st.DataObject, text: str, size: int, how: str) -> None:
            proc, whole = self.draw_process(data), text * (LONG_CHARS // len(text))

            if how == "create":
                made = proc.create(whole, page_size=size)
            else:
                made = proc.ingest(io.BytesIO(whole.encode()), "a file", page_size=size)

            self.add(proc.id, made.fd, whole, size)

        @rule(
            data=st.data(),
            pieces=st.lists(st.tuples(texts, st.sampled_from([1, 3000])), max_size=5),
            size=st.sampled_from([5, 4000]),
        )
        def stream(self, data: st.DataObject, pieces: list[tuple[str, int]], size: int) -> None:
            proc, whole = self.draw_process(data), ""

            with proc.open_stream(page_size=size) as out:
                for text, times in pieces:
                    piece = text * times if size > 5 else text
                    out.write(piece)
                    out.flush()
                    whole += piece
                    assert proc.read(out.fd, read_all=True).text == whole

            self.add(proc.id, out.fd, whole, size)

        def add(self, process: str, fd: str, text: str, size: int) -> None:
            assert fd == f"fd:{self.next_fd[process]}"
            self.tables[process][fd] = (text, size)
            self.next_fd[process] += 1

    with fdstore.connect(proxy.url) as far, proxy.cut_at_random(random.Random(seed)):
        OverALossyNetwork.store, OverALossyNetwork.execute = far, staticmethod(execute)
        OverALossyNetwork.folder = tmp_path

        run_state_machine_as_test(
            OverALossyNetwork,
            settings=settings(
                max_examples=examples(20),
                stateful_step_count=20,
                deadline=None,
                database=None,
                phases=[Phase.generate],  # the network differs each time, so nothing can be shrunk
                suppress_health_check=list(HealthCheck),
            ),
        )
        proxy.lose_every(0)
