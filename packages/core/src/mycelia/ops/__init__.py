"""All ops, one family a file. `mycelia.ops` holds MindSpore's public function names."""

from mycelia.ops.activation import *
from mycelia.ops.adaptive_pool import *
from mycelia.ops.attention import *
from mycelia.ops.bessel import *
from mycelia.ops.blocks import *
from mycelia.ops.boxes import *
from mycelia.ops.candidates import *
from mycelia.ops.cast import *
from mycelia.ops.clipping import *
from mycelia.ops.complex_numbers import *
from mycelia.ops.control import *
from mycelia.ops.conv import *
from mycelia.ops.create import *
from mycelia.ops.ctc import *
from mycelia.ops.decomposition import *
from mycelia.ops.diagonals import *
from mycelia.ops.einsum import *
from mycelia.ops.extremes import *
from mycelia.ops.facts import *
from mycelia.ops.fourier import *
from mycelia.ops.fractional_pool import *
from mycelia.ops.hybrid import *
from mycelia.ops.identity import *
from mycelia.ops.image import *
from mycelia.ops.index import *
from mycelia.ops.joining import *
from mycelia.ops.linalg import *
from mycelia.ops.logic import *
from mycelia.ops.loss import *
from mycelia.ops.masks import *
from mycelia.ops.math import *
from mycelia.ops.moments import *
from mycelia.ops.norm import *
from mycelia.ops.observe import *
from mycelia.ops.op_info_register import *
from mycelia.ops.optim import *
from mycelia.ops.order import *
from mycelia.ops.pool import *
from mycelia.ops.primitive import *
from mycelia.ops.random import *
from mycelia.ops.rearrange import *
from mycelia.ops.reduce import *
from mycelia.ops.rnn import *
from mycelia.ops.rounding import *
from mycelia.ops.sampling import *
from mycelia.ops.scan import *
from mycelia.ops.scatter import *
from mycelia.ops.sequence import *
from mycelia.ops.shape import *
from mycelia.ops.softmaxes import *
from mycelia.ops.special import *
from mycelia.ops.state import *
from mycelia.ops.statistics import *
from mycelia.ops.trig import *
from mycelia.ops.unsorted_segments import *
from mycelia.ops.windows import *

# isort: split
from mycelia.ops import (  # noqa: F401  (they define and attach)
    batch_norm_act,
    beta,
    channels_last,
    color,
    debug,
    detection,
    distinct,
    factors,
    fused,
    guards,
    methods,
    python_call,
    quantized,
    ratio_pool,
    resize,
    segments,
    shape_methods,
    solvers,
)

from mycelia.ops import tensor_facts, tensor_hooks, more_methods, overloads  # isort: skip  # noqa: F401
import mycelia.tensor  # with it come dispatch and the operators of Tensor; it may be what imports the ops

del mycelia  # the import has bound the package's name
from mycelia.ops.moments import norm  # noqa: E402, F401  (the family `norm` has taken the name)

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
    """all_gather all_reduce barrier broadcast get_backend get_process_group_ranks get_rank is_available
    new_group recv send set_comm_ops_inplace""".split(),
    "mycelia.mint.distributed",
)
_SPARSE = ("coo_", "csr_", "coo2", "csr2", "dense_to_sparse_")


def __getattr__(name: str):
    if name.startswith(_SPARSE):
        import importlib

        found = getattr(importlib.import_module("mycelia.ops.sparse"), name, None)
        if found is not None:
            return globals().setdefault(name, found)
    if name in _LATE:
        import importlib

        return globals().setdefault(name, getattr(importlib.import_module(_LATE[name]), name))
    if name == "__all__" or name[:1].isupper():  # the classes are made when one of them is asked for
        import importlib

        operations = importlib.import_module("mycelia.ops.operations")
        if name == "__all__":
            return [*(n for n in globals() if not n.startswith("_")), *_LATE, *operations.__all__]
        found = getattr(operations, name, None)
        if found is not None:
            return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
