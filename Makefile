# Each target makes .venv and installs what it needs; a fresh machine needs Python 3.11 (or newer) and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# A stamp for each extra of pyproject.toml: what a run needs, and what development needs besides.
RUN := .venv/.installed-experiments
DEV := .venv/.installed-dev
WORKERS ?= 2
export BUF_CACHE_DIR := $(CURDIR)/.venv/.buf

.DEFAULT_GOAL := help
.PHONY: help install demo cluster test check images proto bench clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | awk -F'\t' '{ printf "  make %-9s %s\n", $$1, $$2 }'

install: $(DEV) ## make .venv with everything for development

.venv/.installed-%: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "SGFusion needs Python 3.11 or newer; point to one with: make PYTHON=/path/to/python3.11 install"; exit 1; }
	@echo "Installing into .venv (some minutes, once) ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv || \
	  { echo "No virtual environment could be made; on Debian: apt-get install python3-venv"; exit 1; }
	@deploy/pip .venv/install.log $(BIN)/python --constraint constraints.txt --editable '.[$*]'
	@touch $@ $(if $(filter dev,$*),$(RUN))

demo: $(RUN) ## train six zones on a cluster of this machine: live, then a table
	@$(BIN)/sgfusion up experiments/demo.toml

cluster: $(RUN) ## the same in containers, four zones: builds images, starts, follows, prints the table
	@deploy/cluster

# How soon the page tells comes first and alone: beside others it measures them. Then the page's, apart from containers:
# these change the machine's networks, at which a browser drops all requests. Then all others, dealt as tests/dealing.py
# says, in its order.
test: $(DEV) ## run all tests that this machine can run
	@$(BIN)/pytest tests/page/test_lateness.py
	@$(BIN)/pytest --numprocesses $(WORKERS) --dist loadfile tests/page --ignore tests/page/test_lateness.py
	@$(BIN)/pytest --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder --ignore tests/page

check: $(DEV) ## lint, types, the dependency rule, the protocol, generated code
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/buf lint
	@$(BIN)/buf format --diff --exit-code
	@$(BIN)/buf breaking --against protos/released.binpb
	@$(BIN)/python protos/generate.py --check

images: $(RUN) ## build the container images, and say how large they are
	@deploy/images

proto: $(DEV) ## generate sgfusion/proto from protos/
	@$(BIN)/python protos/generate.py

bench: $(DEV) ## measure the dendrogram fit, the simulator, rounds on the wire, memory, the page: half an hour; QUICK=1: a minute
	@$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

clean: ## remove .venv and caches; results stay
	@rm -rf .venv deploy/wheels .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
