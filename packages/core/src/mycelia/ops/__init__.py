"""`mycelia.ops`: MindSpore's public function names, and its primitives."""

import importlib as _importlib
import sys as _sys
from types import ModuleType

from mycelia.engine import ops as _families
from mycelia.ops import primitive as _primitive
from mycelia.ops.hybrid import *
from mycelia.ops.op_info_register import *
from mycelia.ops.primitive import *

# The functions lie in families of files; the families themselves are no names of this module.
globals().update(
    {
        _name: _value
        for _name, _value in vars(_families).items()
        if not _name.startswith("_") and not isinstance(_value, ModuleType)
    }
)

# What stands on the ops is imported when it is asked for: name -> its module.
_LATE = {
    **dict.fromkeys(("get_grad", "grad", "value_and_grad"), "transforms"),
    **dict.fromkeys(("jvp", "vjp"), "jacobian_products"),
    "clip_by_global_norm": "clipping",
    **dict.fromkeys(("jacfwd", "jacrev", "linearize"), "jacobian"),
    **dict.fromkeys(("derivative", "jet"), "taylor"),
    "vmap": "batching",
}
_LATE = {name: f"mycelia.engine.autodiff.{module}" for name, module in _LATE.items()}
_LATE |= dict.fromkeys(
    """ForiLoop GradOperation HyperMap Map MultitypeFuncGraph Partial Scan WhileLoop add_flags env_get
    hyper_add partial""".split(),
    "mycelia.ops.composite",
)
_LATE |= dict.fromkeys(
    """adaptive_avg_pool2d_ext baddbmm_ext bernoulli_ext diff_ext einsum_ext float_power_ext isnan_ext
    mse_loss_ext""".split(),
    "mycelia.faces.mint.ext",
)
_LATE |= dict.fromkeys(
    """all_gather all_gather_into_tensor all_gather_into_tensor_uneven all_gather_object all_reduce all_to_all
    all_to_all_single barrier batch_isend_irecv broadcast broadcast_object_list destroy_process_group
    gather_object get_backend get_global_rank get_group_rank get_process_group_ranks
    get_rank get_world_size init_process_group irecv is_available is_initialized isend new_group recv
    recv_object_list reduce_scatter reduce_scatter_tensor reduce_scatter_tensor_uneven scatter_object_list
    send send_object_list set_comm_ops_inplace""".split(),
    "mycelia.faces.mint.distributed",
)
_LATE |= dict.fromkeys(
    ("gather_into_tensor", "scatter_tensor"), "mycelia.faces.stand_ins.communication.comm_func"
)
_LATE["rotated_iou"] = "mycelia.engine.ops.images.rotated_boxes"
_LATE |= dict.fromkeys(
    """all_gather_matmul all_to_all_v_c flash_attention_score fused_infer_attention_score
    incre_flash_attention lightning_indexer matmul_reduce_scatter moe_distribute_combine
    moe_distribute_dispatch moe_init_routing_v2 multi_scale_deformable_attn_function nsa_compress
    nsa_compress_attention nsa_select_attention prompt_flash_attention ring_attention_update
    sparse_flash_attention speed_fusion_attention""".split(),
    "mycelia.ops.ascend_only",
)
_LATE |= dict.fromkeys(
    """array_to_scalar coo_tensor_get_dense_shape coo_tensor_get_indices coo_tensor_get_values
    csr_tensor_get_dense_shape csr_tensor_get_indices csr_tensor_get_indptr csr_tensor_get_values
    is_dynamic_sequence_element_unknown is_sequence_shape_unknown is_sequence_value_unknown
    make_coo_tensor make_csr_tensor make_row_tensor make_row_tensor_inner make_sparse_tensor row_tensor_add
    row_tensor_get_dense_shape row_tensor_get_indices row_tensor_get_values tail tensor_muls
    tensor_range""".split(),
    "mycelia.ops.sequences",
)
_LATE |= dict.fromkeys(
    "bernoulli_ inplace_sigmoid put_ reshape_ stop_gradient_ zero_".split(), "mycelia.ops.in_place"
)
_LATE |= dict.fromkeys(
    "moe_token_permute moe_token_unpermute rotary_position_embedding".split(), "mycelia.ops.moe"
)
_SPARSE = ("coo_", "csr_", "coo2", "csr2", "dense_to_sparse_")


def _primitives() -> ModuleType:
    """The classes of primitives, which are made when one is asked for."""
    return _importlib.import_module("mycelia.ops.primitives")


_primitive.registry.load = _primitives


def __getattr__(name: str):
    if name.startswith(_SPARSE):
        found = getattr(_importlib.import_module("mycelia.engine.ops.linalg.sparse"), name, None)
        if found is not None:
            return globals().setdefault(name, found)
    if name in _LATE:
        return globals().setdefault(name, getattr(_importlib.import_module(_LATE[name]), name))
    if name in ("__all__", "operations") or name[:1].isupper():
        operations = _primitives()
        if name == "operations":
            return operations
        if name == "__all__":
            # The same whatever was looked up before: these are in the namespace from their first use on.
            sparse = vars(_importlib.import_module("mycelia.engine.ops.linalg.sparse"))
            listed = (n for n in sparse if n.startswith(_SPARSE))
            own = (n for n in globals() if not n.startswith("_"))
            return list(dict.fromkeys((*own, *_LATE, *listed, *operations.__all__)))
        found = getattr(operations, name, None)
        if found is not None:
            return globals().setdefault(name, found)
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}", name=name, obj=_sys.modules[__name__]
    )
