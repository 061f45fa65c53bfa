# One-word commands for people and for CI. The work is in scripts/, which can be run on their own.
.DEFAULT_GOAL := help
.PHONY: help up quick test soak matrix lint release bench demo screenshots setup clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 15

up: ## start the host and a first session, and say what to do next
	@scripts/setup runtime
	@scripts/up

quick: setup ## lint and the pure unit tests, in less than a minute
	@scripts/quick

test: setup lint ## every check and every test
	@scripts/test

soak: setup ## loops and properties, 20 times as long (FACTOR=, SEED=); the report is docs/soak.md
	@scripts/soak

matrix: setup ## the unit tests on every Python from 3.11 that is here
	@scripts/matrix

lint: setup ## ruff, mypy, import contracts, shellcheck
	@scripts/lint

bench: ## side-by-side measurements
	@scripts/setup bench
	.venv/bin/python -m bench

release: setup ## check, build and tag VERSION=x.y.z from a clean tree (DRY=1 changes nothing)
	@scripts/release $(if $(DRY),--dry-run) $(VERSION)

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
