"""Every op from its own samples: native against the body, the rule against finite differences."""

import pytest

from mycelia.backends import registry
from mycelia.testing.conformance import check_backend_gradient, check_rule, check_value, has_gradient
from mycelia.testing.samples import all_samples

SAMPLES = list(all_samples())
WITH_GRADIENT = [s for s in SAMPLES if has_gradient(s)]


def has_cpu() -> bool:
    return "cpu" in registry.available()


@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if s.options.get("_value", True)], ids=lambda s: s.name
)
def test_value_equals_body(sample):
    check_value(sample, "cpu" if has_cpu() else "reference")


@pytest.mark.parametrize("sample", WITH_GRADIENT, ids=lambda s: s.name)
def test_rule_equals_finite_differences(sample):
    check_rule(sample)


@pytest.mark.parametrize("sample", WITH_GRADIENT, ids=lambda s: s.name)
def test_gradient_equals_reference(sample):
    check_backend_gradient(sample, "cpu" if has_cpu() else "reference")
