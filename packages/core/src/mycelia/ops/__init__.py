"""All ops, one family a file. `mycelia.ops` holds MindSpore's public function names."""

from mycelia.ops.activation import *  # noqa: F403
from mycelia.ops.attention import *  # noqa: F403
from mycelia.ops.cast import *  # noqa: F403
from mycelia.ops.control import *  # noqa: F403
from mycelia.ops.conv import *  # noqa: F403
from mycelia.ops.create import *  # noqa: F403
from mycelia.ops.ctc import *  # noqa: F403
from mycelia.ops.decomposition import *  # noqa: F403
from mycelia.ops.einsum import *  # noqa: F403
from mycelia.ops.extremes import *  # noqa: F403
from mycelia.ops.identity import *  # noqa: F403
from mycelia.ops.image import *  # noqa: F403
from mycelia.ops.index import *  # noqa: F403
from mycelia.ops.linalg import *  # noqa: F403
from mycelia.ops.logic import *  # noqa: F403
from mycelia.ops.loss import *  # noqa: F403
from mycelia.ops.math import *  # noqa: F403
from mycelia.ops.moments import *  # noqa: F403
from mycelia.ops.norm import *  # noqa: F403
from mycelia.ops.optim import *  # noqa: F403
from mycelia.ops.observe import *  # noqa: F403
from mycelia.ops.order import *  # noqa: F403
from mycelia.ops.pool import *  # noqa: F403
from mycelia.ops.random import *  # noqa: F403
from mycelia.ops.reduce import *  # noqa: F403
from mycelia.ops.rnn import *  # noqa: F403
from mycelia.ops.rounding import *  # noqa: F403
from mycelia.ops.scan import *  # noqa: F403
from mycelia.ops.scatter import *  # noqa: F403
from mycelia.ops.shape import *  # noqa: F403
from mycelia.ops.special import *  # noqa: F403
from mycelia.ops.statistics import *  # noqa: F403
from mycelia.ops.trig import *  # noqa: F403

from mycelia.ops.moments import norm  # noqa: E402, F401  (the family `norm` has taken the name)
import mycelia.ops.methods  # noqa: E402, F401  (attaches Tensor methods)
import mycelia.ops.shape_methods  # noqa: E402, F401

_TRANSFORMS = {"clip_by_global_norm", "get_grad", "grad", "jacfwd", "jacrev", "jvp", "value_and_grad", "vjp"}


def __getattr__(name: str):
    if name in _TRANSFORMS:  # autodiff is built upon the ops: it cannot be imported while they are defined
        from mycelia.autodiff import transforms

        return globals().setdefault(name, getattr(transforms, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
