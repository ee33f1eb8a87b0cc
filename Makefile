# Needs Python 3.11 or newer, its pip, and make. Everything else goes into .venv, pinned by hash.

PYTHON ?= python3
VENV   := .venv
BENCH  := .bench/venv
SITE   := .docs/venv
# Orchestrators can't share an environment: each has one of its own there.
BRIDGES := .bridges
ENGINES := prefect dagster airflow
PIP    := -m pip --disable-pip-version-check install --quiet --require-hashes
# The checkout itself has no hash; everything it needs was installed with one just before.
EDIT   := -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation -e .
COMPILE := uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11

.DEFAULT_GOAL := help
# An environment that was interrupted half-way is made again.
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-bridges check format docs bench bench-guard scale torture reference screenshots requirements

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.tested $(VENV)/.programs ## Make .venv with Penstock and all that its tests need

demo: $(VENV)/.installed ## Ingest a bundled site of 300 pages, for real, in under a minute
	@$(VENV)/bin/penstock demo $(ARGS)

test: $(VENV)/.tested $(VENV)/.programs ## Run every test but the long ones (ARGS="-k settings" to choose)
# More processes than cores: many tests wait for other processes, or for a lease to run out.
	@$(VENV)/bin/python -m pytest -n 6 --dist worksteal -rfEs -m "not torture" $(ARGS)

test-bridges: $(VENV)/.tested $(VENV)/.programs ## Run the bridges on real orchestrators (ENGINES=prefect to choose)
# One that can't be installed does not keep the others from their tests, and is named.
	@for engine in $(ENGINES); do $(MAKE) --no-print-directory $(BRIDGES)/$$engine/.installed || true; done
	@$(VENV)/bin/python -m tests.bridges.run $(ENGINES) -- $(ARGS)

check: $(VENV)/.tested ## Check format, lint, types and which room imports which
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo

format: $(VENV)/.tested ## Format the code and mend what lint can mend
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .

docs: $(SITE)/.installed ## Build the documentation as a site into site/, without the network
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet --clean
	@echo "Open site/index.html"

bench: $(BENCH)/.installed ## Measure Penstock beside its peers and write docs/benchmarks.md (ARGS=--quick)
	@$(BENCH)/bin/python -m bench $(ARGS)

bench-guard: $(VENV)/.installed ## Compare five short rows with those kept last (ARGS=--keep to keep these)
	@$(VENV)/bin/python -m bench.guard $(ARGS)

scale: $(BENCH)/.installed ## Measure how cost grows with history and sources and write docs/scale.md (hours)
	@$(BENCH)/bin/python -m bench.scale $(ARGS)

torture: $(VENV)/.tested $(VENV)/.programs ## Run the long tests: every crash point, kills, full disks
	@$(VENV)/bin/python -m tests.get_programs long || true
	@$(VENV)/bin/python -m pytest -m torture --timeout 7200 $(ARGS)

reference: $(VENV)/.installed ## Write the pages of docs/ that are made from code: events and Python
	@$(VENV)/bin/python -m docs.generators

screenshots: $(VENV)/.tested ## Write the pictures of docs/dashboard.md, from the demo in a real browser
	@$(VENV)/bin/python -m tests.browser.screenshots

requirements: ## Compile requirements/*.in to pinned, hashed .txt files (needs uv)
	@cd requirements && for name in runtime build test bench docs $(ENGINES); do \
	  $(COMPILE) $$name.in --output-file $$name.txt >/dev/null || exit 1; done

$(VENV)/bin/python $(BENCH)/bin/python $(SITE)/bin/python $(ENGINES:%=$(BRIDGES)/%/bin/python):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Penstock needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "This Python can't make environments: install its venv package (python3-venv), then make again" >&2; exit 1; }
	@$(PYTHON) -m venv $(patsubst %/bin/python,%,$@)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml requirements/runtime.txt requirements/build.txt
	@echo "Installing Penstock into $(VENV) …"
	@$(VENV)/bin/python $(PIP) -r requirements/runtime.txt -r requirements/build.txt
	@$(VENV)/bin/python $(EDIT)
	@touch $@

$(VENV)/.tested: $(VENV)/.installed requirements/test.txt
	@echo "Installing what the tests need into $(VENV) …"
	@$(VENV)/bin/python $(PIP) -r requirements/test.txt
	@touch $@

# Without it make goes on, and asks again the next time; the tests say what they miss.
$(VENV)/.programs: $(VENV)/.tested
	@if $(VENV)/bin/python -m tests.get_programs; then touch $@; fi

$(BENCH)/.installed: $(BENCH)/bin/python pyproject.toml requirements/bench.txt
	@echo "Installing Penstock and its peers into $(BENCH) …"
# Also as constraints: pip takes what another package asks for with an extra (psycopg[pool]) for another requirement.
	@$(BENCH)/bin/python $(PIP) -r requirements/bench.txt -c requirements/bench.txt
	@$(BENCH)/bin/python $(EDIT)
	@touch $@

$(SITE)/.installed: $(SITE)/bin/python requirements/docs.txt
	@echo "Installing what builds the site into $(SITE) …"
	@$(SITE)/bin/python $(PIP) -r requirements/docs.txt
	@touch $@

$(BRIDGES)/%/.installed: $(BRIDGES)/%/bin/python pyproject.toml requirements/%.txt
	@echo "Installing Penstock and $* into $(BRIDGES)/$* …"
	@$(BRIDGES)/$*/bin/python $(PIP) -r requirements/$*.txt -c requirements/$*.txt
	@$(BRIDGES)/$*/bin/python $(EDIT)
	@touch $@
