# The verbs of this project, the same for people, CI and agents. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup command console screenshots demo unit test test-all unprivileged soak simulation check fmt lock bench up kube docs docs-serve reference charts recordings conformance node cluster test-kube realjob traffic release image

# One more than the usual two cores: tests with real programs wait more than they compute.
WORKERS ?= 3
# Stolen work: the last tests are the longest ones, and both workers should have some.
PYTEST := .venv/bin/pytest -n $(WORKERS) --dist worksteal
CODE := src tests examples tools bench hatch_build.py
UNIT := tests/unit tests/contract tests/docs tests/test_architecture.py tests/test_house.py tests/test_wheel.py tests/test_image.py
# `found` says where tools/setup has put the programs and environments; one order of sets, so that seeds repeat.
FOR_UNIT := found=$$(tools/setup unit) && eval "$$found" && export PYTHONHASHSEED=0
FOR_TEST := found=$$(tools/setup test) && eval "$$found" && export PYTHONHASHSEED=0
FOR_TEST_ALL := found=$$(tools/setup test-all) && eval "$$found" && export PYTHONHASHSEED=0

help: ## list these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: .venv/bin/paceline, bubblewrap and the web console (CONSOLE=no leaves that out)
	@tools/setup

# Without the web console, which the tests build while they wait for their packages.
command:
	@tools/setup command

console: setup ## build the web console anew at every change of console/, until Ctrl-C
	@node=$$(tools/setup npm) && cd console && PATH=$$node:$$PATH PACELINE_CONSOLE_OUT=../src/paceline/console/static npm run --silent watch

screenshots: setup ## take pictures of every page of the web console into screenshots/, and three of them for the README
	@tools/setup npm >/dev/null && chromium=$$(tools/setup chromium) && rm -rf screenshots && mkdir screenshots && \
		PACELINE_CHROMIUM=$$chromium PACELINE_SCREENSHOTS=$$PWD/screenshots $(PYTEST) tests/browser/test_looks.py $(ARGS)
	@cp screenshots/overview-en-light-1280.png docs/assets/console-overview.png
	@cp screenshots/job-summary-en-light-1280.png docs/assets/console-job.png
	@cp screenshots/create-en-light-1280.png docs/assets/console-create.png

demo: command ## train a real two-worker PyTorch job on this machine
	@tools/demo

unit: command ## the tests that need nothing but Python
	@$(FOR_UNIT); $(PYTEST) -m 'not slow' $(UNIT) $(ARGS)

test: command ## all tests but the slow ones; with kubectl and PyTorch, which the first run fetches
	@$(FOR_TEST); $(PYTEST) -m 'not slow' $(ARGS)

test-all: check ## the slow tests: every framework, a real kube-apiserver (built by the first run), long simulations
	@$(FOR_TEST_ALL); $(PYTEST) -m slow $(ARGS)

# One process: there is one cluster, whose bridge and namespaces have fixed names.
test-kube: setup ## jobs on a real Kubernetes with two nodes (root; its programs are built by the first run)
	@assets=$$(tools/setup node | tail -n 1) && helm=$$(tools/setup helm | tail -n 1) && torch=$$(tools/setup torch | tail -n 1) && \
		mpi=$$(tools/setup mpi | tail -n 1) && boards=$$(tools/setup tensorboard | tail -n 1) && desks=$$(tools/setup jupyter | tail -n 1) && \
		PATH=$$helm:$$PATH KUBEBUILDER_ASSETS=$$assets PACELINE_PYTORCH=$$torch PACELINE_MPI=$$mpi PACELINE_TENSORBOARD=$$boards \
		PACELINE_JUPYTER=$$desks .venv/bin/pytest -m cluster tests/cluster $(ARGS)

unprivileged: setup ## the conformance list as a user without privileges (root only makes that user)
	@$(FOR_TEST_ALL); tools/unprivileged .venv/bin/pytest -p no:cacheprovider tests/conformance $(ARGS)

soak: setup ## the long tests, with full counts
	@$(FOR_TEST_ALL); $(PYTEST) -m soak $(ARGS)

# Nothing but computing: more workers than cores would only take turns.
simulation: setup ## the simulation alone, with ten times as many seeds as in `make test`
	@PYTHONHASHSEED=0 .venv/bin/pytest -n $$(nproc) --dist worksteal -m soak tests/integration/test_simulation.py $(ARGS)

check: command ## format, lint, types, lock file; and how plain the names are
	@.venv/bin/ruff format --quiet --check $(CODE) || { echo 'make check: type `make fmt`'; exit 1; }
	@.venv/bin/ruff check --quiet $(CODE)
	@.venv/bin/mypy
	@tools/setup lock --check
	-@.venv/bin/python tools/names.py

fmt: command ## format the code, and mend what can be mended
	@.venv/bin/ruff check --quiet --fix-only $(CODE)
	@.venv/bin/ruff format --quiet $(CODE)

lock: ## choose the newest packages that fit, and write them into requirements.lock
	@tools/setup lock --upgrade

bench: setup ## measure, as ratios in one run
	@PATH=$$(tools/setup kube):$$PATH .venv/bin/python bench/cold_start.py
	@.venv/bin/python -m bench.start
	@.venv/bin/python -m bench.node
	@.venv/bin/python -m bench.gang
	@.venv/bin/python -m bench.data
	@.venv/bin/python -m bench.control
	@.venv/bin/python -m bench.control --on real --finished 0 --throttled 5
	@.venv/bin/python -m bench.control --on real --finished 0 --delay 0.025
	@.venv/bin/python -m bench.control --on real --finished 0 --delay 0.025 --jobs 1 --replicas 1000
	@.venv/bin/python -m bench.scale
	@.venv/bin/python -m bench.api $(ARGS)
	@.venv/bin/python -m bench.console
	@PACELINE_CHROMIUM=$$(tools/setup chromium) PATH=$$(tools/setup kube):$$PATH .venv/bin/python -m bench.console_pages
	@PACELINE_CHROMIUM=$$(tools/setup chromium) PATH=$$(tools/setup kube):$$PATH .venv/bin/python -m bench.compare
	@.venv/bin/python -m bench.history

up: setup ## start the embedded cluster in the foreground
	@.venv/bin/paceline up $(ARGS)

# The theme prints a notice about another product of its makers at every build; its version is fixed in docs/requirements.lock.
docs docs-serve: export NO_MKDOCS_2_WARNING = 1

docs: ## build the documentation site into site/ (open site/index.html); a warning fails
	@home=$$(tools/setup docs) && "$$home/bin/mkdocs" build --strict $(ARGS)

docs-serve: ## serve the documentation at http://127.0.0.1:8000 until Ctrl-C, rebuilt at every change
	@home=$$(tools/setup docs) && exec "$$home/bin/mkdocs" serve --strict $(ARGS)

reference: setup ## write docs/reference/ from the code: kinds, commands, SDK, settings, reasons
	@.venv/bin/python tools/reference.py $(ARGS)

charts: setup ## write charts/ from the templates' own values
	@.venv/bin/python tools/charts.py $(ARGS)

kube: ## build a real kube-apiserver, etcd and kubectl; prints their folder
	@tools/setup kube

node: setup ## run a real Kubernetes with one node until Ctrl-C (root; docs/internals/real-kubernetes.md)
	@tools/setup node >/dev/null
	@.venv/bin/python -m paceline.testing.real.cluster

cluster: setup ## run a real Kubernetes with two nodes until Ctrl-C (root; docs/internals/real-kubernetes.md)
	@tools/setup node >/dev/null
	@.venv/bin/python -m paceline.testing.real.cluster --nodes 2

realjob: setup ## run a job of two members on a real node, with `paceline kube controller` (root; docs/internals/real-kubernetes.md)
	@tools/setup node >/dev/null
	@.venv/bin/python -m tests.kube.realjob

recordings: setup ## take tests/kubectl/recorded anew from a real Kubernetes (root; ARGS="create get": only these)
	@tools/setup node >/dev/null
	@.venv/bin/python -m tests.kubectl.record $(ARGS)

conformance: setup ## take tests/conformance/recorded anew from a real kubelet (root; ARGS="probes env": only these)
	@tools/setup node >/dev/null
	@.venv/bin/python -m tests.conformance.record $(ARGS)

traffic: setup ## take tests/differential/traffic anew from a real kube-apiserver (ARGS="helm kr8s": only these)
	@$(FOR_TEST_ALL); .venv/bin/python -m tests.differential.record $(ARGS)

image: ## build the image of Paceline with buildah (BASE=IMAGE; PUSH=HOST/NAME:TAG, TLS=no for a registry without certificate)
	@BASE='$(BASE)' PUSH='$(PUSH)' TLS='$(TLS)' tools/image

release: setup ## build wheel, sdist, SBOM and checksums of HEAD into dist/
	@.venv/bin/python tools/release.py
