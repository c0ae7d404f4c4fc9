# Two commands for newcomers; everything else is `hatch run ...` (see hatch.toml). ARGS go to the script or to pytest.
HATCH := .hatch/bin/hatch
ARGS ?=

.PHONY: quickstart test

quickstart: $(HATCH)
	$(HATCH) run quickstart $(ARGS)

test: $(HATCH)
	$(HATCH) run test -n auto $(ARGS)

$(HATCH):
	python3 -m venv .hatch
	.hatch/bin/pip install --quiet "hatch~=1.18"
