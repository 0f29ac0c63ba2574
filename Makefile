# Everything a person needs: `make serve` and `make test` work on a fresh machine.
# Pass options with ARGS: make serve ARGS="--listen 127.0.0.1:9400", make test ARGS="-k lease -x"

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install spark prepared clients programs serve test check bench compatibility settings roles blocking fuzz chaos simulation-coverage pipeline-kills audit format lock clean

BIN := .venv/bin
DATA ?= ./penstock-data
ARGS ?=

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

install: ## build .venv from requirements.lock (instant when nothing changed)
	@scripts/bootstrap

spark: install ## add what the data pipeline needs to .venv (instant when nothing changed)
	@scripts/bootstrap --spark

clients: install ## build what the tests of other people's clients need (instant when nothing changed)
	@scripts/client-environments

programs: ## install etcd, haproxy, iproute2 and Java (instant when they are there; needs root or sudo)
	@scripts/system-packages

prepared: spark programs ## let Spark start sooner: its classes as Java reads them fastest (instant when they are there)
	@$(BIN)/penstock pipeline prepare

serve: install ## run the embedded server, data in ./penstock-data (DATA=..., ARGS=...)
	@exec $(BIN)/penstock serve --data $(DATA) $(ARGS)

test: spark clients programs prepared ## run every test, in several processes (ARGS=... goes to pytest; "-n 0": in one)
	@$(BIN)/pytest -n auto $(ARGS)

check: spark ## format, lint, types and layering
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict
	$(BIN)/pytest -q tests/architecture

bench: install ## measure this machine and Penstock on it (ARGS=...)
	@exec $(BIN)/penstock bench $(ARGS)

compatibility: install ## rewrite docs/reference/sqs-compatibility.md from what the server really does
	@PENSTOCK_WRITE_COMPATIBILITY=1 $(BIN)/pytest -q tests/clients/test_compatibility_table.py

settings: install ## rewrite what is made from the table of queue settings: the client's options and two reference pages
	@$(BIN)/python scripts/settings_sources.py

roles: install ## draw the diagram of a node's roles in docs/architecture.md from the table of transitions
	@$(BIN)/python -m scripts.role_diagram

blocking: install ## rewrite the blocking client from the source of the asynchronous one
	@$(BIN)/python -m scripts.blocking_client

fuzz: install ## send 300,000 SQS requests, two thirds and more of them mutated (ARGS="--requests 20000 --seed 2")
	@exec $(BIN)/python -m tests.fuzz.run $(ARGS)

chaos: install programs ## kill, pause and cut off the processes of a cluster under load, 60 times (ARGS="--seed 2 --json FILE")
	@exec $(BIN)/python -m tests.chaos.run $(ARGS)

simulation-coverage: install ## run seeds of the simulation and list what no run reached (ARGS="--seeds 1000 --cluster-seeds 1000")
	@exec $(BIN)/python -m tests.simulation.coverage.run $(ARGS)

pipeline-kills: prepared ## kill drivers, executors and their Python under jobs of the data pipeline, 28 times (ARGS="--drivers 3 --json FILE")
	@exec $(BIN)/python -m tests.pipeline.kills $(ARGS)

audit: ## ask about known vulnerabilities of everything in the locks (needs the network; ARGS="--service osv")
	@scripts/audit $(ARGS)

format: install ## rewrite the code the way `make check` wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## renew requirements.lock from pyproject.toml, and the locks of the clients
	scripts/lock
	scripts/lock-clients

clean: ## remove what was built, never the data
	rm -rf .venv .venv-clients tests/clients/node/node_modules build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +
