# Two commands on a fresh machine: 'make run' shows what equfl does, 'make test' proves that it does it.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test test-flower test-deployment check bench lowest clean

run: .venv/installed
	@$(BIN)/equfl run quickstart

test: .venv/installed-dev
	@$(BIN)/python -m pytest -n 2

test-flower: .venv/installed-dev ## the Flower room with the lowest and the newest Flower that pyproject.toml allows
	@scripts/test-flower

test-deployment: .venv/installed-dev ## a federation of processes on this machine, with TLS, a death and a broken node
	@$(BIN)/python -m pytest -m "deployment and not slow" tests/flower

check: .venv/installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: .venv/installed
	@$(BIN)/python -m benchmarks.engines
	@$(BIN)/python -m benchmarks.rules

lowest: ## the tests on the lowest versions that pyproject.toml allows
	@scripts/test-lowest

.venv/installed: pyproject.toml constraints.txt
	@scripts/install .
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt
	@scripts/install '.[dev]'
	@touch $@ .venv/installed

clean:
	rm -rf .venv .venv-lowest .pytest_cache .mypy_cache .ruff_cache runs
