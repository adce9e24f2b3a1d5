"""The adapter of this environment holds what the conformance set says."""

from tests.frameworks.conformance.llama_index import LlamaIndex
from tests.frameworks.conformance.testing import conformance_test

test_an_adapter_holds = conformance_test(LlamaIndex)
