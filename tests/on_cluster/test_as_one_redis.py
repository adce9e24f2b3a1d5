"""Tests that were written for one Redis, run on a Cluster as they are: sharing, streams and their ends,
collecting, exporting, extracting and the awaited surface. Any sequence of calls: test_moving_slots.py."""

import pytest

from tests.on_redis.connections.test_aio import *  # noqa: F403
from tests.on_redis.contents.test_extract import *  # noqa: F403
from tests.on_redis.contents.test_sharing import *  # noqa: F403
from tests.on_redis.streams.test_growing_streams import *  # noqa: F403
from tests.on_redis.streams.test_lost_writers import *  # noqa: F403
from tests.on_redis.streams.test_stream_ends import *  # noqa: F403
from tests.on_redis.streams.test_streams import *  # noqa: F403
from tests.on_redis.trees.test_collect import *  # noqa: F403
from tests.on_redis.trees.test_export_limit import *  # noqa: F403

pytestmark = pytest.mark.thorough(
    "on one Redis they are in `make test`; test_many_nodes.py has every operation"
)
