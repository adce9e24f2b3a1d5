"""A Redis whose clock goes back by an hour while all workers die: nothing waits for that hour.

The primary's clock is an hour ahead of that of its replica, which then becomes primary. A process cannot have
a clock of its own, so the test moves all times in the primary an hour ahead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import redis

import fdstore
from fdstore.agents.runtime.claim import Lease
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.clock import redis_now
from fdstore.store.processes import leases, process_records, processes, waiting
from fdstore.store.streams import streams
from fdstore.store.views import worker_registry
from fdstore_workers.sweeper import Sweeper
from tests.on_redis.child_agents import agent
from tests.waiting import wait_until

HOUR_S = 3600
MOVE = """
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      redis.call('ZINCRBY', key, ARGV[1], member)
    end
  elseif kind == 'hash' then
    for _, field in ipairs({ 'lease_until', 'writer_until', 'ready_at', 'seen', 'since' }) do
      if (redis.call('HGET', key, field) or '') ~= '' then
        redis.call('HINCRBYFLOAT', key, field, ARGV[1])
      end
    end
  end
  local left_ms = redis.call('PTTL', key)
  if left_ms > 0 then
    redis.call('PEXPIRE', key, left_ms + ARGV[1] * 1000)
  end
end
"""


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEASE_S", "RENEW_EVERY_S", "SWEEP_EVERY_S", "WAKE_AGAIN_S"):
        monkeypatch.setattr(leases, name, getattr(leases, name) / 10)


class Replicated:
    """A primary whose clock is an hour ahead of its replica's."""

    def __init__(self, primary: PrivateServer, replica: PrivateServer) -> None:
        self._primary, self._replica = primary, replica
        self.store = fdstore.connect(primary.url)

    def fail_over(self) -> Store:
        """Return the store on the replica, which has become primary."""
        with redis.Redis.from_url(self._primary.url) as old, redis.Redis.from_url(self._replica.url) as new:
            old.eval(MOVE, 0, HOUR_S)
            new.execute_command(
                "REPLICAOF", "127.0.0.1", redis.connection.parse_url(self._primary.url)["port"]
            )
            wait_until(lambda: new.info("replication")["master_link_status"] == "up", what="the copy")
            new.execute_command("REPLICAOF", "NO", "ONE")
        self.store.close()
        self._primary.stop()
        self.store = fdstore.connect(self._replica.url)
        return self.store


@pytest.fixture
def replicated() -> Iterator[Replicated]:
    with PrivateServer(port=True) as primary, PrivateServer(port=True) as replica:
        pair = Replicated(primary, replica)
        yield pair
        pair.store.close()


@pytest.mark.thorough("another lease that ends")
def test_after_the_clock_went_back_work_of_dead_workers_is_taken_over_within_two_leases(
    replicated: Replicated,
) -> None:
    """Regression test: all waited until the clock had caught up, for an hour."""
    store = replicated.store
    proc = store.process("triage")
    proc.create("shared with all agents")
    orphans = [agent(store, proc, "running").id for _ in range(6)]
    alive = agent(store, proc, "running")
    unclaimed = store.run(processes.create_child(proc.handle, None, state="ready")).id
    waiter, child = (agent(store, proc, "running") for _ in range(2))
    assert store.run(waiting.park(waiter, [child.id], 60 * leases.LEASE_S))
    stream = store.run(streams.open_stream(proc.handle, "a test", 4096, lease_s=1)).fd
    store.run(leases.observe("fdstore"))
    store.run(worker_registry.register_worker("fdstore", "dead:1", 10, store.run(redis_now())))
    assert store.run(worker_registry.acquire_sweep("fdstore", "dead:1", 5)) == 0

    store = replicated.fail_over()
    woken: list[str] = []
    sweeper = Sweeper(store, "new:1", woken.append)
    with Lease(store, alive, threading.Event(), woken.append).kept():
        sweeper.start()
        try:
            wait_until(lambda: {*orphans, unclaimed} <= set(woken), what="the takeover")
            with redis.Redis.from_url(store.url) as raw:

                def is_due_in_time() -> bool:
                    due = raw.zscore(waiter.keys.tree.leases, waiter.id)
                    return due is not None and 0 < due - store.run(redis_now()) <= 60 * leases.LEASE_S

                wait_until(is_due_in_time, what="a wait that ends when it was to")
            wait_until(lambda: store.process("triage").stat(stream).state == "broken", what="the lost writer")
            assert store.run(worker_registry.workers("fdstore")) == ["new:1"]
        finally:
            sweeper.stop()

    records = [store.run(process_records.record("fdstore", each)) for each in (*orphans, alive.id)]
    assert [record.losses for record in records] == [1] * len(orphans) + [0]
