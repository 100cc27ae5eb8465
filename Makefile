# Needs Python 3.11 or newer, pip and make. Every target makes the virtual environment that it needs, with the
# exact versions of constraints.txt, and makes it again when pyproject.toml or constraints.txt changed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Whatever the caller says, byte code is kept: each of many processes would compile the sources again.
export PYTHONDONTWRITEBYTECODE :=

# Only what is imported is compiled to byte code, when it is.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check \
	--constraint constraints.txt

# Packages of which the demo and the benchmarks read the models alone, so without what they need to run them.
MODELS := magika rapidocr-onnxruntime silero-vad
BENCH_MODELS := nudenet

.PHONY: demo test quick test-devices fuzz lint format docs dist bench bench-models lock clean

demo: $(VENV)/ready-models
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/onnx_models.py
	$(BIN)/python examples/digits.py

# Each process begins with its own part of the tests, in their order, and takes over those of another at the end.
# The examples of a page follow from each other, so a page stays with one process.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist worksteal

# The files test_gpu have no tests that run without a GPU, and take seconds of each process to list.
test: $(VENV)/ready
	$(PYTEST) -m "not devices" --ignore-glob='*/test_gpu*.py' tests
	$(PYTEST) --dist loadfile docs

# Kernels for GPUs, compiled and emulated on the processor, and run where a GPU is.
# Without a GPU only these files have tests that run: others take 17 seconds of each process to list.
DEVICE_TESTS := $(if $(shell command -v nvidia-smi),tests,tests/cuda tests/targets/test_cpu_aarch64.py)
test-devices: $(VENV)/ready-devices
	$(PYTEST) -m devices $(DEVICE_TESTS)

# Style and types of the files that differ from the base, and the tests that matter most: up to a minute.
BASE ?= $(shell git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
CHANGED = $(shell git diff --name-only --diff-filter=d $(BASE) -- '*.py'; git ls-files --others --exclude-standard -- '*.py')

quick: $(VENV)/ready
	$(if $(CHANGED),$(BIN)/ruff check $(CHANGED))
	$(if $(CHANGED),$(BIN)/ruff format --check $(CHANGED))
	$(if $(CHANGED),$(BIN)/python -m tools.generate && $(BIN)/mypy $(CHANGED))
	$(PYTEST) @tests/quick.txt

# Random cases on all processors, other ones every time; each failure is printed with the line that shows it again.
MINUTES ?= 1
fuzz: $(VENV)/ready
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

lint: $(VENV)/ready
	$(BIN)/python -m tools.generate
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers auto
	$(BIN)/python -m tools.language

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# build/docs/html; every warning and every dead link is an error.
docs: $(VENV)/ready
	$(BIN)/python -m tools.docs

# `dist`: the source distribution, and the wheel built of it. Then the demo, from the wheel alone, in an environment of
# its own outside the sources.
RELEASE := $(CURDIR)/build/dist
IN_RELEASE := cd $(RELEASE) && env -u PYTHONPATH PATH=$(RELEASE)/venv/bin:$(PATH)
dist: $(VENV)/ready
	rm -rf dist $(RELEASE)
	$(BIN)/python -m hatchling build --target sdist --directory dist
	mkdir -p $(RELEASE)/source
	tar --extract --file dist/*.tar.gz --directory $(RELEASE)/source --strip-components 1
	hatchling=$$(realpath --no-symlinks $(BIN))/python && cd $(RELEASE)/source && \
		$$hatchling -m hatchling build --target wheel --directory $(CURDIR)/dist
	$(PYTHON) -m venv $(RELEASE)/venv
	$(RELEASE)/venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
		--constraint constraints.txt "$$(ls dist/*.whl)[demo]"
	cp -r examples $(RELEASE)
	$(IN_RELEASE) python -c "import opendml; print(opendml.__version__, opendml.__file__)" | grep $(RELEASE)/venv
	$(IN_RELEASE) opendml --version
	$(IN_RELEASE) python examples/demo.py

# `make bench ARGUMENTS="--case celu --rounds 5"`; `make bench ARGUMENTS=--help` lists them.
bench: $(VENV)/ready-bench
	$(BIN)/python -m benchmarks $(ARGUMENTS)

# Whole models, in build/models/results.md; `make bench-models ARGUMENTS="--quick --types float32,int8"`.
bench-models: $(VENV)/ready-bench
	$(BIN)/python -m benchmarks.models --output build/models/results.md $(ARGUMENTS)

# constraints.txt: the newest versions that pyproject.toml and PINS allow, as in `make lock PINS="torch==2.13.0"`.
PINS ?=
lock:
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --editable '.[bench,cuda,demo,dev]' $(PINS)
	build/lock/bin/python -m pip install --quiet --no-deps $(MODELS) $(BENCH_MODELS)
	{ echo '# Exact versions that `make` and CI install. Written by `make lock PINS="$(PINS)"`.'; \
	  build/lock/bin/python -m pip freeze --exclude-editable | sed 's/ @ .*//; s/+cpu$$//'; } > constraints.txt

clean:
	rm -rf $(VENV) build dist

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[demo,dev]'
	touch $@

$(VENV)/ready-devices: $(VENV)/ready
	$(INSTALL) --editable '.[cuda]'
	touch $@

$(VENV)/ready-models: $(VENV)/ready
	$(INSTALL) --no-deps $(MODELS)
	touch $@

$(VENV)/ready-bench: $(VENV)/ready-models
	$(INSTALL) --editable '.[bench]'
	$(INSTALL) --no-deps $(BENCH_MODELS)
	touch $@
