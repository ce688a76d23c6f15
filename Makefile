# Two commands on a fresh machine: 'make run' shows what equfl does, 'make test' proves that it does it.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test check bench lowest clean

run: .venv/installed
	@$(BIN)/equfl run quickstart

test: .venv/installed-dev
	@$(BIN)/python -m pytest -n 2

check: .venv/installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: .venv/installed
	@$(BIN)/python -m benchmarks.engines

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
