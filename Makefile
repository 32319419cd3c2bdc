# `make run` and `make test` do all the set-up that a fresh Debian machine needs; installed programs stay as they are.

PYTHON ?= python3
VENV := .venv
IN_VENV := $(VENV)/bin
PIP_INSTALL := $(IN_VENV)/python -m pip install --quiet --disable-pip-version-check
NODE_DIR := tests/clients/node
# make run PORT=3302; make run APP=MODULE:APP, or APP=FILE.lua
PORT ?= 3301
APP ?= queue_lua_compat.tutorial:app
PYTEST_ARGS ?=
# Number of test processes: `auto` is one per processor; 0 runs all tests in pytest's own process.
WORKERS ?= auto
IN_PARALLEL := --numprocesses $(WORKERS) --maxprocesses 8 --dist loadfile
BENCH_ARGS ?=

# Benchmarks of servers have a virtual environment of their own, of /usr/bin/python3 if that was built with
# profile-guided optimization (PGO), else of $(PYTHON).
BENCH_VENV ?= build/bench-venv
BENCH_PYTHON ?= $(shell /usr/bin/python3 bench/lib/python_build.py 2>/dev/null && echo /usr/bin/python3 || echo $(PYTHON))

# make crash LIVES=10000 SEED=1, or KILLS=10000, or SECONDS=600: short lives in forked servers;
# LONG=1 for long ones in new processes, as always with SUBJECT=tarantool
LIVES ?=
KILLS ?=
LONG ?=
SECONDS ?= 60
SEED ?=
SUBJECT ?= iproto-server

# make worker-kills TASKS=100000 SEED=1
TASKS ?= 100000

# make fuzz TARGET=updates SECONDS=600 SEED=1 CORPUS=some/directory JOBS=2; all targets without TARGET.
# SECONDS is the time in all; JOBS targets run at once.
JOBS ?= 1
TARGET ?=
CORPUS ?=

# make queue-streams KIND=legacy SECONDS=1800 SEED=1; all kinds of queues without KIND
KIND ?=

# make diff GROUP=select REQUESTS=20000 SEED=1; SECONDS=1800 repeats it with new seeds for that time
GROUP ?=
REQUESTS ?= 20000

# make check-asan TESTS=tests/storage; the tests that need no program that sanitizers would disturb
TESTS ?= tests/codec tests/protocol tests/native tests/box tests/storage tests/server tests/queue_lua_compat \
	tests/tools tests/spark/source
SANITIZED := build/sanitized

# make check-engine OPERATIONS=1000000 SEED=1; the time is the seed without SEED
OPERATIONS ?= 300000
CORE_SOURCES := $(wildcard iproto_server/engine/core/*/*.c)
CHECKED := -std=c11 -O1 -g -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=all -DIPROTO_ENGINE_DEBUG

# An editable install compiles C code and writes the commands, so a change of these requires a new install.
PACKAGING := pyproject.toml setup.py $(wildcard iproto_server/native/*.h iproto_server/native/*/*.[ch] iproto_server/engine/core/*.h iproto_server/engine/core/*/*.[ch] spark/native/*.[ch]) iproto_server/compiled_sources.py $(wildcard iproto_server/__init__.py queue_lua_compat/__init__.py spark/__init__.py bench/__init__.py)
TYPED := $(wildcard iproto_server queue_lua_compat pyspark_tarantool bench examples tests)

# program:Debian package, for programs that the tests run
TEST_PROGRAMS := tarantool:tarantool tarantoolctl:tarantool java:default-jre-headless \
	node:nodejs npm:npm carbon-cache:graphite-carbon \
	promtool:prometheus prometheus:prometheus chromium:chromium chromedriver:chromium-driver \
	MR/Tarantool/Box.pm:libmr-tarantool-perl beanstalkd:beanstalkd redis-server:redis-server \
	systemd-analyze:systemd

.PHONY: help run check check-engine check-asan test check-durations crash worker-kills docs fuzz fuzz-asan queue-streams diff lint bench bench-pieces bench-baselines bench-persistence bench-misbehaviour bench-faults bench-metrics bench-policies bench-queues bench-slices bench-pipeline bench-server-read format test-programs node-packages clean

run: $(VENV)/.installed $(if $(filter %.lua,$(APP)),$(VENV)/.installed-lua) ## serve the tutorial's queue on 127.0.0.1:3301 with its data in ./data: PORT=3301; or APP=FILE.lua
	$(IN_VENV)/iproto-server serve $(APP) --listen 127.0.0.1:$(PORT) --work-dir ./data

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.* ## /\1 /p' $(firstword $(MAKEFILE_LIST)) | while read -r name text; do printf '%-20s %s\n' "$$name" "$$text"; done

check: lint ## run lint and the tests that need no other process, with a tenth of the examples
	$(IN_VENV)/python -m pytest $(IN_PARALLEL) --ignore tests/differential --ignore tests/interchange \
		-m "unit and (hypothesis or not slow)" --hypothesis-profile check -r fE $(PYTEST_ARGS)

test: $(VENV)/.installed-for-tests test-programs node-packages ## run all tests; PYTEST_ARGS="-k NAME" selects some
	$(IN_VENV)/python -m pytest $(IN_PARALLEL) --check-durations=print $(PYTEST_ARGS)

check-durations: $(VENV)/.installed-for-tests test-programs node-packages ## run all tests; fail if a marker `slow` is wrong
	$(IN_VENV)/python -m pytest $(IN_PARALLEL) --check-durations=fail $(PYTEST_ARGS)

crash: $(VENV)/.installed-for-tests ## kill servers under load and verify their data: LIVES=10000 SEED=1, or SECONDS=600; SUBJECT=lua, SUBJECT=tarantool
	$(IN_VENV)/python -m tests.crash $(if $(LIVES),--lives $(LIVES)) $(if $(KILLS),--kills $(KILLS)) \
		$(if $(LIVES)$(KILLS),,--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) --subject $(SUBJECT) $(if $(LONG),--long)

worker-kills: $(VENV)/.installed-for-tests ## kill workers and their server while tasks are handled: TASKS=100000 SEED=1; SUBJECT=tarantool
	$(IN_VENV)/python -m tests.client.kills --tasks $(TASKS) $(if $(SEED),--seed $(SEED)) --subject $(SUBJECT)

fuzz: $(VENV)/.installed-for-tests ## feed random bytes to decoders: TARGET=updates SECONDS=600 SEED=1 CORPUS=DIR JOBS=2
	$(IN_VENV)/python -m tests.fuzz $(TARGET) --jobs $(JOBS) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(CORPUS),--corpus $(CORPUS))

fuzz-asan: $(VENV)/.installed-for-tests ## fuzz, then feed mutations of the corpus to modules built with sanitizers
	$(IN_VENV)/python -m tests.fuzz $(TARGET) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) --corpus $(abspath $(or $(CORPUS),build/corpus))
	tools/build-with-sanitizers $(IN_VENV)/python $(SANITIZED)
	tools/test-with-sanitizers $(IN_VENV)/python $(SANITIZED) -m tests.fuzz $(TARGET) --unguided \
		--seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) --corpus $(abspath $(or $(CORPUS),build/corpus))

queue-streams: $(VENV)/.installed-for-tests ## random histories of queues with streams: KIND=legacy SECONDS=1800 SEED=1
	$(IN_VENV)/python -m tests.queue_lua_compat.streams $(KIND) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

diff: $(VENV)/.installed-for-tests test-programs ## random requests to this server and a real Tarantool: GROUP=select REQUESTS=20000 SEED=1
	$(IN_VENV)/python -m tests.differential.random $(if $(GROUP),--group $(GROUP)) --requests $(REQUESTS) $(if $(SEED),--seed $(SEED)) $(if $(filter command line,$(origin SECONDS)),--seconds $(SECONDS))

check-engine: ## test the engine's core in C under sanitizers: OPERATIONS=300000 SEED=1
	@rm -rf build/engine/checked && mkdir -p build/engine/checked
	@for source in $(CORE_SOURCES); do \
		$(CC) $(CHECKED) -c $$source -o build/engine/checked/$$(echo $$source | tr / -).o || exit 1; done
	@for test in $(basename $(notdir $(wildcard tests/engine/test_*.c))); do \
		$(CC) $(CHECKED) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -Iiproto_server/engine/core \
			-o build/engine/$$test tests/engine/$$test.c build/engine/checked/*.o || exit 1; \
		operations=$(OPERATIONS); \
		case $$test in test_checksums) operations=$$((operations / 300));; esac; \
		build/engine/$$test $$operations $(or $(SEED),$$(date +%s)) || exit 1; done

check-asan: $(VENV)/.installed-for-tests ## run tests with compiled modules built with sanitizers: TESTS=tests/storage WORKERS=2
	tools/build-with-sanitizers $(IN_VENV)/python $(SANITIZED)
	tools/test-with-sanitizers $(IN_VENV)/python $(SANITIZED) -m pytest $(IN_PARALLEL) -p no:cacheprovider \
		-m "not (real_tarantool or node or perl or carbon or prometheus or browser or spark or alone)" $(TESTS) $(PYTEST_ARGS)

lint: $(VENV)/.installed-for-tests ## check style, formatting, import rules, sizes of files and folders, and types
	$(IN_VENV)/ruff check .
	$(IN_VENV)/ruff format --check .
	$(IN_VENV)/lint-imports
	$(IN_VENV)/python tools/check_sizes.py
	$(IN_VENV)/mypy $(TYPED)

docs: $(VENV)/.installed-for-tests ## build the documents as a site into build/site; links and anchors are checked
	NO_MKDOCS_2_WARNING=1 $(IN_VENV)/mkdocs build --strict

bench: $(BENCH_VENV)/.installed ## compare with Tarantool, beanstalkd and Redis: BENCH_ARGS=--quick
	$(BENCH_VENV)/bin/python -m bench $(BENCH_ARGS)

bench-pieces: $(VENV)/.installed-for-tests ## micro-benchmarks against their baselines: PYTEST_ARGS="-k update"
	$(IN_VENV)/python -m bench.micro $(BENCH_ARGS) $(if $(PYTEST_ARGS),-- $(PYTEST_ARGS))

bench-baselines: $(VENV)/.installed-for-tests ## store new baselines of the micro-benchmarks
	$(IN_VENV)/python -m bench.micro --store $(BENCH_ARGS)

bench-persistence: $(BENCH_VENV)/.installed ## recovery, snapshots and each wal_mode, beside Tarantool
	$(BENCH_VENV)/bin/python -m bench.scenarios.storage.persistence $(BENCH_ARGS)

bench-misbehaviour: $(BENCH_VENV)/.installed ## latency of well-behaved clients beside hostile ones
	$(BENCH_VENV)/bin/python -m bench.scenarios.server.hostile_load $(BENCH_ARGS)

bench-faults: $(BENCH_VENV)/.installed ## log and latency of a server with a full disk, full memory, a raising callback, hostile clients
	$(BENCH_VENV)/bin/python -m bench.scenarios.server.faults $(BENCH_ARGS)

bench-metrics: $(BENCH_VENV)/.installed ## cost of metrics that are read each second
	$(BENCH_VENV)/bin/python -m bench.scenarios.server.metrics $(BENCH_ARGS)

bench-policies: $(BENCH_VENV)/.installed ## cost of limits of attempts, retries, times to run and unique keys
	$(BENCH_VENV)/bin/python -m bench.scenarios.queues.policies $(BENCH_ARGS)

bench-queues: $(BENCH_VENV)/.installed ## busy sub-queues and bulk calls of the queues
	$(BENCH_VENV)/bin/python -m bench.scenarios.queues.tubes $(BENCH_ARGS)

bench-slices: $(VENV)/.installed-for-tests ## longest turn of the event loop for every call on a million tasks
	$(IN_VENV)/python -m bench.scenarios.server.slices $(BENCH_ARGS)

bench-pipeline: $(VENV)/.installed-for-tests ## Spark reading snapshots and logs
	$(IN_VENV)/python -m bench.scenarios.spark.spark_read $(BENCH_ARGS)

bench-server-read: $(VENV)/.installed-for-tests ## Spark and others reading a running server
	$(IN_VENV)/python -m bench.scenarios.spark.spark_server_read $(BENCH_ARGS)

format: $(VENV)/.installed-for-tests ## format the code and fix what can be fixed
	$(IN_VENV)/ruff check --fix .
	$(IN_VENV)/ruff format .

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || tools/install-debian-packages python3-venv
	@echo "Creating the virtual environment $(VENV): about 5 seconds"
	@$(PYTHON) -m venv $(VENV)
	@tools/install-missing-compiler $(IN_VENV)/python

$(VENV)/.installed: $(PACKAGING) | $(VENV)/bin/python
	@echo "Installing the libraries of the server: about 10 seconds, and the time to download them"
	@$(IN_VENV)/python tools/list-requirements | $(PIP_INSTALL) --no-compile --requirement /dev/stdin
	@echo "Compiling the server: about 20 seconds of processor time, shared by the processors"
	@$(PIP_INSTALL) --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.installed-for-tests: $(PACKAGING) | $(VENV)/bin/python
	@echo "Installing the libraries of the tests and compiling the server: about a minute, and the time to download them"
	@$(PIP_INSTALL) --editable '.[test,bench]'
	@touch $@ $(VENV)/.installed

$(BENCH_VENV)/bin/python:
	@$(BENCH_PYTHON) -c 'import ensurepip' 2>/dev/null || tools/install-debian-packages python3-venv
	@mkdir -p $(dir $(BENCH_VENV))
	$(BENCH_PYTHON) -m venv $(BENCH_VENV)
	@tools/install-missing-compiler $(BENCH_VENV)/bin/python

$(VENV)/.installed-lua: pyproject.toml | $(VENV)/.installed
	@$(IN_VENV)/python tools/list-requirements lua | $(PIP_INSTALL) --no-compile --requirement /dev/stdin
	@touch $@

$(BENCH_VENV)/.installed: $(PACKAGING) | $(BENCH_VENV)/bin/python
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

test-programs:
	@tools/install-missing-programs $(TEST_PROGRAMS)

node-packages: test-programs
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory --silent $(NODE_DIR)/node_modules/.package-lock.json; fi

$(NODE_DIR)/node_modules/.package-lock.json: $(NODE_DIR)/package.json $(NODE_DIR)/package-lock.json
	cd $(NODE_DIR) && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

clean: ## remove the virtual environment, caches and build results
	rm -rf $(VENV) $(NODE_DIR)/node_modules build dist *.egg-info packaging/client/build packaging/client/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
