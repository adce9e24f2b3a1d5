"""The demo, complete: what its two acts say at their ends."""

from __future__ import annotations

import re

import pytest

from tests.thorough import thorough


@pytest.mark.thorough("a killed worker is tested with other programs")
@pytest.mark.parametrize("options", [[], *thorough("the demo, by another API", ["--provider", "openai"])])
def test_a_killed_process_of_the_worker_costs_the_program_of_the_second_act_no_answer(fresh, options):
    text = "".join(f"src/{number}.py:{number}:def f{number}():\n" for number in range(8000))
    (fresh.folder / "text.txt").write_text(text)

    ended = fresh("demo", "text.txt", *options)

    assert ended.code == 0, ended.err
    assert "triage" in ended.out
    assert re.search(r"The worker's process [0-9]+ is killed, after [0-9]+ answers\.", ended.out)
    assert "40 asks: 8000; counted: 8000" in ended.out
    assert "40 questions, each answered once: 40 answers" in ended.out
    [sent] = re.findall(r"Sent to the model +([0-9]+) requests", ended.out)
    assert 40 <= int(sent) <= 50
