# Everything a developer runs. A fresh machine needs python3 (3.11 or newer) with venv and pip, and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# The library alone, for the demo.
LIBRARY := $(VENV)/.library
# The oldest versions that pyproject.toml admits.
FLOORS := .venv-floors
# Worker processes of the test suite; each one keeps to a single BLAS thread.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow test-floors test-without test-pythons audit test-gpu outputs fuzz lint format docs bench bench-quick bench-check bench-plots \
  bench-parts bench-accuracy clean

help:
	@echo "make install    create $(VENV) and install the library with its development tools"
	@echo "make demo       a first look at the library, on a data set of its own"
	@echo "make test       the test suite and the doctests"
	@echo "make test-slow  the tests marked slow"
	@echo "make test-floors  the test suite with the oldest versions of all dependencies, in $(FLOORS)"
	@echo "make test-without  the test suite without each optional extra in turn (EXTRAS=plot: one of them, EXTRAS=all: all at once)"
	@echo "make test-pythons  the test suite on every Python from 3.11 to 3.14 that is installed"
	@echo "make audit      known vulnerabilities of the installed packages (pip-audit)"
	@echo "make test-gpu   the tests of the engine \"torch\", on a GPU if there is one"
	@echo "make fuzz       the property tests with many random examples, 10,000 odd inputs and random fits (CASES=)"
	@echo "make lint       ruff and mypy"
	@echo "make format     let ruff rewrite the layout and the imports"
	@echo "make docs       the documentation, into docs/_build/html"
	@echo "make outputs    run the Python of README and of all pages and write what it prints into them"
	@echo "make bench      ours and the peers side by side (bench-quick: small sizes)"
	@echo "make bench-check  ratios of a quick run against the committed table"
	@echo "make bench-plots  the scaling plots of the documentation, from the committed table"
	@echo "make bench-parts  every benchmarks/bench_*.py: single parts of the library"
	@echo "make bench-accuracy  errors of our defaults and of other methods on public tables"
	@echo "make clean      remove what the other targets made, the environment included"

install: $(STAMP)

$(STAMP): $(LIBRARY)
	@echo "Installing the development tools into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(LIBRARY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "multikernel needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another interpreter: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "Could not create $(VENV). On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Installing multikernel into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

demo: $(LIBRARY)
	@$(BIN)/multikernel demo --force

test: install
	@$(BIN)/python -m pytest -n $(WORKERS)

# Exit status 5 is pytest's "nothing collected": no slow test is no failure.
test-slow: install
	@$(BIN)/python -m pytest -n $(WORKERS) -m slow || [ $$? -eq 5 ]

# Compiled loops are cached apart: another numba would overwrite those of the development environment.
test-floors:
	@$(PYTHON) -m venv $(FLOORS)
	@$(PYTHON) tests/floors.py > $(FLOORS)/floors.txt
	@$(FLOORS)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c $(FLOORS)/floors.txt -e '.[test]'
	@NUMBA_CACHE_DIR=$(FLOORS)/cache $(FLOORS)/bin/python -m pytest -n $(WORKERS) $(TESTS)

# Optional packages are hidden one extra after the other (tests/without): EXTRAS=plot for one.
EXTRAS ?= plot sequences sdp tables excel cluster gpu pandas
test-without: install
	@set -e; for extra in $(EXTRAS); do echo "== without $$extra"; \
	  PYTHONPATH=tests/without MULTIKERNEL_WITHOUT=$$extra \
	  $(BIN)/python -m pytest -q -n $(WORKERS) $(TESTS); done

# An environment for every Python that is found, built from the registry: PYTHONS=3.13 for one.
PYTHONS ?= 3.11 3.12 3.13 3.14
test-pythons:
	@set -e; for version in $(PYTHONS); do \
	  command -v python$$version > /dev/null || { echo "== no python$$version here"; continue; }; \
	  echo "== Python $$version"; python$$version -m venv .venv-$$version; \
	  .venv-$$version/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]'; \
	  NUMBA_CACHE_DIR=.venv-$$version/cache .venv-$$version/bin/python -m pytest -q -n $(WORKERS) $(TESTS); done

# Known vulnerabilities of what is installed; needs the network.
audit: install
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	@$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/installed.txt
	@$(BIN)/python -m pip_audit --disable-pip --no-deps -r $(VENV)/installed.txt

# torch is no part of the development tools: install it with `pip install 'multikernel[gpu]'`.
test-gpu: install
	@$(BIN)/python -c 'import torch' || { echo "torch is missing: $(BIN)/pip install -e .[gpu]" >&2; exit 1; }
	@$(BIN)/python -m pytest -n $(WORKERS) -m "slow or not slow" tests/grams/gpu tests/estimators/test_devices.py

# pytest knows property tests by a mark that hypothesis gives them. Odd inputs and random problems
# follow, CASES of each.
CASES ?= 10000
fuzz: install
	@$(BIN)/python -m pytest -n $(WORKERS) -m "hypothesis and not slow" --hypothesis-profile=fuzz tests
	@$(BIN)/python -m tests.fuzz odd --cases $(CASES)
	@$(BIN)/python -m tests.fuzz fits --cases $(CASES)

lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: install
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: install
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

outputs: install
	@$(BIN)/python -m tests.pages --update

# Goes on where it was stopped; see `python -m benchmarks --help` for single entries.
bench: install
	@$(BIN)/python -m benchmarks
	@$(BIN)/python -m benchmarks --plots

bench-quick: install
	@$(BIN)/python -m benchmarks --quick

bench-check: install
	@$(BIN)/python -m benchmarks --check

bench-plots: install
	@$(BIN)/python -m benchmarks --plots

bench-parts: install
	@set -e; for file in $(wildcard benchmarks/bench_*.py); do \
	  echo "== $$file"; $(BIN)/python $$file; done

# A run that was stopped goes on where it was; ARGS=--quick for minutes instead of hours. LightGBM,
# XGBoost and CatBoost are installed into an environment of their own, beside those of `make bench`.
bench-accuracy: install
	@$(BIN)/python -m benchmarks.accuracy $(ARGS)

clean:
	rm -rf $(VENV) $(FLOORS) .venv-3.* docs/_build docs/generated dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src experiments tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
