"""The tests of ../data, with the lowest versions."""

from tests.frameworks.data.test_data import *  # noqa: F403
