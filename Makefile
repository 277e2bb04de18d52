# make figures   re-execute every notebook that is out of date and regenerate figures/ (the first call builds .venv)
# make check     what costs no minute, before every commit: style, types, architecture, stale notebooks, links
# make test      every test that takes less than two seconds, and make test-all the slow ones too
# make mutants   wrong changes of the package on purpose, each of which a test of make test must notice
# make bench     measure ours against other libraries, into data/benchmarks/ (about a quarter of an hour)
# make paper     the paper of docs/paper with the numbers that notebooks print, and its Chinese companion: build/paper/
# make site      the collection as pages that need no network, into build/site/
# make lab       open the notebooks in JupyterLab
# make clean     remove what can be made again
#
# Needs python3 (>= 3.11, with venv) and make. Another interpreter: make PYTHON=python3.12 figures.
# Options of the runner: make figures ARGS="42 --force", ARGS=--stale; of pytest: make test ARGS="-k runner".

PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

export PYTHONDONTWRITEBYTECODE =  # what is compiled once is kept: it is half a second of every start

# Freed memory is kept, not given back for the next array to ask for page by page. Measurements keep the usual rules.
figures test test-all: export MALLOC_MMAP_THRESHOLD_ = 67108864
figures test test-all: export MALLOC_TRIM_THRESHOLD_ = 268435456

.PHONY: figures check test test-all mutants bench paper site lab clean

figures: .venv/.ready
	@$(BIN)/python -m relparallel figures $(ARGS)

check: .venv/.tools
	@$(BIN)/ruff check --quiet relparallel notebooks tests docs hatch_build.py
	@$(BIN)/ruff format --quiet --check relparallel tests docs notebooks hatch_build.py
	@$(BIN)/python -m mypy --no-error-summary
	@$(BIN)/python -m pytest tests/checks $(ARGS)
	@$(BIN)/python -m relparallel figures --stale --dry-run || { echo "next: make figures ARGS=--stale"; exit 1; }
	@echo "next: make test"

test: .venv/.tools
	@$(PYTEST) -m "not slow" $(ARGS)

test-all: .venv/.tools
	@$(PYTEST) --hypothesis-profile=ci $(ARGS)

mutants: .venv/.tools
	@$(BIN)/python tests/mutants/run.py $(ARGS)

bench: .venv/.tools .venv/peers
	@$(BIN)/python tests/benchmarks/run.py $(ARGS)
	@PYTHONPATH=.venv/peers $(BIN)/python tests/benchmarks/strategies.py
	@$(BIN)/python tests/benchmarks/notebooks.py
	@$(BIN)/python tests/benchmarks/simulation.py
	@$(BIN)/python tests/benchmarks/rare_events.py
	@$(BIN)/python tests/benchmarks/interval_coverage.py
	@PYTHONPATH=.venv/peers $(BIN)/python tests/benchmarks/reliability.py
	@PYTHONPATH=.venv/peers $(BIN)/python tests/benchmarks/goodput_under_failures.py

# Figures as PDF lie where notebooks were run; those that lack one here are run first.
paper: .venv/.tools
	@numbers="$$(PYTHONPATH=docs $(BIN)/python docs/paper/draft.py)"; [ -z "$$numbers" ] || $(BIN)/python -m relparallel figures $$numbers --force
	@SOURCE_DATE_EPOCH=0 $(BIN)/python -m sphinx -W --keep-going -q -b latex -c docs/paper -d build/doctrees-paper . build/paper
	@command -v latexmk >/dev/null || { echo "build/paper/paper.tex and paper-zh.tex are written; latexmk is not installed"; exit 0; }; \
	cd build/paper; for name in paper paper-zh; do \
	  [ $$name = paper ] || kpsewhich CJKutf8.sty >/dev/null || { echo "paper-zh.tex is written; it needs the LaTeX package CJK"; break; }; \
	  latexmk -pdf -interaction=nonstopmode -halt-on-error -silent $$name.tex >latexmk.log 2>&1 || { tail latexmk.log >&2; exit 1; }; \
	  echo "build/paper/$$name.pdf"; done

# Sphinx builds anew what has changed, and everything with ARGS=-E; docs/conf.py says how.
site: build/pages/claims.html
	@SOURCE_DATE_EPOCH=0 $(BIN)/python -m sphinx -W --keep-going -j $(WORKERS) -c docs -d build/doctrees $(ARGS) . build/site
	@cp build/site/README.html build/site/index.html
	@echo "build/site/index.html"

# The ledger and plans, which take half a minute.
build/pages/claims.html: docs/tables.py docs/whatif.html $(shell find relparallel notebooks data -name '*.py' -o -name '*.csv') | .venv/.tools
	@$(BIN)/python docs/tables.py build/pages

lab: .venv/.ready
	@$(BIN)/python -m jupyterlab notebooks/00_overview.ipynb $(ARGS)

clean:
	rm -rf .venv .relparallel docs/reference .hypothesis .mypy_cache .ruff_cache build dist tests/browser/node_modules figures/*.pdf
	find relparallel notebooks tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "relparallel needs Python 3.11 or later, but $(PYTHON) is " + sys.version.split()[0] + "; name another: make PYTHON=python3.12 ...")'
	@echo "building .venv (once, about a minute)"
	@$(PYTHON) -m venv .venv
	@$(PIP) -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# What tests and benchmarks need besides.
.venv/.tools: .venv/.ready requirements-dev.lock
	@$(PIP) -r requirements-dev.lock
	@touch $@

# Peers whose declared requirements the benchmark does not need, away from everything else; skipped where no
# index has them.
.venv/peers: .venv/.tools
	-@$(PIP) --no-deps --target $@ \
		llm-analysis==0.2.2 fire==0.7.1 six==1.17.0 termcolor==3.3.0 graphillion==2.1 \
		mlsysim==0.3.0 pint==0.25.3 flexcache==0.3 flexparser==0.4 pydantic==2.14.4 pydantic-core==2.50.5 \
		annotated-types==0.8.0 typing-inspection==0.4.5
