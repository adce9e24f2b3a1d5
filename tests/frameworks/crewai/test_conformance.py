"""The adapter of this environment holds what the conformance set says, and its examples run."""

from tests.frameworks.conformance.crewai import CrewAI
from tests.frameworks.conformance.testing import conformance_test, docstrings_test, examples_test

test_an_adapter_holds = conformance_test(CrewAI)
test_an_example_runs = examples_test("crewai")
test_the_examples_of_docstrings_run = docstrings_test("crewai")
