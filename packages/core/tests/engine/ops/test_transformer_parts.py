"""Parts of transformers as functions: rotary positions, tokens that go to experts."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops


def t(values, dtype="float32"):
    return ms.Tensor(np.array(values, dtype))


@pytest.mark.parametrize("mode", [0, 1])
def test_rotary_positions_turn_pairs(mode):
    x, angle = np.random.default_rng(1).normal(size=(2, 3, 4)), 0.3
    found = ops.rotary_position_embedding(
        t(x), t(np.full((1, 3, 4), np.cos(angle))), t(np.full((1, 3, 4), np.sin(angle))), mode
    ).asnumpy()
    wanted = np.empty_like(x)
    for a, b in [(0, 2), (1, 3)] if mode == 0 else [(0, 1), (2, 3)]:
        wanted[..., a] = x[..., a] * np.cos(angle) - x[..., b] * np.sin(angle)
        wanted[..., b] = x[..., b] * np.cos(angle) + x[..., a] * np.sin(angle)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)
    with pytest.raises(ValueError):
        ops.rotary_position_embedding(t(x), t(x), t(x), 2)


def test_tokens_go_to_their_experts_and_back():
    tokens = t([[1, 1], [2, 2], [3, 3]])
    rows, places = ops.moe_token_permute(tokens, t([[1, 0], [0, 2], [1, 0]], "int32"))
    assert rows.asnumpy()[:, 0].tolist() == [1, 2, 3, 1, 3, 2]
    assert places.asnumpy().tolist() == [3, 0, 1, 5, 4, 2]
    probs = t([[0.25, 0.75], [0.5, 0.5], [1, 0]])
    again = ops.moe_token_unpermute(rows, places, probs)
    np.testing.assert_allclose(again.asnumpy(), tokens.asnumpy())
    assert ops.moe_token_permute(tokens, t([2, 0, 1], "int32"), 2)[0].asnumpy()[:, 0].tolist() == [2, 3]
