# Two commands matter: `make demo` and `make test`. Each sets itself up with pip alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# Which tests run; .ci/run adds those that need Debian's clang and HSA library.
MARKS ?= not gpu and not clang and not hsalib

.PHONY: demo test test-gpu lint prove clean

demo: $(VENV)/.demo
	$(BIN)/redline demo

test: lint
	$(PYTEST) -n 2 --dist worksteal -m '$(MARKS)'
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m nopython
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.cache/boundscheck $(PYTEST) -m nopython

# For a user with an AMD GPU: probes of it, and a record to send us. REDLINE_DEVICE=hsa:0 unless set.
test-gpu: $(VENV)/.test
	$(PYTEST) -m gpu tests/gpu

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Every proof in full; writes its record under docs/records/.
prove: $(VENV)/.test
	$(BIN)/python -m tests.prove

clean:
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[sim]'
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[sim,test,dev]'
	touch $@ $(VENV)/.demo
