# The verbs of this project, the same for people, CI and agents. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test soak check fmt lock bench up kube

WORKERS ?= 2
# Stolen work: the last tests are the longest ones, and both workers should have some.
PYTEST := .venv/bin/pytest -n $(WORKERS) --dist worksteal
CODE := src tests examples tools bench
# A real kube-apiserver, kubectl and PyTorch, so that no test has to be skipped; one order of sets, so that seeds repeat.
FOR_TESTS := KUBEBUILDER_ASSETS=$$(tools/setup kube); PACELINE_PYTORCH=$$(tools/setup torch); \
	export PYTHONHASHSEED=0 KUBEBUILDER_ASSETS PACELINE_PYTORCH PATH=$$KUBEBUILDER_ASSETS:$$PATH

help: ## list these verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: .venv/bin/paceline and bubblewrap
	@tools/setup

demo: setup ## train a real two-worker PyTorch job on this machine
	@tools/demo

test: check ## every test, from nothing (the first run builds a kube-apiserver: minutes)
	@$(FOR_TESTS); $(PYTEST) $(ARGS)

soak: setup ## the long tests, with full counts
	@$(FOR_TESTS); $(PYTEST) -m soak $(ARGS)

check: setup ## format, lint, types, lock file
	@.venv/bin/ruff format --quiet --check $(CODE) || { echo 'make check: type `make fmt`'; exit 1; }
	@.venv/bin/ruff check --quiet $(CODE)
	@.venv/bin/mypy
	@tools/setup lock --check

fmt: setup ## format the code, and mend what can be mended
	@.venv/bin/ruff check --quiet --fix-only $(CODE)
	@.venv/bin/ruff format --quiet $(CODE)

lock: ## choose the newest packages that fit, and write them into requirements.lock
	@tools/setup lock --upgrade

bench: setup ## measure, as ratios in one run
	@PATH=$$(tools/setup kube):$$PATH .venv/bin/python bench/cold_start.py $(ARGS)

up: setup ## start the embedded cluster in the foreground
	@.venv/bin/paceline up $(ARGS)

kube: ## build a real kube-apiserver, etcd and kubectl; prints their folder
	@tools/setup kube
