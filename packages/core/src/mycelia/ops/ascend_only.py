"""Functions that MindSpore runs on Ascend only: each raises an error that names what would run it."""

from __future__ import annotations

from mycelia.engine.base import errors

#: Function -> its parameters as MindSpore has them; `...`: any.
_FUNCTIONS = {
    "all_gather_matmul": "...",
    "all_to_all_v_c": "output input send_count_matrix group=None async_op=False",
    "flash_attention_score": "query key value head_num ...",
    "fused_infer_attention_score": "query key value ...",
    "incre_flash_attention": "query key value ...",
    "lightning_indexer": "...",
    "matmul_reduce_scatter": "...",
    "moe_distribute_combine": "expand_x expert_ids expand_idx ep_send_counts expert_scales ep_world_size "
    "ep_rank_id moe_expert_num ...",
    "moe_distribute_dispatch": "x expert_ids ep_world_size ep_rank_id moe_expert_num ...",
    "moe_init_routing_v2": "x expert_idx active_num expert_capacity expert_num drop_pad_mode "
    "expert_tokens_count_or_cumsum_flag expert_tokens_before_capacity_flag",
    "multi_scale_deformable_attn_function": "value shape offset locations weight",
    "nsa_compress": "...",
    "nsa_compress_attention": "...",
    "nsa_select_attention": "...",
    "prompt_flash_attention": "query key value ...",
    "ring_attention_update": "prev_attn_out prev_softmax_max prev_softmax_sum cur_attn_out cur_softmax_max "
    "cur_softmax_sum actual_seq_qlen=None layout='SBH'",
    "sparse_flash_attention": "...",
    "speed_fusion_attention": "query key value head_num input_layout ...",
}


def _made(name: str, parameters: str):
    import inspect

    found = []
    for text in parameters.split():
        if text == "...":
            found.append(inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL))
            found.append(inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD))
            continue
        word, _, default = text.partition("=")
        value = {"None": None, "False": False}.get(default, default.strip("'")) if default else inspect._empty
        found.append(inspect.Parameter(word, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value))
    signature = inspect.Signature(found)

    def function(*args, **kwargs):
        signature.bind(*args, **kwargs)
        raise errors.error(errors.NotSupportedError, name, "this runs on Ascend only, by an Ascend backend")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of MindSpore on Ascend. Errors: NotSupportedError."
    function.__signature__ = signature
    return function


globals().update({name: _made(name, parameters) for name, parameters in _FUNCTIONS.items()})
__all__ = sorted(_FUNCTIONS)
