# Two commands for newcomers; everything else is `hatch run ...` (see hatch.toml). ARGS go to the script or to pytest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
HATCH := .hatch/bin/hatch
# Where Python 3.9 is installed, on the path or by pyenv: MindSpore Serving's client, a reference of tests, needs it.
PYTHON39 := $(shell python3.9 -c 'import sys; print(sys.base_prefix)' 2>/dev/null || pyenv prefix 3.9 2>/dev/null)
ARGS ?=

.PHONY: quickstart test fuzz

quickstart: $(HATCH)
	$(HATCH) run native
	-.hatch/bin/python tools/build_pages.py
	$(HATCH) run quickstart $(ARGS)

test: $(HATCH)
	$(HATCH) run native
	-.hatch/bin/python tools/build_pages.py
	-.hatch/bin/python tools/install_browser.py
	-$(HATCH) env create kserve-client
	-test -n "$(PYTHON39)" && PATH="$(PYTHON39)/bin:$$PATH" $(HATCH) env create serving-client
	-.hatch/bin/python tools/fetch_models.py
	$(HATCH) run test -n auto $(ARGS)

fuzz: $(HATCH)
	$(HATCH) run native
	$(HATCH) run fuzz $(ARGS)

$(HATCH):
	$(PYTHON) -m venv .hatch
	.hatch/bin/pip install --quiet "hatch~=1.18"
