# Set-up and entry points. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
# CORES= goes over the profile's own number.
EVERY_ENGINE := ns3,ns2,linux
comma := ,
CORES ?=
PROFILE ?= default
# What TIER=, STUDIES=, ENGINES= and RUNTIME= lay over configs/config.yaml. The comma keeps Snakemake
# from reading a study called 2001 or 1e5 as a number.
SETTINGS := $(if $(TIER),tier=$(TIER)) $(if $(STUDIES),studies=$(STUDIES)$(comma)) \
            $(if $(ENGINES),engines=$(ENGINES)) $(if $(RUNTIME),runtime=$(RUNTIME)) \
            $(if $(NS3_VERSION),ns3_version=$(NS3_VERSION))
CONFIG := $(if $(strip $(SETTINGS)),--config $(strip $(SETTINGS)))
SELECT := $(if $(TIER),--tier $(TIER)) $(if $(STUDIES),--studies $(STUDIES)) \
          $(if $(ENGINES),--engines $(ENGINES)) $(if $(RUNTIME),--runtime $(RUNTIME)) \
          $(if $(NS3_VERSION),--ns3-version $(NS3_VERSION))
IMAGE_OPTIONS := $(if $(IMAGES_WITH),--with $(IMAGES_WITH))
# Nothing that a user's shell tells Python reaches the locked environment, and no module of the
# folder that a command happens to start in.
unexport $(filter PYTHON%,$(.VARIABLES))
export PYTHONHASHSEED := 0
export PYTHONNOUSERSITE := 1
export PYTHONSAFEPATH := 1
RUN := env PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
# A target may follow: --quiet would take it for a setting of its own.
SNAKEMAKE := $(RUN) snakemake --quiet all $(if $(CORES),--cores $(CORES)) \
             --workflow-profile workflow/profiles/$(PROFILE)
# Follows a run that failed: --quiet keeps Snakemake's own word on locks from the user.
LOCKED := { code=$$?; if ls .snakemake/locks/*.lock >/dev/null 2>&1; then echo "error: another run holds \
$(CURDIR), or one was killed there; if none is running: make unlock" >&2; fi; exit $$code; }

.PHONY: help report unlock plan sensitivity engines ladder base-image images render summary release bench bench-report
.PHONY: test-faults load audit test test-report test-ladder test-slurm test-containers scale lint format schemas
.PHONY: lock clean distclean setup setup-dev setup-slurm setup-bench setup-profile

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
	  awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'
	@echo
	@echo "  settings: TIER=quick|paper|deep CORES=n STUDIES=a,b ENGINES=ns3,ns2,linux"
	@echo "  example:  make report TIER=quick STUDIES=saxena,nishitha CORES=2"

report: setup setup-profile compiler ## Run everything that is not up to date and write reports/html/index.html
	@$(SNAKEMAKE) $(CONFIG) || $(LOCKED)
	@echo "report: $(CURDIR)/reports/html/index.html"

unlock: setup ## Let a folder go whose run was killed; what it finished is kept
	@$(SNAKEMAKE) --unlock

plan: setup ## Say what would run, how many scenarios, and the expected cost
	@$(RUN) replicate plan $(SELECT)

sensitivity: setup compiler ## Vary what the papers do not state (some 40 minutes on 2 cores); settings: configs/sensitivity.yaml
	@$(SNAKEMAKE) sensitivity $(CONFIG) || $(LOCKED)
	@echo "sensitivity: $(CURDIR)/data/reproduced/sensitivity; the next \`make report\` shows it"

engines: setup compiler ## Install and build every engine (or those of ENGINES=) and say what was done
	@$(RUN) replicate install-engines $(if $(ENGINES),--engines $(ENGINES))
	@$(SNAKEMAKE) engines --config engines=$(if $(ENGINES),$(ENGINES),$(EVERY_ENGINE)) \
	  $(if $(NS3_VERSION),ns3_version=$(NS3_VERSION)) || $(LOCKED)
	@$(RUN) replicate engines

ladder: setup compiler ## Run tier quick of two studies on every version of ns-3 and compare
	@$(SNAKEMAKE) ladder || $(LOCKED)
	@echo "ladder: $(CURDIR)/data/reproduced/ladder.csv; the next \`make report\` shows it"

base-image: setup ## Make the images' base from Debian's archive, without a registry
	@$(RUN) replicate base-image $(IMAGE_OPTIONS) $(if $(ARCHIVE),--archive $(ARCHIVE))

images: setup ## Build the images of containers/ and check them against their lock
	@$(RUN) replicate images $(IMAGE_OPTIONS) $(if $(BASE),--base $(BASE)) \
	  $(if $(UPDATE_LOCK),--update-lock) $(if $(UNPACK),--unpack $(UNPACK))

render: setup ## Render the report again from existing results; without any, the release (reports/html-release)
	@$(RUN) replicate render

summary: setup ## Print the report's summary to reports/summary.pdf (needs chromium)
	@command -v chromium >/dev/null || \
	  { echo "chromium is missing: apt-get install chromium" >&2; exit 1; }
	@[ -f reports/html/summary.html ] || { echo "There is no report: make report" >&2; exit 1; }
	@chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --log-level=3 \
	  --print-to-pdf=reports/summary.pdf "file://$(CURDIR)/reports/html/summary.html" 2>/dev/null
	@echo "summary: $(CURDIR)/reports/summary.pdf"

release: report ## Render what is finished into reports/release, to be committed
	@$(RUN) replicate release

test-report: setup-dev ## Test reports/html in a browser: what `make report` made last
	@$(RUN) env REPLICATION_REPORT_HTML=reports/html pytest tests/browser

bench-report: setup-dev ## Measure the report: size of its pages, time to the first chart
	@$(RUN) python tests/browser/measure.py reports/html

test: setup-dev setup-slurm engines lint ## Run every test and check
	@$(RUN) tests/run

test-ladder: setup-dev ## Test our program against every version of ns-3
	@$(RUN) env REPLICATION_NS3_VERSIONS=all pytest tests/engines/test_ns3_versions.py

test-slurm: setup-dev setup-slurm compiler ## Run quick saxena through a Slurm of one node, started for it
	@$(RUN) pytest tests/cluster

bench: setup compiler ## Measure speed, memory and overhead (some 8 minutes on 2 idle cores; QUICK=1: under one)
	@$(SNAKEMAKE) engines --config engines=ns3 || $(LOCKED)
	@$(RUN) replicate bench $(if $(QUICK),--quick) $(if $(CORES),--cores $(CORES))
	@echo "bench: $(CURDIR)/data/reproduced/bench.json; the next \`make report\` shows it"

setup-bench: setup compiler ## Install ns-3's Python bindings for `make bench` (compiled: about 6 minutes)
	@$(PYTHON) -m venv .cache/bench
	@.cache/bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  -r workflow/bench/requirements.lock

scale: setup compiler ## Measure sweeps of SCENARIOS=100,1000,10000 short runs
	@$(RUN) replicate scale $(if $(SCENARIOS),--scenarios $(SCENARIOS)) $(if $(CORES),--cores $(CORES))

test-containers: setup-dev engines ## Build the images, and compare containers with native runs
	@$(RUN) pytest tests/containers

# The harness's full numbers; `make test` runs a few of each. Settings: MOMENTS, CASES, RUNS, FAULTS.
MOMENTS ?= 50
CASES ?= 100000
RUNS ?= 2100
FAULTS ?= tests/faults
test-faults: setup-dev ## Kill runs, fill disks, feed bad input, and count how it ends; hours at full numbers
	@$(RUN) replicate install-engines --engines ns3,ns2
	@$(SNAKEMAKE) engines --config engines=ns3,ns2 || $(LOCKED)
	@$(RUN) env REPLICATION_COUNTS=$(CURDIR)/data/reproduced/reliability.json REPLICATION_SANITIZE=1 \
	  REPLICATION_MOMENTS=$(MOMENTS) REPLICATION_CASES=$(CASES) REPLICATION_RUNS=$(RUNS) \
	  $(if $(CORES),REPLICATION_CORES=$(CORES)) pytest $(FAULTS)
	@$(RUN) replicate reliability

load: setup compiler ## Run a scenario of 1000 flows and one of 24 hours, and count what they take
	@$(SNAKEMAKE) engines --config engines=ns3 || $(LOCKED)
	@$(RUN) replicate load

audit: setup-dev ## Ask the registry's advisories about every locked package (needs a registry that has them)
	@$(RUN) pip-audit --strict --no-deps --disable-pip -r requirements-dev.lock

lint: setup-dev ## Check format, style, types and the workflow
	@$(RUN) tests/lint

format: setup-dev ## Format Python, Snakemake and C++ sources
	@$(RUN) ruff format workflow tests
	@$(RUN) ruff check --fix workflow tests
	@$(RUN) snakefmt Snakefile workflow/rules
	@$(RUN) clang-format -i $$(find workflow/engines workflow/bench -name '*.cpp' -o -name '*.hpp')

schemas: setup ## Write the JSON schemas from the typed models
	@$(RUN) replicate schemas

lock: setup-dev ## Pin the newest allowed Python packages by hash
	@$(RUN) pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --extra dev -o requirements-dev.lock pyproject.toml
	@cp requirements-dev.lock requirements.lock
	@$(RUN) pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  -o requirements.lock pyproject.toml
	@$(RUN) pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  -o workflow/profiles/slurm/requirements.lock workflow/profiles/slurm/requirements.in

clean: ## Remove results and reports (the environment stays)
	rm -rf data/reproduced reports/html reports/html-release reports/notebooks .snakemake

distclean: clean ## Remove the environment too
	rm -rf $(VENV)

# The locks are complete, so nothing is resolved; modules are compiled when first imported.
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile
# The environment follows its lock, and belongs to its folder, which the file that says it is ready
# names: one of a copied or moved folder, or one that was cut short, is made anew.
READY := $(VENV)/.runtime-ready
MADE_FOR := $(shell [ -x $(VENV)/bin/python ] && cat $(READY) 2>/dev/null)
ifneq ($(MADE_FOR),$(CURDIR))
.PHONY: $(READY)
endif
setup: $(READY)
setup-dev: $(VENV)/.dev-ready
setup-slurm: $(VENV)/.slurm-ready
setup-profile: $(if $(filter slurm,$(PROFILE)),setup-slurm)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: apt-get install python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv is missing: apt-get install python3-venv" >&2; exit 1; }
	@if [ "$(MADE_FOR)" != "$(CURDIR)" ]; then \
	  if [ -e $(VENV) ]; then echo "setup: $(VENV) was made for another folder, or is not whole" >&2; fi; \
	  echo "setup: making the environment $(VENV)" >&2; \
	  rm -rf $(VENV); $(PYTHON) -m venv $(VENV); \
	fi
	@rm -f $@
	@echo "setup: installing the locked packages" >&2
	@$(PIP) --no-deps --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@echo "$(CURDIR)" > $@

$(VENV)/.dev-ready: requirements-dev.lock $(READY)
	@echo "setup: installing the locked development packages" >&2
	@$(PIP) --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.slurm-ready: workflow/profiles/slurm/requirements.lock $(READY)
	@echo "setup: installing what submits to Slurm" >&2
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.PHONY: compiler
compiler:
	@command -v g++ >/dev/null || \
	  { echo "A C++ compiler is missing: apt-get install g++" >&2; exit 1; }
