# Every verb sets up what it needs: a fresh clone needs only Python >= 3.11 and make.
PYTHON ?= $(shell scripts/find-python)
VENV   := .venv
BIN    := $(VENV)/bin
SEED   ?=
WORKERS ?= 3
# As a variable of our own: a line that names make's is run by `make -n`, too.
SELF := $(MAKE)
# What it runs, and all that this starts, ends with it, also on Ctrl-C.
SUPERVISED := $(BIN)/python -m tests.support.runs.supervised

.DEFAULT_GOAL := help
.PHONY: help run test test-quick test-pythons check audit bench bench-full bench-spark bench-cluster chaos torture sim docs clean

help:            ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile

$(VENV)/.core: pyproject.toml constraints.txt
	@scripts/venv $(PYTHON) core

$(VENV)/.dev: pyproject.toml constraints.txt
	@scripts/venv $(PYTHON) dev

.tools/.ready: scripts/tools $(wildcard scripts/pom*.xml scripts/otelcol.yaml tests/java/*/*.java tests/go/* tests/node/*)
	@scripts/tools

$(VENV)/.spark: pyproject.toml constraints.txt $(VENV)/.core
	@scripts/venv $(PYTHON) spark

run: $(VENV)/.spark   ## the demo: node, registry, a shop and its Spark pipeline; ONCE=1 ends when all is checked
	@$(BIN)/ottla demo

test:            ## everything: checks, unit tests, simulator, real clients; WORKERS=3 at a time
	@$(MAKE) --no-print-directory -j2 $(VENV)/.dev .tools/.ready
	@$(SUPERVISED) $(BIN)/python -m tests.support.java.archiving & making=$$!; $(SELF) --no-print-directory check; checked=$$?; wait $$making; exit $$checked
	@$(SUPERVISED) $(BIN)/python -m tests.support.runs.whole -n $(WORKERS) --dist loadfile

test-quick: $(VENV)/.dev  ## the inner loop: all tests that need no JVM, no Spark and no minutes
	@$(SUPERVISED) $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --quick

test-pythons:    ## a sample of the unit tests with each Python from 3.11 on that is installed here
	@WORKERS=$(WORKERS) scripts/test-pythons

check: $(VENV)/.dev   ## ruff (also rules about security), mypy --strict, import contracts, dependencies (< 60 s)
	@$(BIN)/ruff check src tests scripts bench examples
	@$(BIN)/ruff format --check src tests scripts bench examples
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m pip --disable-pip-version-check check
	@$(BIN)/python -m scripts.audit

# pip-audit has an environment of its own: what it brings is not pinned.
audit: $(VENV)/.dev   ## known vulnerabilities of the pinned dependencies, also by pip-audit's database, where the network has it
	@[ -x .tools/audit/bin/pip-audit ] || { $(PYTHON) -m venv .tools/audit && .tools/audit/bin/python -m pip --disable-pip-version-check --quiet install pip-audit; } || echo "audit: pip-audit cannot be installed"
	@$(BIN)/python -m scripts.audit --online .tools/audit/bin/pip-audit

bench: $(VENV)/.dev .tools/.ready  ## Ottla against a real Kafka, its Spark source against Spark's own, quick (some 6 min)
	@$(BIN)/python -m bench --quick

bench-full: $(VENV)/.dev .tools/.ready  ## the same, full length
	@$(BIN)/python -m bench

bench-spark: $(VENV)/.dev .tools/.ready  ## Spark and contracts alone, full length (some 5 min)
	@$(BIN)/python -m bench --store --only spark_read spark_avro spark_write contracts

bench-cluster: $(VENV)/.dev .tools/.ready  ## three nodes against three of Kafka's: failover, throughput, many partitions (some 20 min)
	@$(BIN)/python -m bench.cluster

chaos: $(VENV)/.dev .tools/.ready  ## break a cluster of three real nodes; SECONDS=120 AGAINST=ottla|kafka SEED=n LINKS=proxy SECURE=1
	@$(BIN)/python -m tests.chaos --seconds $(or $(SECONDS),120) --against $(or $(AGAINST),ottla) $(if $(SEED),--seed $(SEED)) $(if $(LINKS),--links $(LINKS)) $(if $(SECURE),--secure)

torture: $(VENV)/.dev  ## kill a node with default settings while its topics change; SECONDS=120 SEED=n
	@$(SUPERVISED) $(BIN)/python -m tests.torture --seconds $(or $(SECONDS),120) $(if $(SEED),--seed $(SEED))

sim: $(VENV)/.dev     ## simulator; SEED=n replays one seed, of KIND=records|transactions|topics|answers|coordinated|cluster|cluster-topics
	@$(BIN)/python -m ottla.sim $(if $(SEED),--seed $(SEED)) $(if $(KIND),--kind $(KIND))

docs: $(VENV)/.dev    ## regenerate the tables in docs/ from the registries
	@$(BIN)/python -m scripts.docs

clean:           ## remove everything that set-up made
	rm -rf $(VENV) .tools
