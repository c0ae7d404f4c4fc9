"""All ops, a file each family, a folder what belongs together; here are MindSpore's public function names."""

from mycelia.ops.arrays.blocks import *
from mycelia.ops.arrays.create import *
from mycelia.ops.arrays.index import *
from mycelia.ops.arrays.joining import *
from mycelia.ops.arrays.masks import *
from mycelia.ops.arrays.order import *
from mycelia.ops.arrays.padding import *
from mycelia.ops.arrays.rearrange import *
from mycelia.ops.arrays.repeating import *
from mycelia.ops.arrays.scatter import *
from mycelia.ops.arrays.shape import *
from mycelia.ops.elementwise.activation import *
from mycelia.ops.elementwise.bessel import *
from mycelia.ops.elementwise.cast import *
from mycelia.ops.elementwise.clipping import *
from mycelia.ops.elementwise.complex_numbers import *
from mycelia.ops.elementwise.logic import *
from mycelia.ops.elementwise.math import *
from mycelia.ops.elementwise.powers import *
from mycelia.ops.elementwise.rectifiers import *
from mycelia.ops.elementwise.rounding import *
from mycelia.ops.elementwise.special import *
from mycelia.ops.elementwise.trig import *
from mycelia.ops.facts import *
from mycelia.ops.hybrid import *
from mycelia.ops.identity import *
from mycelia.ops.images.boxes import *
from mycelia.ops.images.image import *
from mycelia.ops.images.sampling import *
from mycelia.ops.layers.adaptive_pool import *
from mycelia.ops.layers.attention import *
from mycelia.ops.layers.average_pool import *
from mycelia.ops.layers.batch_norm import *
from mycelia.ops.layers.candidates import *
from mycelia.ops.layers.conv import *
from mycelia.ops.layers.cross_entropy import *
from mycelia.ops.layers.ctc import *
from mycelia.ops.layers.fractional_pool import *
from mycelia.ops.layers.loss import *
from mycelia.ops.layers.norm import *
from mycelia.ops.layers.optim import *
from mycelia.ops.layers.pool import *
from mycelia.ops.layers.rnn import *
from mycelia.ops.matrices.decomposition import *
from mycelia.ops.matrices.determinants import *
from mycelia.ops.matrices.diagonals import *
from mycelia.ops.matrices.einsum import *
from mycelia.ops.matrices.linalg import *
from mycelia.ops.op_info_register import *
from mycelia.ops.primitive import *
from mycelia.ops.program.control import *
from mycelia.ops.program.observe import *
from mycelia.ops.program.state import *
from mycelia.ops.randomness.random import *
from mycelia.ops.reductions.extremes import *
from mycelia.ops.reductions.moments import *
from mycelia.ops.reductions.reduce import *
from mycelia.ops.reductions.scan import *
from mycelia.ops.reductions.softmaxes import *
from mycelia.ops.reductions.statistics import *
from mycelia.ops.reductions.unsorted_segments import *
from mycelia.ops.sequence import *
from mycelia.ops.signal.fourier import *
from mycelia.ops.signal.windows import *

# isort: split
# These define ops that have no public function and attach methods.
import mycelia.ops.arrays.distinct
import mycelia.ops.elementwise.beta
import mycelia.ops.images.color
import mycelia.ops.images.detection
import mycelia.ops.images.resize
import mycelia.ops.images.rotated_boxes
import mycelia.ops.layers.adaptive_optim
import mycelia.ops.layers.quantized
import mycelia.ops.layers.ratio_pool
import mycelia.ops.lowered.batch_norm_act
import mycelia.ops.lowered.channels_last
import mycelia.ops.lowered.fused
import mycelia.ops.lowered.rounded
import mycelia.ops.matrices.factors
import mycelia.ops.matrices.solvers
import mycelia.ops.methods.numeric
import mycelia.ops.methods.shape
import mycelia.ops.program.debug
import mycelia.ops.program.guards
import mycelia.ops.program.python_call
import mycelia.ops.reductions.segments

# isort: split
import mycelia.ops.methods.facts
import mycelia.ops.methods.further
import mycelia.ops.methods.hooks
import mycelia.ops.methods.overloads
import mycelia.tensor  # with it come dispatch and the operators of Tensor; it may be what imports the ops

del mycelia  # the imports have bound the package's name

# What is built upon the ops cannot be imported while they are defined: name -> its module.
_LATE = {
    **dict.fromkeys(
        ("clip_by_global_norm", "get_grad", "grad", "jvp", "value_and_grad", "vjp"), "transforms"
    ),
    **dict.fromkeys(("jacfwd", "jacrev", "linearize"), "jacobian"),
    **dict.fromkeys(("derivative", "jet"), "taylor"),
    "vmap": "batching",
}
_LATE = {name: f"mycelia.autodiff.{module}" for name, module in _LATE.items()}
_LATE |= dict.fromkeys(
    """ForiLoop GradOperation HyperMap Map MultitypeFuncGraph Partial Scan WhileLoop add_flags env_get
    hyper_add partial""".split(),
    "mycelia.ops.composite",
)
_LATE |= dict.fromkeys(
    """adaptive_avg_pool2d_ext baddbmm_ext bernoulli_ext diff_ext einsum_ext float_power_ext isnan_ext
    mse_loss_ext""".split(),
    "mycelia.mint.ext",
)
_LATE |= dict.fromkeys(
    """all_gather all_gather_into_tensor all_gather_into_tensor_uneven all_gather_object all_reduce all_to_all
    all_to_all_single barrier batch_isend_irecv broadcast broadcast_object_list destroy_process_group
    gather_into_tensor gather_object get_backend get_global_rank get_group_rank get_process_group_ranks
    get_rank get_world_size init_process_group irecv is_available is_initialized isend new_group recv
    recv_object_list reduce_scatter reduce_scatter_tensor reduce_scatter_tensor_uneven scatter_object_list
    scatter_tensor send send_object_list set_comm_ops_inplace""".split(),
    "mycelia.mint.distributed",
)
_LATE["rotated_iou"] = "mycelia.ops.images.rotated_boxes"
_LATE |= dict.fromkeys(
    """all_gather_matmul all_to_all_v_c flash_attention_score fused_infer_attention_score
    incre_flash_attention lightning_indexer matmul_reduce_scatter moe_distribute_combine
    moe_distribute_dispatch moe_init_routing_v2 multi_scale_deformable_attn_function nsa_compress
    nsa_compress_attention nsa_select_attention prompt_flash_attention ring_attention_update
    sparse_flash_attention speed_fusion_attention""".split(),
    "mycelia.ops.ascend_only",
)
_LATE |= dict.fromkeys(
    """array_to_scalar bernoulli_ coo_tensor_get_dense_shape coo_tensor_get_indices coo_tensor_get_values
    csr_tensor_get_dense_shape csr_tensor_get_indices csr_tensor_get_indptr csr_tensor_get_values
    inplace_sigmoid is_dynamic_sequence_element_unknown is_sequence_shape_unknown is_sequence_value_unknown
    make_coo_tensor make_csr_tensor make_row_tensor make_row_tensor_inner make_sparse_tensor
    moe_token_permute moe_token_unpermute put_ reshape_ rotary_position_embedding row_tensor_add
    row_tensor_get_dense_shape row_tensor_get_indices row_tensor_get_values stop_gradient_ tail tensor_muls
    tensor_range zero_""".split(),
    "mycelia.ops.rare",
)
_SPARSE = ("coo_", "csr_", "coo2", "csr2", "dense_to_sparse_")


def __getattr__(name: str):
    import importlib
    import sys

    if name.startswith(_SPARSE):
        found = getattr(importlib.import_module("mycelia.ops.matrices.sparse"), name, None)
        if found is not None:
            return globals().setdefault(name, found)
    if name in _LATE:
        return globals().setdefault(name, getattr(importlib.import_module(_LATE[name]), name))
    if name in ("__all__", "operations") or name[:1].isupper():  # the classes are made when one is asked for
        operations = importlib.import_module("mycelia.ops.operations")
        if name == "operations":
            return operations
        if name == "__all__":
            return [*(n for n in globals() if not n.startswith("_")), *_LATE, *operations.__all__]
        found = getattr(operations, name, None)
        if found is not None:
            return globals().setdefault(name, found)
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__]
    )
