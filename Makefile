# `make demo` and `make test` need nothing but Python 3.11+ and a package index: each sets up .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTHONS := src reproduction tests benchmarks tools examples .ci docs/conf.py docs/_ext docs/figures
# One BLAS thread: the matrices are small, and nested threads ruin two cores.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo reproduce test lint format bench bench-accuracy bench-asking bench-audit bench-ablation bench-boosting bench-chosen bench-penalties bench-questions bench-real bench-related bench-classes bench-coverage bench-draws golden bench-graph bench-honest bench-how-many bench-hubs kill-server mutants bench-networks repeat bench-rivals bench-scale bench-slips core-times dist docs test-oldest clean

demo: $(VENV)/.demo
	$(BIN)/sdulearn demo
	@echo "The command sdulearn is in $(BIN). To use it in this terminal: source $(BIN)/activate"

# A stopped run goes on where it was. In small: make reproduce OPTIONS=--quick
reproduce: $(VENV)/.demo
	$(BIN)/python -m reproduction $(OPTIONS)

# Two processes, a file of tests in one of them: its fixtures are made once.
test: lint
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check $(PYTHONS)
	$(BIN)/ruff format --check $(PYTHONS)
	$(BIN)/biome check
	$(BIN)/mypy
	$(BIN)/python docs/_ext/check_docstrings.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix $(PYTHONS)
	$(BIN)/ruff format $(PYTHONS)
	$(BIN)/biome check --write

# SDULEARN_DATA names a folder with the ten benchmark sets (NAME.svm.bz2).
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/solvers.py

bench-accuracy: $(VENV)/.bench
	$(BIN)/python benchmarks/accuracy.py

# Tools that measure the code and its tests, not the method: tools/README.md. Numbers that a redesign must not change:
golden: $(VENV)/.bench
	$(BIN)/python tools/golden.py tools/golden.json --check

# The default estimator on random draws, with and without wrong answers. `compare` and `show` compare two trees.
bench-draws: $(VENV)/.bench
	$(BIN)/python benchmarks/random_draws.py measure /tmp/random_draws.jsonl

bench-slips: $(VENV)/.dev
	$(BIN)/python benchmarks/slips.py measure /tmp/slips.jsonl
	$(BIN)/python benchmarks/slips.py show /tmp/slips.jsonl

core-times: $(VENV)/.bench
	$(BIN)/python tools/core.py

# Pairs chosen by features, 40 of each kind, and 1,000 of each clean design.
bench-chosen: $(VENV)/.dev
	$(BIN)/python benchmarks/chosen_pairs.py

# Several rows of one person, with and without `groups`: 40 draws of nine cells.
bench-related: $(VENV)/.dev
	$(BIN)/python benchmarks/related_rows.py

bench-classes: $(VENV)/.bench
	$(BIN)/python benchmarks/classes.py

# Random mutants, one at a time in a copy of the tree: does a test of their package notice? About an hour.
mutants: $(VENV)/.dev $(VENV)/.mutants
	$(BIN)/python tools/mutants.py

# Twenty and five runs of the tests beside two busy loops: two hours.
repeat: $(VENV)/.dev
	$(BIN)/python tools/repeat.py tests/test_large.py --runs 20
	$(BIN)/python tools/repeat.py tests reproduction src --runs 5

bench-graph: $(VENV)/.bench
	$(BIN)/python benchmarks/graph_accuracy.py
	$(BIN)/python benchmarks/graph_accuracy.py --time

bench-audit: $(VENV)/.dev
	$(BIN)/python benchmarks/audit.py

# Hours; after every cell the table is written, and --cells takes some of them.
bench-coverage: $(VENV)/.dev
	$(BIN)/python benchmarks/coverage.py

# SDULEARN_DATA names a folder with real/birds_*.
bench-real: $(VENV)/.dev
	$(BIN)/python benchmarks/real.py
	$(BIN)/python benchmarks/groups.py
	$(BIN)/python benchmarks/number_of_classes.py

bench-hubs: $(VENV)/.dev
	$(BIN)/python benchmarks/hubs.py --write

# Ten minutes.
bench-how-many: $(VENV)/.bench
	$(BIN)/python benchmarks/how_many.py

bench-honest: $(VENV)/.dev
	$(BIN)/python benchmarks/honest.py

# The server of `sdulearn ask`, killed 200 times under load. About ten minutes.
kill-server: $(VENV)/.dev
	$(BIN)/python tools/kill_server.py

# Half an hour on a GPU; in small, on a CPU: make bench-networks OPTIONS="--sets digits small". What benchmarks/networks.jsonl holds is not measured again.
bench-networks: $(VENV)/.bench
	$(BIN)/python -m pip install -q -e '.[torch,demo,images]'
	$(BIN)/python benchmarks/networks.py $(OPTIONS)

bench-boosting: $(VENV)/.bench
	$(BIN)/python benchmarks/boosting.py --results /tmp/bench-boosting.jsonl
	$(BIN)/python benchmarks/boosting.py --scale

# Three hours; what benchmarks/asking.jsonl holds already is not measured again.
bench-asking: $(VENV)/.bench
	$(BIN)/python benchmarks/asking.py two wrong match match-wrong speed --draws 5 --jobs 2
	$(BIN)/python benchmarks/asking.py interval --draws 40 --seed 7000 --jobs 2

# Texts need `pip install 'sdulearn[embeddings]'` and the model, or its folder: TEXT_MODEL=folder. Then: are the probabilities of rows that
# were asked about true? SDULEARN_DATA names a folder with clinc150 and the benchmark sets.
TEXT_MODEL ?= all-MiniLM-L6-v2
bench-questions: $(VENV)/.bench
	for part in domains intents speed; do $(BIN)/python benchmarks/texts.py $$part --model $(TEXT_MODEL) || exit; done
	$(BIN)/python benchmarks/asked_rows.py /tmp/asked_rows.jsonl --draws 10 --jobs 2

# Clusterings that ask, from PyPI, in an environment of their own.
bench-rivals: $(VENV)/.bench .venv-rivals/.done
	$(BIN)/python benchmarks/asking.py --rivals .venv-rivals/bin/python --draws 1 --seed 30000

.venv-rivals/.done:
	$(PYTHON) -m venv .venv-rivals
	.venv-rivals/bin/python -m pip install -q cobras-ts==0.1.3 active-semi-supervised-clustering==0.0.1
	touch $@

bench-ablation: $(VENV)/.bench
	$(BIN)/python benchmarks/ablation.py

bench-penalties: $(VENV)/.bench
	$(BIN)/python benchmarks/penalties.py

# Fits and predictions of a table of 2,000,000 rows; about a minute.
bench-scale: $(VENV)/.bench
	$(BIN)/python benchmarks/scale.py


# Pages and gallery, then every example in them; warnings, dead links and pictures without an alt text are errors.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -d docs/_build/doctrees -b html docs docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q -d docs/_build/doctrees -b doctest docs docs/_build/doctest
	$(BIN)/python docs/_ext/check_site.py docs/_build/html
	@echo "Open docs/_build/html/index.html"

# sdist, a wheel out of it, and what the README promises from that wheel in an empty environment.
dist:
	rm -rf dist .venv-dist
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install -q build
	.venv-dist/bin/python -m build --outdir dist
	rm -rf .venv-dist
	$(PYTHON) .ci/smoke.py dist
	ls -l dist

# The oldest versions that pyproject.toml admits, in an environment of their own.
test-oldest: .venv-oldest/.dev
	.venv-oldest/bin/python -m pytest -q -n 2 --dist loadfile

.venv-oldest/.dev: pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install -q -e '.[test]' numpy==1.26.0 scipy==1.12.0 scikit-learn==1.6.0 polars==1.9.0 pyarrow==15.0.2 dask==2024.8.0 distributed==2024.8.0
	touch $@

$(VENV)/.demo $(VENV)/.dev $(VENV)/.bench $(VENV)/.docs $(VENV)/.mutants: $(VENV)/.%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e '.[$*]'
	touch $@

clean:
	rm -rf docs/_build docs/gallery docs/reference/generated .venv .venv-dist .venv-oldest .venv-rivals .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
