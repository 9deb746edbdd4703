# Needs Python 3.11 or newer and make, nothing else. Everything is installed into .venv.

PORT ?= 8000
SETUP := PYTHON="$(PYTHON)" sh .ci/setup
RUN := .venv/bin/python
# Compiled files are kept, whatever the caller's environment says: otherwise each process compiles every test again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(RUN) -m pytest
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder

.PHONY: help setup setup-tests run test test-gate test-slow test-kill load check audit bench study doctor clean

help:
	@echo "make run [PORT=8000]  set up, start everything, run the bundled study at its small scale"
	@echo "make test             set up and run the everyday tests"
	@echo "make test-gate        broader sweeps and end-to-end runs; with make test, what continuous integration runs"
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
	@$(PYTEST) $(PARALLEL) -m "not slow and not kill and not gate" $(ARGS)

test-gate: setup-tests
	@$(PYTEST) $(PARALLEL) -m "gate and not slow and not kill" $(ARGS)

test-slow: setup-tests
	@$(PYTEST) -m "slow and not kill" $(ARGS)

test-kill: setup-tests
	@$(PYTEST) -m kill $(ARGS)

load: setup-tests
	@$(PYTEST) -m slow tests/load $(ARGS)

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
