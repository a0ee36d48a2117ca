# make demo         set everything up, run the first notebook, print its result, leave an HTML page
# make test         set everything up, check style, types and layers, run every test
# make lab          open JupyterLab on the notebooks
# make bench        the benchmark table of nbcomp and NumPy (make bench-peers adds the other compilers)
# make bench-loops  explicit loops against Numba
# make bench-networks  convolutions, attention and networks against five other frameworks
# make bench-tuning  what the tuner makes of ten kernels in 30 seconds each
# make bench-products  matrix products against NumPy's BLAS, as shares of the multiply-add peak
# make conformance  the slow suites: every float32, long random programs
# make explorer     build the front end in place, for work on it
# make pictures     take the README's screenshots anew, with headless Chromium
# make lock         renew constraints.txt
#
# PYTHON=… chooses the interpreter (>= 3.11), VENV=… the environment, JOBS=… how many tests run at once.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
  if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$p; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
PEERS ?= benchmarks/.venv-peers
JOBS ?= $(shell $(PYTHON) -c 'import os; print(min(4, os.cpu_count() or 1))')
PIP_FLAGS := --quiet --disable-pip-version-check
ROWS ?=

FRONT_END := $(wildcard extension/src/*.ts extension/scripts/*.mjs extension/package.json extension/yarn.lock) extension/hatch_build.py

# A file's tests, and a notebook's cells, run in one process, in order; files in the order they are named in, long ones first.
AT_ONCE = -n $(JOBS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test lab explorer bench bench-peers bench-all bench-loops bench-networks bench-products bench-tuning conformance pictures lock clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' $(firstword $(MAKEFILE_LIST))

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "nbcomp needs Python 3.11 or newer; none was found. Try: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# One stamp per set of extras; a change of the requirements or of the front end installs again.
$(VENV)/.installed-lab: $(BIN)/python pyproject.toml constraints.txt $(FRONT_END)
	@echo "installing nbcomp and JupyterLab into $(VENV) ..."
	@$(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt -e '.[lab]'
	@touch $@

# What is tested must be whole: here a front end that cannot be built is an error.
$(VENV)/.installed-test: $(BIN)/python pyproject.toml constraints.txt $(FRONT_END)
	@echo "installing nbcomp, JupyterLab and the test tools into $(VENV) ..."
	@NBCOMP_LABEXTENSION=$${NBCOMP_LABEXTENSION:-require} \
	  $(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt -e '.[lab,test,dev]'
	@touch $@ $(VENV)/.installed-lab

demo: $(VENV)/.installed-lab
	$(BIN)/python notebooks/demo.py notebooks/01_first_compile.ipynb build/01_first_compile.html

test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -m "not slow" $(AT_ONCE) --nbval-lax --nbval-sanitize-with tests/nbval.cfg notebooks tests

conformance: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m slow tests

explorer: $(VENV)/.installed-test
	$(BIN)/python extension/hatch_build.py

lab: $(VENV)/.installed-lab
	$(BIN)/jupyter lab notebooks/01_first_compile.ipynb

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.run --peers numpy,nbcomp $(if $(ROWS),--rows $(ROWS))

$(PEERS)/.installed: benchmarks/peers.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install $(PIP_FLAGS) -r benchmarks/peers.txt
	@touch $@

bench-peers: $(PEERS)/.installed

bench-all: $(VENV)/.installed-test $(PEERS)/.installed
	$(BIN)/python -m benchmarks.run --peers-venv $(PEERS) $(if $(ROWS),--rows $(ROWS))

bench-loops: $(VENV)/.installed-test $(PEERS)/.installed
	$(BIN)/python -m benchmarks.loops --peers-venv $(PEERS) $(if $(ROWS),--rows $(ROWS))

bench-networks: $(VENV)/.installed-test $(PEERS)/.installed
	$(BIN)/python -m benchmarks.networks --peers torch,inductor,onnx,openvino,jax --peers-venv $(PEERS) $(if $(ROWS),--rows $(ROWS))

bench-tuning: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.tuning

bench-products: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.products $(if $(ROWS),--rows $(ROWS))

pictures: $(VENV)/.installed-lab
	$(BIN)/python notebooks/pictures.py docs/pictures

# Every package of the test and lab environments at the version they were last tested with.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install $(PIP_FLAGS) '.[lab,test,dev]'
	{ echo "# The exact versions nbcomp is tested with. Renew with: make lock"; \
	  build/lock/bin/python -m pip freeze --exclude nbcomp; } > constraints.txt
	rm -rf build/lock

clean:
	rm -rf nbcomp/labextension nbcomp/display/explorer.js extension/lib extension/node_modules
	rm -rf $(VENV) $(PEERS) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
