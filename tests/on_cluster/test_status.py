"""The sums of a store's trees, which are on any node, read on a Cluster."""

from tests.on_redis.views.test_status import (  # noqa: F401
    test_before_the_first_sweep_the_sums_are_unknown,
    test_the_sums_of_any_number_of_trees_cost_two_round_trips,
)
