# Every target makes its own environment in .venv when there is none. PYTHON names the interpreter (3.11 or later).
PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python
PLUGINS := $(sort $(wildcard plugins/*))
EDITABLE := -e . $(addprefix -e ,$(PLUGINS)) -e examples/plugin-template
SUPPORT := tests/support
DISTRIBUTIONS := pyproject.toml $(addsuffix /pyproject.toml,$(PLUGINS)) examples/plugin-template/pyproject.toml
# Tests wait at times, for Spark, servers, leases and back-offs: three processes use two cores, and four where servers
# are. PYTEST_ARGS adds to the command line.
WORKERS ?= 3
WORKERS_ALL ?= 4

# Without compiled bytecode each worker and each process that a test starts would compile all that it imports anew.
export PYTHONDONTWRITEBYTECODE :=

# What `make test` leaves to `make test-all`; together they run each test once.
LONG := server or peer or slow
# What `make soak` runs again: what has another count there; less than three hours on two cores. See
# docs/internals/testing.md.
SOAK := counted or soak
PYTEST := $(RUN) -m pytest --dist worksteal --durations=20

.PHONY: quickstart test test-all spark-matrix matrix engines tools mutants mutants-kernel coverage lint types layers packaging \
        bench bench-check spec-coverage reference site soak clean

quickstart: .venv/quickstart.stamp  ## Run the main job: a PySpark pipeline over real data
	$(RUN) examples/quickstart/quickstart.py

test: .venv/dev.stamp  ## Run the tests that need no server but SQLite, and one Spark session
	$(PYTEST) -n $(WORKERS) -m "not ($(LONG))" $(PYTEST_ARGS)

test-all: .venv/dev.stamp  ## Run what `make test` leaves out: servers, peers, crash walks, fuzzing; SHARE=1/6 a sixth
	$(PYTEST) -n $(WORKERS_ALL) -m "$(LONG)" $(if $(SHARE),--share $(SHARE)) $(PYTEST_ARGS)

spark-matrix: .venv/dev.stamp  ## Run tests of Spark under PySpark 3.5, 4.0, 4.1 and 4.3
	$(RUN) tests/support/spark_matrix.py $(VERSIONS)

matrix: .venv/dev.stamp  ## Run fast tests under Python 3.11 to 3.13, with the oldest and the newest libraries
	$(RUN) tests/support/version_matrix.py $(ENVIRONMENTS)

engines: .venv/dev.stamp  ## Run tests against Ray, Daft and Dask; BENCH=1 also compares with their own readers
	$(RUN) tests/support/frame_engines.py $(if $(BENCH),--bench)

tools: .venv/dev.stamp  ## Test icefield-tools and icefield-observe, from wheels, beside the newest releases of the tools
	$(RUN) tests/support/tools.py $(PYTEST_ARGS)

mutants: .venv/dev.stamp  ## Run the kit on every broken plugin, and print how many of each contract it rejects
	$(RUN) tests/support/kit_mutants.py --workers $(WORKERS)

mutants-kernel: .venv/dev.stamp  ## Run the kernel's fast unit tests on 200 random mutants of it
	$(RUN) tests/support/kernel_mutants.py $(PACKAGES)

coverage: .venv/dev.stamp  ## Print which lines of the kernel its unit tests reach
	$(PYTEST) -n $(WORKERS) -m "not ($(LONG))" --cov=icefield --cov-report=term:skip-covered tests/unit $(PYTEST_ARGS)

lint: .venv/dev.stamp types layers  ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy

layers: .venv/dev.stamp
	$(BIN)/lint-imports

packaging: .venv/dev.stamp  ## Build the wheels, install each alone and look what it provides
	$(RUN) -m pytest tests/packaging --run-packaging

bench: .venv/dev.stamp  ## Run every benchmark next to its peer
	$(RUN) benchmarks/run.py

bench-check: .venv/dev.stamp  ## Fail for 25 % more CPU than the last release, and for work that grows as a square
	$(RUN) benchmarks/check.py

spec-coverage: .venv/dev.stamp  ## Print which requirements tests show; fail for one that is no longer shown
	$(RUN) tests/spec/coverage.py

reference: .venv/dev.stamp  ## Write the generated pages of docs, the list of extras and framework/public-api.txt anew
	$(RUN) docs/make_extras.py
	$(RUN) docs/make_reference.py
	$(RUN) docs/make_architecture.py
	$(RUN) tests/support/public_api.py

# With --quiet, mkdocs counts no warnings, and --strict passes.
site: .venv/dev.stamp  ## Build the documentation as a site in build/site; fail for a link without a target
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

soak: .venv/dev.stamp  ## Run the property, fuzz, crash and concurrency tests with their full counts
	ICEFIELD_SOAK=1 $(PYTEST) -n $(WORKERS) --run-soak -m "$(SOAK)" --timeout 3600 $(PYTEST_ARGS)

.venv/base.stamp:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; set PYTHON") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	$(RUN) -m pip install --quiet --disable-pip-version-check uv
	touch $@

# Without a lock file: docs/decisions/0005.
.venv/quickstart.stamp: .venv/base.stamp $(DISTRIBUTIONS)
	$(BIN)/uv pip install --quiet --python $(RUN) $(EDITABLE) --group spark
	touch $@

.venv/dev.stamp: .venv/base.stamp $(DISTRIBUTIONS) $(SUPPORT)/pyproject.toml
	$(BIN)/uv pip install --quiet --python $(RUN) $(EDITABLE) -e $(SUPPORT) --group spark --group dev --group peers --group servers
	touch $@

clean:
	rm -rf .venv dist build quickstart-output
