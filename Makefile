# Two commands for newcomers; everything else is `hatch run ...` (see hatch.toml). ARGS go to the script or to pytest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
HATCH := .hatch/bin/hatch
ARGS ?=

.PHONY: quickstart test fuzz

quickstart: $(HATCH)
	$(HATCH) run native
	$(HATCH) run quickstart $(ARGS)

test: $(HATCH)
	$(HATCH) run native
	-$(HATCH) env create kserve-client
	-python3.9 -c '' && $(HATCH) env create serving-client
	$(HATCH) run test -n auto $(ARGS)

fuzz: $(HATCH)
	$(HATCH) run native
	$(HATCH) run fuzz $(ARGS)

$(HATCH):
	$(PYTHON) -m venv .hatch
	.hatch/bin/pip install --quiet "hatch~=1.18"
