# Two commands for newcomers; everything else is `hatch run ...` (see hatch.toml).
HATCH := .hatch/bin/hatch

.PHONY: quickstart test

quickstart test: $(HATCH)
	$(HATCH) run $@ $(ARGS)

$(HATCH):
	python3 -m venv .hatch
	.hatch/bin/pip install --quiet "hatch~=1.18"
