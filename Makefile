# Two commands on a fresh machine: `make demo` and `make test`. Both set up what they need, and are quick when warm.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help venv demo test check clean

help: ## Say what the targets are
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST)

# The host side alone: enough where containers hold the backends.
$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

# With TensorFlow, Torch and Talos: the process engine and the tests need them in this Python.
$(VENV)/.backends: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[backends]'
	@touch $@

$(VENV)/.dev: $(VENV)/.backends
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,backends]'
	@touch $@

# ruff, mypy and pytest without the backends.
$(VENV)/.check: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

venv: $(VENV)/.dev ## Make .venv with everything in it

demo: $(VENV)/.base ## Run a small real sweep, in containers where an engine can be had
	@if sh images/engine.sh; then \
	    $(BIN)/talos-orch build cpu && $(BIN)/talos-orch launch examples/iris_keras.py --workers 2; \
	else \
	    echo "make demo: using the process engine instead" >&2; \
	    $(MAKE) --no-print-directory $(VENV)/.backends && \
	    $(BIN)/talos-orch launch examples/iris_keras.py --workers 2 --engine process; \
	fi

# Without an engine the tests on containers are skipped, and say so; with CI=true that is a failure.
test: $(VENV)/.dev ## Run all tests, those on real containers included
	@if sh images/engine.sh compose; then \
	    $(BIN)/talos-orch build cpu; \
	elif [ "$(CI)" = true ]; then \
	    echo "make test: CI=true, and there is no Docker Engine" >&2; exit 1; \
	else \
	    echo "make test: no Docker Engine: the tests on containers are skipped" >&2; \
	fi
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/.check ## Lint, format, types, layers, dead links
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/unit/test_layers.py tests/unit/test_docs.py

clean: ## Remove .venv and caches; images and runs stay (talos-orch clean)
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
