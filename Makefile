# The verbs of this project; `make help` lists them. Everything is installed into .venv and built under build/.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help run build test bench tsan asan lint typecheck format wheel clean

help:  ## list the verbs
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

run: build  ## build, install into .venv and run the demo
	$(BIN)/ascendsched demo

build: $(VENV)/.installed  ## build the extension in place (incremental) into the editable install in .venv
	@$(BIN)/python setup.py -q build_ext --inplace

test: build $(VENV)/.tested  ## run everything: Python and C++ tests, lint, types, structure
	@echo "building the C++ tests"
	@$(BIN)/python tests/cpp/build.py --quiet || [ $$? = 77 ]
	$(BIN)/python -m pytest

bench: build $(VENV)/.benched  ## run the benchmarks, peers included
	$(BIN)/python benchmarks/run.py

tsan: $(VENV)/.tested  ## run the concurrency tests under ThreadSanitizer
	@.ci/sanitize thread $(BIN)/python

asan: $(VENV)/.tested  ## run the same tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@.ci/sanitize address $(BIN)/python

lint: $(VENV)/.tested  ## check style: ruff and clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@.ci/cpp_files | xargs -0 $(BIN)/clang-format --dry-run -Werror

typecheck: $(VENV)/.tested  ## check types: mypy --strict on the package
	$(BIN)/mypy

format: $(VENV)/.tested  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@.ci/cpp_files | xargs -0 $(BIN)/clang-format -i

wheel: $(VENV)/.ready  ## build a wheel into dist/
	rm -rf build/lib.*
	$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

clean:  ## remove everything that was built, .venv included
	rm -rf build dist $(VENV) *.egg-info ascendsched/_libs ascendsched/_core*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Build requirements and run-time dependencies.
$(VENV)/.ready: pyproject.toml .ci/requirements.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing build requirements and dependencies into $(VENV)"
	@$(BIN)/python .ci/requirements.py build run > $(VENV)/requirements.txt
	@$(PIP) install --quiet -r $(VENV)/requirements.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.ready setup.py
	@echo "building and installing (editable)"
	@$(BIN)/python setup.py -q build_ext --inplace
	@$(PIP) install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.tested: $(VENV)/.ready .ci/torch
	@.ci/system_packages
	@$(BIN)/python .ci/requirements.py test > $(VENV)/requirements.txt
	@$(PIP) install --quiet -r $(VENV)/requirements.txt
	@.ci/torch $(BIN)/python
	@touch $@

$(VENV)/.benched: $(VENV)/.ready
	@$(BIN)/python .ci/requirements.py bench > $(VENV)/requirements.txt
	@$(PIP) install --quiet -r $(VENV)/requirements.txt
	@touch $@
