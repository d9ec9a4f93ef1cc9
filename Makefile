# Set-up and entry points. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# As root in another user's folder every recipe but `packages` runs as that user, who could neither
# write nor remove what root leaves.
OWNER := $(shell [ "$$(id -u)" -ne 0 ] || stat -c %u . | grep -vx 0)
ifneq ($(OWNER),)
export HOME := $(or $(shell getent passwd $(OWNER) | cut -d: -f6),/tmp)
.SHELLFLAGS := --reuid=$(OWNER) --regid=$(shell stat -c %g .) \
               $(if $(shell getent passwd $(OWNER)),--init-groups,--clear-groups) \
               /bin/bash -eu -o pipefail -c
SHELL := /usr/bin/setpriv
endif

PYTHON ?= python3
VENV := .venv
# CORES= goes over the profile's own number.
EVERY_ENGINE := ns3,ns2,linux
comma := ,
CORES ?=
PROFILE ?= default
# A setting's value as one word of the shell, whatever is in it.
quoted = '$(subst ','\'',$(strip $($(1))))'
# $(call given,NAME,WORDS): the words and the value, if the setting has one.
given = $(if $(strip $($(1))),$(2)$(call quoted,$(1)))
# What TIER=, STUDIES=, ENGINES= and RUNTIME= lay over configs/config.yaml. The comma keeps Snakemake
# from reading a study called 2001 or 1e5 as a number.
SETTINGS := $(strip $(call given,TIER,tier=) $(call given,STUDIES,studies=)$(if $(strip $(STUDIES)),$(comma)) \
            $(call given,ENGINES,engines=) $(call given,RUNTIME,runtime=) \
            $(call given,NS3_VERSION,ns3_version=))
CONFIG := $(if $(SETTINGS),--config $(SETTINGS))
SELECT := $(call given,TIER,--tier ) $(call given,STUDIES,--studies ) $(call given,ENGINES,--engines ) \
          $(call given,RUNTIME,--runtime ) $(call given,NS3_VERSION,--ns3-version )
IMAGE_OPTIONS := $(call given,IMAGES_WITH,--with )
# Nothing that a user's shell tells Python reaches the locked environment, and no module of the
# folder that a command happens to start in; of pip's settings, where packages come from.
FROM_WHERE := INDEX_URL EXTRA_INDEX_URL FIND_LINKS NO_INDEX PROXY CERT CLIENT_CERT TRUSTED_HOST \
              KEYRING_PROVIDER CONFIG_FILE CACHE_DIR TIMEOUT DEFAULT_TIMEOUT RETRIES
unexport $(filter PYTHON%,$(.VARIABLES))
unexport $(filter-out $(FROM_WHERE:%=PIP_%),$(filter PIP_%,$(.VARIABLES)))
export PIP_USER := 0
export PYTHONHASHSEED := 0
export PYTHONNOUSERSITE := 1
export PYTHONSAFEPATH := 1
# Snakemake imports NumPy, whose threads take longer to start than it does (see replication/__init__.py).
export OPENBLAS_NUM_THREADS := 1
RUN := env PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
# Ends with make, and all that it has started with it.
SUPERVISED := $(RUN) python -m replication.plan.supervisor
SNAKEMAKE := $(SUPERVISED) python -m replication.plan.workflow_run $(call given,CORES,--cores ) \
             $(call given,PROFILE,--profile )
BENCH := python -m bench
IMAGES := python containers

.PHONY: help report unlock plan sensitivity maps engines ladder base-image images render summary release bench bench-report
.PHONY: profile test-faults load audit licences test test-report test-ladder test-kernels test-source test-slurm test-containers
.PHONY: test-images scale
.PHONY: lint format schemas lock clean distclean packages lab setup setup-dev setup-lab setup-slurm setup-bench setup-profile

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
	  awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'
	@echo
	@echo "  settings: TIER=quick|paper|deep CORES=n STUDIES=a,b ENGINES=ns3,ns2,linux"
	@echo "  example:  make report TIER=quick STUDIES=saxena,nishitha CORES=2"

report: setup setup-profile compiler ## Run everything that is not up to date and write reports/html/index.html
	@$(SNAKEMAKE) $(CONFIG)
	@echo "report: $(CURDIR)/reports/html/index.html"

unlock: setup ## Let a folder go whose run was killed; what it finished is kept
	@$(SNAKEMAKE) --unlock

plan: setup ## Say what would run, how many scenarios, and the expected cost
	@$(RUN) replicate plan $(SELECT)

sensitivity: setup compiler ## Vary what the papers do not state, and search why numbers differ (some 70 minutes on 2 cores)
	@$(SNAKEMAKE) sensitivity $(CONFIG)
	@echo "sensitivity: $(CURDIR)/data/reproduced/sensitivity; the next \`make report\` shows it"

maps: setup compiler ## Map where the papers' sentences hold (an hour of CPU; TIER=quick: some 5 minutes)
	@$(SNAKEMAKE) maps $(CONFIG)
	@echo "maps: $(CURDIR)/data/reproduced/maps.csv; the next \`make report\` shows them"

engines: packages compiler ## Install and build every engine (or those of ENGINES=) and say what was done
	@$(SNAKEMAKE) engines $(if $(NS3_SOURCE),--forcerun build_ns3_program) \
	  --config engines=$(or $(call given,ENGINES),$(EVERY_ENGINE)) $(call given,NS3_VERSION,ns3_version=)
	@$(RUN) replicate engines

# The one recipe that root runs as root, for apt-get; nothing is compiled for later.
packages: private SHELL := /bin/bash
packages: private .SHELLFLAGS := -eu -o pipefail -c
packages: setup
	@$(RUN) PYTHONDONTWRITEBYTECODE=1 replicate install-engines $(call given,ENGINES,--engines )

ladder: setup compiler ## Run tier quick of two studies on every version of ns-3 and compare
	@$(SNAKEMAKE) ladder
	@echo "ladder: $(CURDIR)/data/reproduced/ladder.csv; the next \`make report\` shows it"

base-image: setup ## Make the images' base from Debian's archive, without a registry
	@$(RUN) $(IMAGES) base $(IMAGE_OPTIONS) $(call given,ARCHIVE,--archive )

images: setup ## Build the images of containers/ and check them against their lock
	@$(RUN) $(IMAGES) build $(IMAGE_OPTIONS) $(call given,BASE,--base ) \
	  $(if $(UPDATE_LOCK),--update-lock) $(call given,UNPACK,--unpack )

lab: setup-lab compiler ## Open the notebooks in JupyterLab, at notebooks/start_here.ipynb
	@$(SNAKEMAKE) engines --config engines=ns3
	@$(RUN) jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --ServerApp.root_dir=$(CURDIR) \
	  --LabApp.default_url=/lab/tree/notebooks/start_here.ipynb $(LAB_OPTIONS)

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

test: setup-dev setup-slurm engines ## Run every test and check
	@$(RUN) tests/run

test-ladder: setup-dev ## Test our program against every version of ns-3
	@$(RUN) env REPLICATION_NS3_VERSIONS=all pytest tests/engines/test_ns3_versions.py

test-kernels: setup-dev engines ## Test hosts with a timer of 1000 Hz, a kernel that takes minutes to build
	@$(RUN) pytest -m kernels tests/engines

test-source: setup-dev compiler ## Build ns-3 from its sources (NS3_SOURCE=) and test that it gives the wheel's bytes
	@$(RUN) pytest -m source tests/engines

profile: setup compiler ## Count how often ns-3 takes each branch (NS3_SOURCE=): what the build from its sources is optimised by
	@$(RUN) $(BENCH) profile

test-slurm: setup-dev setup-slurm compiler ## Run quick saxena through a Slurm of one node, started for it
	@$(RUN) pytest tests/cluster

bench: setup compiler ## Measure speed, memory, growth and overhead (some 20 minutes on 2 idle cores; QUICK=1: under one)
	@$(SNAKEMAKE) engines --config engines=ns3
	@$(SUPERVISED) $(BENCH) run $(if $(QUICK),--quick) $(call given,CORES,--cores )
	@echo "bench: $(CURDIR)/data/reproduced/bench.json; the next \`make report\` shows it"

setup-bench: setup compiler ## Install ns-3's Python bindings for `make bench` (compiled: about 6 minutes)
	@$(PYTHON) -m venv .cache/bench
	@.cache/bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  -r workflow/bench/requirements.lock

scale: setup compiler ## Measure sweeps of SCENARIOS=100,1000,10000,100000 runs on an engine that returns at once
	@$(SUPERVISED) $(BENCH) scale $(call given,SCENARIOS,--scenarios ) $(call given,CORES,--cores )

FRESHLY := $(call given,FRESH,REPLICATION_FRESH=)
test-containers: setup-dev engines ## Build the images (FRESH=ns3: twice) and compare containers with native runs (of STUDIES=)
	@$(RUN) env $(FRESHLY) $(call given,STUDIES,REPLICATION_PARITY=) pytest tests/containers

test-images: setup-dev ## Build the images and test them, with the engines that are there; nothing is run in them
	@$(RUN) env $(FRESHLY) pytest tests/containers/test_images.py

# The harness's full numbers; `make test` runs a few of each. Settings: MOMENTS, CASES, RUNS, ALTERATIONS,
# FAULTS.
MOMENTS ?= 50
CASES ?= 100000
RUNS ?= 2100
ALTERATIONS ?= 2400
FAULTS ?= tests/faults
test-faults: ENGINES := ns3,ns2
test-faults: setup-dev packages ## Kill runs, fill disks, feed bad input, and count how it ends; hours at full numbers
	@$(SNAKEMAKE) engines --config engines=ns3,ns2
	@$(RUN) env REPLICATION_COUNTS=$(CURDIR)/data/reproduced/reliability.json REPLICATION_SANITIZE=1 \
	  REPLICATION_MOMENTS=$(MOMENTS) REPLICATION_CASES=$(CASES) REPLICATION_RUNS=$(RUNS) REPLICATION_ALTERATIONS=$(ALTERATIONS) \
	  $(if $(CORES),REPLICATION_CORES=$(CORES)) pytest $(FAULTS)
	@$(RUN) $(BENCH) reliability

load: setup compiler ## Run a scenario of 1000 flows and one of 24 hours, and count what they take
	@$(SNAKEMAKE) engines --config engines=ns3
	@$(SUPERVISED) $(BENCH) load

audit: setup-dev ## Ask the registry's advisories about every locked package (needs a registry that has them)
	@$(RUN) pip-audit --strict --no-deps --disable-pip -r requirements-dev.lock

licences: setup-dev ## List the licences of the locked packages
	@$(RUN) pip-licenses --with-system --packages $$(sed -n 's/==.*//p' requirements.lock)

lint: setup-dev ## Check format, style, types and the workflow
	@$(RUN) tests/lint

format: setup-dev ## Format Python, Snakemake and C++ sources
	@$(RUN) ruff format workflow containers tests
	@$(RUN) ruff check --fix workflow containers tests
	@$(RUN) snakefmt Snakefile workflow/rules
	@$(RUN) clang-format -i $$(find workflow/engines workflow/bench -name '*.cpp' -o -name '*.hpp')

schemas: setup ## Write the JSON schemas and the guide's tables of keys from the typed models
	@$(RUN) replicate schemas

lock: setup-dev ## Pin the newest allowed Python packages by hash
	@$(RUN) pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --extra dev -o requirements-dev.lock pyproject.toml
	@cp requirements-dev.lock requirements.lock
	@$(RUN) pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  -o requirements.lock pyproject.toml
	@cp requirements.lock requirements-lab.lock
	@$(RUN) pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --extra lab -o requirements-lab.lock pyproject.toml
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
setup-lab: $(VENV)/.lab-ready
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

$(VENV)/.lab-ready: requirements-lab.lock $(READY)
	@echo "setup: installing JupyterLab" >&2
	@$(PIP) --no-deps --require-hashes -r requirements-lab.lock
	@touch $@

$(VENV)/.slurm-ready: workflow/profiles/slurm/requirements.lock $(READY)
	@echo "setup: installing what submits to Slurm" >&2
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.PHONY: compiler
compiler:
	@command -v g++ >/dev/null || \
	  { echo "A C++ compiler is missing: apt-get install g++" >&2; exit 1; }
