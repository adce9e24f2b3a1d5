"""SIGTERM and SIGHUP as interrupts of a block."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from fdstore.cli.interrupts import Interrupted, as_interrupts
from tests.waiting import PATIENCE_S


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_the_block_once_and_does_not_interrupt_cleanup(number):
    before = signal.getsignal(number)
    cleaned = False

    raised = 0

    with as_interrupts():
        try:
            os.kill(os.getpid(), number)
        except Interrupted as interrupt:
            raised = interrupt.number
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            cleaned = True

    assert (raised, cleaned) == (number, True)
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with as_interrupts():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


class Dying:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_that_arrives_in_a_destructor_is_not_lost():
    def run() -> None:
        with as_interrupts():
            Dying()
            threading.Event().wait(PATIENCE_S)

    with pytest.raises(Interrupted) as raised:
        run()

    assert raised.value.number == signal.SIGTERM
