# Needs Python 3.11 or newer and make, nothing else. Everything is installed into .venv.

PORT ?= 8000
SETUP := PYTHON="$(PYTHON)" sh .ci/setup
RUN := .venv/bin/python

.PHONY: help setup setup-tests run test test-slow test-kill load check audit bench study doctor clean

help:
	@echo "make run [PORT=8000]  set up, start everything, run the bundled study at its small scale"
	@echo "make test             set up and run the everyday tests"
	@echo "make check            format, lint, types, import contracts, migrations, installed packages, vulnerabilities"
	@echo "make audit            known vulnerabilities of installed packages; status 3: could not be looked up"
	@echo "make study            run the bundled study at its full scale"
	@echo "make bench            measure the engine against its references"
	@echo "make test-slow | test-kill | load | doctor | clean"

setup:
	@$(SETUP) runtime

setup-tests:
	@$(SETUP) tests

# exec: Ctrl-C reaches the supervisor itself, which stops its children in order.
run: setup
	@exec $(RUN) manage.py up --port $(PORT) --study fatal-mask-pair --scale small

test: setup-tests
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow and not kill" $(ARGS)

test-slow: setup-tests
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -m "slow and not kill" $(ARGS)

test-kill: setup-tests
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -m kill $(ARGS)

load: setup-tests
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -m slow tests/load $(ARGS)

check: setup-tests
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	.venv/bin/lint-imports --no-cache
	$(RUN) manage.py makemigrations --check --dry-run
	$(RUN) -m pip check
	@$(RUN) -m tests.audit || [ $$? -eq 3 ] || exit 1

audit: setup-tests
	@$(RUN) -m tests.audit

bench: setup-tests
	@$(RUN) manage.py bench engine

study: setup
	@$(RUN) manage.py study run fatal-mask-pair --scale full

doctor: setup
	@$(RUN) manage.py doctor

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "Data stays in .workbench; remove it by hand where it is no longer wanted."
