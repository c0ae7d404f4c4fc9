"""All ops, a file each family, a folder what belongs together; importing this defines all of them."""

from mycelia.engine.ops.arrays.axes import *
from mycelia.engine.ops.arrays.blocks import *
from mycelia.engine.ops.arrays.create import *
from mycelia.engine.ops.arrays.gathering import *
from mycelia.engine.ops.arrays.grids import *
from mycelia.engine.ops.arrays.index import *
from mycelia.engine.ops.arrays.joining import *
from mycelia.engine.ops.arrays.masks import *
from mycelia.engine.ops.arrays.order import *
from mycelia.engine.ops.arrays.padding import *
from mycelia.engine.ops.arrays.rearrange import *
from mycelia.engine.ops.arrays.repeating import *
from mycelia.engine.ops.arrays.row_updates import *
from mycelia.engine.ops.arrays.scatter import *
from mycelia.engine.ops.arrays.shape import *
from mycelia.engine.ops.arrays.slicing import *
from mycelia.engine.ops.arrays.triangles import *
from mycelia.engine.ops.control_flow.control import *
from mycelia.engine.ops.control_flow.observe import *
from mycelia.engine.ops.control_flow.state import *
from mycelia.engine.ops.elementwise.activation import *
from mycelia.engine.ops.elementwise.bessel import *
from mycelia.engine.ops.elementwise.bitwise import *
from mycelia.engine.ops.elementwise.cast import *
from mycelia.engine.ops.elementwise.clipping import *
from mycelia.engine.ops.elementwise.combined import *
from mycelia.engine.ops.elementwise.comparison import *
from mycelia.engine.ops.elementwise.complex_numbers import *
from mycelia.engine.ops.elementwise.gamma import *
from mycelia.engine.ops.elementwise.gelu import *
from mycelia.engine.ops.elementwise.logarithms import *
from mycelia.engine.ops.elementwise.logic import *
from mycelia.engine.ops.elementwise.math import *
from mycelia.engine.ops.elementwise.powers import *
from mycelia.engine.ops.elementwise.rectifiers import *
from mycelia.engine.ops.elementwise.rounding import *
from mycelia.engine.ops.elementwise.special import *
from mycelia.engine.ops.elementwise.trig import *
from mycelia.engine.ops.identity import *
from mycelia.engine.ops.images.boxes import *
from mycelia.engine.ops.images.image import *
from mycelia.engine.ops.images.sampling import *
from mycelia.engine.ops.linalg.contractions import *
from mycelia.engine.ops.linalg.decomposition import *
from mycelia.engine.ops.linalg.determinants import *
from mycelia.engine.ops.linalg.diagonals import *
from mycelia.engine.ops.linalg.distances import *
from mycelia.engine.ops.linalg.einsum import *
from mycelia.engine.ops.linalg.orthogonal import *
from mycelia.engine.ops.linalg.pivots import *
from mycelia.engine.ops.linalg.products import *
from mycelia.engine.ops.linalg.scaled_products import *
from mycelia.engine.ops.nn_ops.adaptive_pool import *
from mycelia.engine.ops.nn_ops.attention import *
from mycelia.engine.ops.nn_ops.average_pool import *
from mycelia.engine.ops.nn_ops.batch_norm import *
from mycelia.engine.ops.nn_ops.candidates import *
from mycelia.engine.ops.nn_ops.conv_functions import *
from mycelia.engine.ops.nn_ops.cross_entropy import *
from mycelia.engine.ops.nn_ops.ctc import *
from mycelia.engine.ops.nn_ops.fractional_pool import *
from mycelia.engine.ops.nn_ops.group_norm import *
from mycelia.engine.ops.nn_ops.gru import *
from mycelia.engine.ops.nn_ops.loss import *
from mycelia.engine.ops.nn_ops.lrn import *
from mycelia.engine.ops.nn_ops.max_unpool import *
from mycelia.engine.ops.nn_ops.norm import *
from mycelia.engine.ops.nn_ops.optim import *
from mycelia.engine.ops.nn_ops.pool import *
from mycelia.engine.ops.nn_ops.rnn import *
from mycelia.engine.ops.nn_ops.unfold import *
from mycelia.engine.ops.predicates import *
from mycelia.engine.ops.random.random import *
from mycelia.engine.ops.reductions.description import *
from mycelia.engine.ops.reductions.extreme_values import *
from mycelia.engine.ops.reductions.extremes import *
from mycelia.engine.ops.reductions.moments import *
from mycelia.engine.ops.reductions.reduce import *
from mycelia.engine.ops.reductions.scan import *
from mycelia.engine.ops.reductions.softmaxes import *
from mycelia.engine.ops.reductions.statistics import *
from mycelia.engine.ops.reductions.truth import *
from mycelia.engine.ops.reductions.unsorted_segments import *
from mycelia.engine.ops.sequence import *
from mycelia.engine.ops.signal.fourier import *
from mycelia.engine.ops.signal.windows import *

# isort: split
# These define ops that have no public function and attach methods.
import mycelia.engine.ops.arrays.distinct
import mycelia.engine.ops.communication.collectives
import mycelia.engine.ops.communication.layouts
import mycelia.engine.ops.communication.started
import mycelia.engine.ops.control_flow.debug
import mycelia.engine.ops.control_flow.device
import mycelia.engine.ops.control_flow.guards
import mycelia.engine.ops.control_flow.python_call
import mycelia.engine.ops.elementwise.beta
import mycelia.engine.ops.images.color
import mycelia.engine.ops.images.detection
import mycelia.engine.ops.images.resize
import mycelia.engine.ops.images.rotated_boxes
import mycelia.engine.ops.linalg.factors
import mycelia.engine.ops.linalg.solvers
import mycelia.engine.ops.lowered.batch_norm_act
import mycelia.engine.ops.lowered.channels_last
import mycelia.engine.ops.lowered.channels_last_grad
import mycelia.engine.ops.lowered.fused
import mycelia.engine.ops.lowered.heads
import mycelia.engine.ops.lowered.linear
import mycelia.engine.ops.lowered.low_bit
import mycelia.engine.ops.lowered.rounded
import mycelia.engine.ops.methods.numeric
import mycelia.engine.ops.methods.shape
import mycelia.engine.ops.nn_ops.adaptive_optim
import mycelia.engine.ops.nn_ops.quantized
import mycelia.engine.ops.nn_ops.ratio_pool
import mycelia.engine.ops.reductions.segments

# isort: split
from mycelia.engine.ops.late import provide as _provide

_provide(globals())

# isort: split
import mycelia.engine.ops.methods.conversions  # noqa: E402
import mycelia.engine.ops.methods.functions  # noqa: E402
import mycelia.engine.ops.methods.hooks  # noqa: E402
import mycelia.engine.ops.methods.overloads  # noqa: E402
import mycelia.engine.ops.methods.properties  # noqa: E402

# It brings dispatch and the operators of Tensor, and may be what imports the ops.
import mycelia.engine.tensors.tensor  # noqa: E402

del mycelia  # the imports have bound the package's name
