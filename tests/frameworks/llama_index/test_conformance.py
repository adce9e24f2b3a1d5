"""The adapter of this environment holds what the conformance set says, and its examples run."""

from tests.frameworks.conformance.llama_index import LlamaIndex
from tests.frameworks.conformance.testing import conformance_test, docstrings_test, examples_test

test_an_adapter_holds = conformance_test(LlamaIndex)
test_an_example_runs = examples_test("llama_index")
test_the_examples_of_docstrings_run = docstrings_test("llama_index")
