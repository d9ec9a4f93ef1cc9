# Set-up and entry points: `make help` lists them.
.DEFAULT_GOAL := help
PYTHON ?= python3
PROFILE ?= default
VENV := .venv
READY := $(VENV)/.runtime-ready
comma := ,
# Folder names must have only characters without a meaning to make, shells and compilers.
ODD := $(shell pwd | LC_ALL=C tr -d 'A-Za-z0-9_/.+@=~\200-\377\n-' | sed 's/\(.\).*/\1/; s/ /a space/; s/\t/a tab/')
$(if $(ODD)$(word 2,$(CURDIR)),$(error folder $(CURDIR): $(or $(ODD),a line end) in its name means something to make or the shell; move the project))
# It would report success after an error.
$(if $(findstring i,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),$(error MAKEFLAGS: -i ignores errors, so nobody would notice a failed run; leave it out))
# In another user's folder root may only install the packages of `make engines`, so that no files of root are left there.
OWNER := $(shell [ "$$(id -u)" -ne 0 ] || stat -c %u . | grep -vx 0)
$(if $(OWNER),$(if $(filter-out $(and $(wildcard $(READY)),engines) help,$(or $(MAKECMDGOALS),help)),$(error folder $(CURDIR): belongs to user $(OWNER), who could not write what root leaves there; run make as that user)))
PROFILES := $(patsubst workflow/profiles/%/config.yaml,%,$(wildcard workflow/profiles/*/config.yaml))
$(if $(filter $(PROFILES),$(PROFILE)),,$(error PROFILE: $(PROFILE) is unknown; there are $(PROFILES)))
$(if $(filter 0,$(CORES)),$(error CORES: must be at least 1, or all))
# configs/environment.yaml lists the caller's variables that are passed on, and the fixed ones.
NAMES := $(subst *,%,$(shell sed -n 's/^  - //p' configs/environment.yaml))
FIXED := $(shell sed -n 's/^  \([A-Z0-9_]*\): /\1=/p' configs/environment.yaml)
GIVEN := $(foreach v,$(filter $(NAMES),$(.VARIABLES)),$(if $(filter environment command,$(firstword $(origin $v))),$v="$$$v"))
CLEAN := -i $(GIVEN) $(FIXED) REPLICATION_HOME="$${REPLICATION_HOME:-$$HOME}" HOME="$(CURDIR)/.cache/home" \
  LOGNAME="$$(id -un 2>/dev/null || id -u)" PYTHONPATH="$(CURDIR)/workflow" PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
RUN := env $(CLEAN)
# Python prints a traceback on Ctrl-C while it starts; ours waits until it can handle it.
START := env --block-signal=INT $(CLEAN) python -m replication.cli
# $(call given,NAME,OPTION): the option with the setting's value as one shell word, or nothing if the setting is empty.
given = $(if $(strip $($(1))),$(2)'$(subst ','\'',$(strip $($(1))))')
# The comma keeps Snakemake from reading a study called 2001 or 1e5 as a number.
SETTINGS = $(call given,TIER,tier=) $(if $(STUDIES),$(call given,STUDIES,studies=)$(comma)) $(call given,ENGINES,engines=) \
  $(call given,RUNTIME,runtime=) $(call given,NS3_VERSION,ns3_version=)
CONFIG = $(if $(strip $(SETTINGS)),--config $(SETTINGS))
# exec: make passes SIGTERM to the process it starts, which must be Snakemake and not a shell.
SNAKEMAKE = exec $(START).start --quiet progress rules reason host --workflow-profile workflow/profiles/$(PROFILE) $(call given,CORES,--cores )
# The locks are complete, so pip resolves nothing. Its settings and cache are in the caller's home.
PIP = $(RUN) HOME="$$([ -w "$$HOME" ] && echo "$$HOME" || echo .cache/home)" python -m pip install --quiet --disable-pip-version-check --no-compile
COMPILE = $(RUN) pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

.PHONY: help setup setup-dev setup-lab setup-slurm report plan explain regions interventions release fetch-results traces engines images lab course test measurements bench lint lock unlock clean
help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 22
	@echo; echo "  settings: TIER=quick|paper|deep STUDIES=a,b ENGINES=ns3,ns2,linux RUNTIME=podman NS3_VERSION=3.39.post2 CORES=n PROFILE=slurm"
	@echo "  examples: make report TIER=quick STUDIES=saxena,nishitha CORES=2; make plan TIER=deep; make engines ENGINES=ns3"
report: setup ## Run everything that is not up to date and write reports/html/index.html
	@$(SNAKEMAKE) $(CONFIG)
	@echo "report: $(CURDIR)/reports/html/index.html"
plan: setup ## Show what would run, the number of scenarios and the expected cost
	@$(START) plan $(call given,TIER,--tier ) $(call given,STUDIES,--studies ) $(call given,ENGINES,--engines ) \
	  $(call given,RUNTIME,--runtime ) $(call given,NS3_VERSION,--ns3-version )
explain: setup ## Vary what the papers do not state, and search for explanations
	@$(SNAKEMAKE) explain $(CONFIG)
	@echo "explanations: $(CURDIR)/data/reproduced/sensitivity; the next \`make report\` shows them"
regions: setup ## Find where the papers' claims hold
	@$(SNAKEMAKE) regions $(CONFIG)
	@echo "regions: $(CURDIR)/data/reproduced/regions.csv; the next \`make report\` shows them"
interventions: setup ## Test the causes that the report states, each switched on and off
	@$(SNAKEMAKE) interventions $(CONFIG)
	@cp data/reproduced/interventions.csv data/interventions.csv
	@echo "interventions: $(CURDIR)/data/interventions.csv; the next \`make report\` shows them"
release: report ## Write finished results to data/release and reports/release, to be committed
	@$(START) release
fetch-results: setup ## Fetch and verify the full series of the released runs
	@$(START) fetch-results
traces: setup ## Fetch and verify the traces that kapadia's authors published
	@$(START) fetch-traces
engines: $(if $(OWNER),,setup) ## Install (as root) and build all engines, or those in ENGINES=
	@$(RUN) PYTHONDONTWRITEBYTECODE=1 python -m replication.cli install-engines $(call given,ENGINES,--engines )
	@$(if $(OWNER),echo "now run \`make engines\` as user $(OWNER)",$(SNAKEMAKE) engines --config \
	  engines=$(or $(call given,ENGINES),ns3$(comma)ns2$(comma)linux) $(call given,NS3_VERSION,ns3_version=))
	@$(if $(OWNER),,$(START) engines $(call given,NS3_VERSION,--ns3-version ))
images: ## Build the simulators' images with RUNTIME=docker or podman (BASE= selects a different base)
	@$(RUN) HOME="$$HOME" $(call given,BASE,BASE=) containers/build $(call given,RUNTIME)
lab: setup-lab ## Open the notebooks in JupyterLab, at notebooks/start_here.ipynb
	@$(SNAKEMAKE) engines --config engines=ns3
	@$(RUN) jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --ServerApp.root_dir=$(CURDIR) \
	  --LabApp.default_url=/lab/tree/notebooks/start_here.ipynb $(LAB_OPTIONS)
course: setup ## Write the notebooks for students, and the lecturer's page, into reports/course
	@$(START) course
test: setup-dev setup-slurm engines ## Run every test and check
	@$(RUN) tests/run
measurements: setup ## Measure the engines: the tables of conformance, differences and BBR's shares in data/
	@$(RUN) python -m measurements.conformance
	@$(RUN) python -m measurements.differences
	@$(RUN) python -m measurements.bbr_shares
bench: setup-dev ## Measure the workflow's overhead against a shell loop over the same simulator
	@$(SNAKEMAKE) engines --config engines=ns3
	@$(RUN) PYTHONSAFEPATH= python -m tests.bench
lint: setup-dev ## Check format, style, types and the workflow
	@$(RUN) tests/lint
lock: setup-dev ## Pin the newest allowed Python packages by hash
	@$(COMPILE) --upgrade --extra dev -o requirements-dev.lock pyproject.toml && cp requirements-dev.lock requirements.lock
	@$(COMPILE) -o requirements.lock pyproject.toml && cp requirements.lock requirements-lab.lock
	@$(COMPILE) --extra lab -o requirements-lab.lock pyproject.toml
	@$(COMPILE) --upgrade -o requirements-slurm.lock workflow/profiles/slurm/requirements.in
unlock: setup ## Unlock the folder after a run was killed; finished runs are kept
	@$(SNAKEMAKE) --unlock
clean: ## Remove results and reports (the environment stays)
	rm -rf data/reproduced reports/html reports/html-release reports/notebooks reports/course .snakemake
setup: $(READY) $(if $(filter slurm,$(PROFILE)),setup-slurm) ## Make the environment .venv from its lock
# The environment belongs to the folder and the locked packages that its file names, whatever their times. The locked pip comes first: Python 3.11's takes longer.
LOCKED := $(shell cat requirements.lock pyproject.toml 2>/dev/null | sha256sum | cut -c 1-16)
MADE_FOR := $(shell [ -x $(VENV)/bin/python ] && cat $(READY) 2>/dev/null)
$(if $(filter-out $(MADE_FOR),$(CURDIR) $(LOCKED)),$(eval .PHONY: $(READY)))
$(READY):
	@$(RUN) $(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v g++ >/dev/null || \
	  { echo "setup: Python 3.11 or newer with venv, or a C++ compiler, is missing: apt-get install python3-venv g++" >&2; exit 1; }
	@[ "$$(uname -m)" = x86_64 ] || \
	  echo "setup: the ns-3 wheel is for x86-64, and this is $$(uname -m): install ns-3 and give its folder, as in make report NS3_PREFIX=/usr" >&2
	@[ "$(firstword $(MADE_FOR))" = "$(CURDIR)" ] || \
	  { echo "setup: making the environment $(VENV)" >&2; rm -rf $(VENV); $(RUN) $(PYTHON) -m venv $(VENV); }
	@rm -f $@; echo "setup: installing the locked packages" >&2
	@sed -n '/^pip==/,/[^\\]$$/p' requirements-dev.lock | $(PIP) --no-deps --require-hashes -r /dev/stdin
	@$(PIP) --no-deps --require-hashes -r requirements.lock && $(PIP) --no-deps --no-build-isolation -e . && echo "$(CURDIR) $(LOCKED)" > $@
setup-dev setup-lab setup-slurm: setup-%: $(READY)
	@cmp -s requirements-$*.lock $(VENV)/.$*-ready || { echo "setup: installing the locked packages of $*" >&2; \
	  $(PIP) --no-deps --require-hashes -r requirements-$*.lock && cp requirements-$*.lock $(VENV)/.$*-ready; }
