"""Functions that only Ascend has say so."""

import itertools

import pytest

from mycelia import ops
from mycelia.ops import ascend_only

ASCEND = """all_gather_matmul flash_attention_score fused_infer_attention_score incre_flash_attention
    lightning_indexer matmul_reduce_scatter nsa_compress nsa_compress_attention nsa_select_attention
    prompt_flash_attention sparse_flash_attention speed_fusion_attention all_to_all_v_c moe_distribute_combine
    moe_distribute_dispatch moe_init_routing_v2 multi_scale_deformable_attn_function
    ring_attention_update""".split()


@pytest.mark.parametrize("name", ASCEND)
def test_what_only_ascend_has_says_so(name):
    assert sorted(ASCEND) == ascend_only.__all__
    function = getattr(ops, name)
    for count in itertools.count():
        try:
            function(*range(count))
        except TypeError:
            continue  # more arguments are needed
        except NotImplementedError as error:
            assert "Ascend" in str(error) and name in str(error)
            break
