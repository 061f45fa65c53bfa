# One-word commands for people and for CI. The work is in scripts/, which can be run on their own.
.DEFAULT_GOAL := help
.PHONY: help up test lint bench demo screenshots setup clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 15

up: ## start the host and a first session, and say what to do next
	@scripts/setup runtime
	@scripts/up

test: setup lint ## every check and every test
	@scripts/test

lint: setup ## ruff, mypy, import contracts, shellcheck
	@scripts/lint

bench: ## side-by-side measurements
	@scripts/setup bench
	.venv/bin/python -m bench

demo: ## a guided tour, in a home of its own
	@scripts/setup runtime
	.venv/bin/hold demo

screenshots: setup ## every screen of the console, in both sizes and themes, into build/screenshots
	.venv/bin/python -m tests.browser.screenshots build/screenshots

setup: ## .venv with everything for development, and the Debian packages that tests run
	@scripts/setup dev

# .venv stays: sessions that are running now were started from it.
clean: ## remove caches and build products
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .setup
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
