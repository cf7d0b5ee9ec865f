# make audit   audit all-MiniLM-L6-v2 on packaged weights: from nothing to a signed report
# make table   audit four systems side by side: two encoders, a cross-encoder, word-counting baselines
# make test    every test
# make check   ruff, mypy, import rules, then every test (what CI runs)
# make perf    what the audit costs beside bare encoding
# make attacks what each tampering looks like to us, to pdfsig and to openssl: writes docs/attacks.md
#
# Variables: PYTHON (3.11 or newer), MODEL, WITHOUT_PDF=1 (no Pango needed),
# TORCH_INDEX (a package index with CPU-only torch builds; without it pip takes torch from its usual place).

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
MODEL ?= minilm
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PINS := -c requirements/constraints.txt
TORCH := $(shell grep '^torch==' requirements/constraints.txt)
INPUTS := pyproject.toml requirements/constraints.txt requirements/weights.txt

export PYTHON WITHOUT_PDF

.PHONY: audit table test check perf attacks clean

audit: $(VENV)/.audit
	@$(BIN)/clinsafe report key --if-missing --generate-passphrase
	@$(BIN)/clinsafe audit --model $(MODEL); code=$$?; [ $$code -le 1 ] || exit $$code

table: $(VENV)/.more
	@$(BIN)/clinsafe report key --if-missing --generate-passphrase
	@$(BIN)/clinsafe audit -m minilm -m bge-small-int8 -m ms-marco-l12-int8; code=$$?; [ $$code -le 1 ] || exit $$code

test: $(VENV)/.dev
	@if [ -z "$$CLINSAFE_DATA" ]; then echo "CLINSAFE_DATA is not set: tests that need the data files will be skipped"; fi
	$(BIN)/python -m pytest -m "not alone" $(PYTEST_FLAGS)
	$(BIN)/python -m pytest -m alone -n 0 tests/scale

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check clinsafe tests
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory test

perf: $(VENV)/.dev
	$(BIN)/python tests/perf/walking_path.py

# A venv that belongs to this folder; a moved or copied one is made anew.
$(VENV)/.venv: scripts/system-packages
	@[ -n "$(PYTHON)" ] || { echo "clinsafe needs Python 3.11 or newer; none was found. Debian: apt-get install python3" >&2; exit 1; }
	@scripts/system-packages audit
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@touch $@

# torch by name first: with nothing installed, another package's range would take a build of several gigabytes.
$(VENV)/.audit: $(VENV)/.venv $(INPUTS)
	@echo "installing what an audit needs (some minutes the first time)"
	$(PIP) install $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(PINS) $(TORCH)
	$(PIP) install $(PINS) -e '.[audit]'
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/weights.txt
	@touch $@

$(VENV)/.more: $(VENV)/.audit requirements/weights-more.txt
	$(PIP) install --no-deps --require-hashes -r requirements/weights-more.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.more requirements/pipeline.txt
	@scripts/system-packages test
	$(PIP) install --quiet $(PINS) -e '.[all,ray,pkcs11,dev]'
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/pipeline.txt
	@touch $@

attacks: $(VENV)/.dev
	$(BIN)/python -m tests.attacks.table > docs/attacks.new && mv docs/attacks.new docs/attacks.md

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
