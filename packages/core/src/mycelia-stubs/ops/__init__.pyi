# Written by tools/gen_stubs.py.
from . import (
    composite as composite, operations as operations, primitive as primitive, primitives as primitives,
)
from collections.abc import Sequence as Sequence
from mycelia.engine._C import DTypeLike as DTypeLike, Tensor as Tensor, TensorLike as TensorLike
from mycelia.engine.autodiff.batching import vmap as vmap
from mycelia.engine.autodiff.jacobian import jacfwd as jacfwd, jacrev as jacrev, linearize as linearize
from mycelia.engine.autodiff.jacobian_products import jvp as jvp, vjp as vjp
from mycelia.engine.autodiff.taylor import derivative as derivative, jet as jet
from mycelia.engine.autodiff.transforms import (
    get_grad as get_grad, grad as grad, value_and_grad as value_and_grad,
)
from mycelia.engine.ops.arrays.index import is_tensor as is_tensor
from mycelia.engine.ops.arrays.joining import (
    chunk as chunk, dsplit as dsplit, hsplit as hsplit, split as split, tensor_split as tensor_split,
    vsplit as vsplit,
)
from mycelia.engine.ops.arrays.masks import nonzero as nonzero
from mycelia.engine.ops.arrays.order import kthvalue as kthvalue, unique_consecutive as unique_consecutive
from mycelia.engine.ops.arrays.padding import pad as pad
from mycelia.engine.ops.arrays.rearrange import mirror_pad as mirror_pad
from mycelia.engine.ops.arrays.shape import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d, rank as rank,
    shape as shape, size as size,
)
from mycelia.engine.ops.arrays.slicing import strided_slice as strided_slice
from mycelia.engine.ops.control_flow.control import stop_gradient as stop_gradient
from mycelia.engine.ops.elementwise.clipping import (
    clip_by_norm as clip_by_norm, clip_by_value as clip_by_value,
)
from mycelia.engine.ops.identity import depend as depend
from mycelia.engine.ops.images.image import interpolate as interpolate, upsample as upsample
from mycelia.engine.ops.infer import broadcast_shapes as broadcast_shapes
from mycelia.engine.ops.linalg.decomposition import svd as svd
from mycelia.engine.ops.linalg.determinants import matrix_power as matrix_power
from mycelia.engine.ops.linalg.einsum import einsum as _einsum, einsum as einsum
from mycelia.engine.ops.linalg.pivots import lu_unpack as lu_unpack
from mycelia.engine.ops.linalg.sparse import (
    coo2csr as coo2csr, coo_add as coo_add, coo_concat as coo_concat, csr2coo as csr2coo,
    csr_add as csr_add, csr_div as csr_div, csr_gather as csr_gather, csr_mm as csr_mm, csr_mul as csr_mul,
    csr_mv as csr_mv, csr_reduce_sum as csr_reduce_sum, csr_softmax as csr_softmax,
    csr_to_coo as csr_to_coo, csr_to_dense as csr_to_dense,
)
from mycelia.engine.ops.nn_ops.adaptive_pool import (
    adaptive_avg_pool2d as adaptive_avg_pool2d, adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool2d as adaptive_max_pool2d, adaptive_max_pool3d as adaptive_max_pool3d,
)
from mycelia.engine.ops.nn_ops.fractional_pool import (
    fractional_max_pool2d as fractional_max_pool2d, fractional_max_pool3d as fractional_max_pool3d,
)
from mycelia.engine.ops.nn_ops.norm import add_layer_norm as add_layer_norm, add_rms_norm as add_rms_norm
from mycelia.engine.ops.nn_ops.pool import max_pool2d as max_pool2d, max_pool3d as max_pool3d
from mycelia.engine.ops.predicates import (
    coalesce as coalesce, dtype as dtype, is_complex as is_complex, is_floating_point as is_floating_point,
    mixed_precision_cast as mixed_precision_cast, shape_mul as shape_mul,
)
from mycelia.engine.ops.reductions.moments import matrix_norm as matrix_norm, norm as norm
from mycelia.engine.ops.sequence import (
    scalar_cast as scalar_cast, scalar_to_array as scalar_to_array, scalar_to_tensor as scalar_to_tensor,
    tuple_to_array as tuple_to_array,
)
from mycelia.engine.tensors.sparse import (
    dense_to_sparse_coo as dense_to_sparse_coo, dense_to_sparse_csr as dense_to_sparse_csr,
)
from mycelia.faces.mint.distributed.collectives import (
    all_gather as all_gather, all_gather_into_tensor as all_gather_into_tensor,
    all_gather_into_tensor_uneven as all_gather_into_tensor_uneven, all_reduce as all_reduce,
    all_to_all as all_to_all, all_to_all_single as all_to_all_single, barrier as barrier,
    broadcast as broadcast, reduce_scatter as reduce_scatter,
    reduce_scatter_tensor as reduce_scatter_tensor,
    reduce_scatter_tensor_uneven as reduce_scatter_tensor_uneven,
    set_comm_ops_inplace as set_comm_ops_inplace,
)
from mycelia.faces.mint.distributed.groups import (
    get_backend as get_backend, get_global_rank as get_global_rank, get_group_rank as get_group_rank,
    get_process_group_ranks as get_process_group_ranks, get_rank as get_rank,
    get_world_size as get_world_size, is_available as is_available, is_initialized as is_initialized,
)
from mycelia.faces.mint.distributed.pairs import (
    batch_isend_irecv as batch_isend_irecv, irecv as irecv, isend as isend,
    recv_object_list as recv_object_list,
)
from mycelia.faces.mint.distributed.store import TCPStore as TCPStore
from mycelia.faces.mint.nn.windows import adaptive_avg_pool2d as _adaptive_avg_pool2d
from mycelia.faces.stand_ins.communication.comm_func import P2POp as P2POp
from mycelia.ops.composite import (
    ForiLoop as ForiLoop, GradOperation as GradOperation, HyperMap as HyperMap, HyperMap as _HyperMap,
    Map as Map, MultitypeFuncGraph as MultitypeFuncGraph, MultitypeFuncGraph as _MultitypeFuncGraph,
    Partial as Partial, Scan as Scan, WhileLoop as WhileLoop, add_flags as add_flags, partial as partial,
)
from mycelia.ops.hybrid import kernel as kernel, ms_kernel as ms_kernel
from mycelia.ops.op_info_register import (
    AiCPURegOp as AiCPURegOp, AkgAscendRegOp as AkgAscendRegOp, AkgCpuRegOp as AkgCpuRegOp,
    AkgGpuRegOp as AkgGpuRegOp, CpuRegOp as CpuRegOp, CustomRegOp as CustomRegOp, DataType as DataType,
    TBERegOp as TBERegOp, custom_info_register as custom_info_register,
    op_info_register as op_info_register,
)
from mycelia.ops.operations import (
    ACos as ACos, ACosGrad as ACosGrad, Abs as Abs, AbsGrad as AbsGrad, AccumulateNV2 as AccumulateNV2,
    Acosh as Acosh, AcoshGrad as AcoshGrad, Adam as Adam, AdamNoUpdateParam as AdamNoUpdateParam,
    AdamWeightDecay as AdamWeightDecay, AdaptiveAvgPool2D as AdaptiveAvgPool2D,
    AdaptiveAvgPool3D as AdaptiveAvgPool3D, AdaptiveMaxPool2D as AdaptiveMaxPool2D,
    AdaptiveMaxPool3D as AdaptiveMaxPool3D, Add as Add, AddN as AddN, Addcdiv as Addcdiv,
    Addcmul as Addcmul, AdjustHue as AdjustHue, AdjustSaturation as AdjustSaturation,
    AffineGrid as AffineGrid, AllGather as AllGather, AllGatherV as AllGatherV, AllReduce as AllReduce,
    AlltoAll as AlltoAll, AlltoAllV as AlltoAllV, AlltoAllVC as AlltoAllVC, Angle as Angle,
    ApplyAdaMax as ApplyAdaMax, ApplyAdadelta as ApplyAdadelta, ApplyAdagrad as ApplyAdagrad,
    ApplyAdagradDA as ApplyAdagradDA, ApplyAdagradV2 as ApplyAdagradV2,
    ApplyAdamWithAmsgrad as ApplyAdamWithAmsgrad, ApplyAdamWithAmsgradV2 as ApplyAdamWithAmsgradV2,
    ApplyAddSign as ApplyAddSign, ApplyCenteredRMSProp as ApplyCenteredRMSProp, ApplyFtrl as ApplyFtrl,
    ApplyGradientDescent as ApplyGradientDescent, ApplyKerasMomentum as ApplyKerasMomentum,
    ApplyMomentum as ApplyMomentum, ApplyPowerSign as ApplyPowerSign,
    ApplyProximalAdagrad as ApplyProximalAdagrad,
    ApplyProximalGradientDescent as ApplyProximalGradientDescent, ApplyRMSProp as ApplyRMSProp,
    ApplyRotaryPosEmb as ApplyRotaryPosEmb, ApproximateEqual as ApproximateEqual,
    ArgMaxWithValue as ArgMaxWithValue, ArgMinWithValue as ArgMinWithValue, Argmax as Argmax,
    Argmin as Argmin, Asin as Asin, AsinGrad as AsinGrad, Asinh as Asinh, AsinhGrad as AsinhGrad,
    Assert as Assert, Assign as Assign, AssignAdd as AssignAdd, AssignSub as AssignSub, Atan as Atan,
    Atan2 as Atan2, Atan2Grad as Atan2Grad, AtanGrad as AtanGrad, Atanh as Atanh, AvgPool as AvgPool,
    AvgPool3D as AvgPool3D, AvgPoolGrad as AvgPoolGrad, BCEWithLogitsLoss as BCEWithLogitsLoss,
    Barrier as Barrier, BartlettWindow as BartlettWindow, BasicLSTMCell as BasicLSTMCell,
    BatchISendIRecv as BatchISendIRecv, BatchMatMul as BatchMatMul, BatchNorm as BatchNorm,
    BatchNormGrad as BatchNormGrad, BatchToSpace as BatchToSpace, BatchToSpaceND as BatchToSpaceND,
    BatchToSpaceNDV2 as BatchToSpaceNDV2, Bernoulli as Bernoulli, BesselI0 as BesselI0,
    BesselI0e as BesselI0e, BesselI1 as BesselI1, BesselI1e as BesselI1e, BesselJ0 as BesselJ0,
    BesselJ1 as BesselJ1, BesselK0 as BesselK0, BesselK0e as BesselK0e, BesselK1 as BesselK1,
    BesselK1e as BesselK1e, BesselY0 as BesselY0, BesselY1 as BesselY1, Betainc as Betainc,
    BiasAdd as BiasAdd, BiasAddGrad as BiasAddGrad, BinaryCrossEntropy as BinaryCrossEntropy,
    BinaryCrossEntropyGrad as BinaryCrossEntropyGrad, Bincount as Bincount, BitwiseAnd as BitwiseAnd,
    BitwiseOr as BitwiseOr, BitwiseXor as BitwiseXor, BlackmanWindow as BlackmanWindow,
    BoundingBoxDecode as BoundingBoxDecode, BoundingBoxEncode as BoundingBoxEncode, Broadcast as Broadcast,
    BroadcastTo as BroadcastTo, Bucketize as Bucketize, CSRSparseMatrixToDense as CSRSparseMatrixToDense,
    CSRSparseMatrixToSparseTensor as CSRSparseMatrixToSparseTensor, CTCGreedyDecoder as CTCGreedyDecoder,
    CTCLoss as CTCLoss, CTCLossV2 as CTCLossV2, Cast as Cast, Cauchy as Cauchy, Cdist as Cdist,
    CdistGrad as CdistGrad, CeLU as CeLU, Ceil as Ceil, ChannelShuffle as ChannelShuffle,
    CheckNumerics as CheckNumerics, CheckValid as CheckValid, Cholesky as Cholesky,
    CholeskyGrad as CholeskyGrad, CholeskyInverse as CholeskyInverse, CholeskySolve as CholeskySolve,
    ClipByNorm as ClipByNorm, Coalesce as Coalesce, Col2Im as Col2Im, CollectiveGather as CollectiveGather,
    CollectiveScatter as CollectiveScatter, CombinedNonMaxSuppression as CombinedNonMaxSuppression,
    CompareAndBitpack as CompareAndBitpack, Complex as Complex, ComplexAbs as ComplexAbs,
    ComputeAccidentalHits as ComputeAccidentalHits, Concat as Concat, ConcatOffset as ConcatOffset,
    ConcatOffsetV1 as ConcatOffsetV1, ConfusionMatrix as ConfusionMatrix, Conj as Conj,
    ConjugateTranspose as ConjugateTranspose, Conv2D as Conv2D,
    Conv2DBackpropFilter as Conv2DBackpropFilter, Conv2DBackpropInput as Conv2DBackpropInput,
    Conv2DTranspose as Conv2DTranspose, Conv3D as Conv3D, Conv3DBackpropFilter as Conv3DBackpropFilter,
    Conv3DBackpropInput as Conv3DBackpropInput, Conv3DTranspose as Conv3DTranspose,
    ConvertToDynamic as ConvertToDynamic, CopyWithSlice as CopyWithSlice, Cos as Cos, Cosh as Cosh,
    CountNonZero as CountNonZero, CropAndResize as CropAndResize, Cross as Cross, CumProd as CumProd,
    CumSum as CumSum, Cummax as Cummax, Cummin as Cummin, CumulativeLogsumexp as CumulativeLogsumexp,
    DType as DType, DataFormatDimMap as DataFormatDimMap, DataFormatVecPermute as DataFormatVecPermute,
    DeformableOffsets as DeformableOffsets, DeformableOffsetsGrad as DeformableOffsetsGrad, Dense as Dense,
    DenseToCSRSparseMatrix as DenseToCSRSparseMatrix, Depend as Depend, DepthToSpace as DepthToSpace,
    DepthwiseConv2dNative as DepthwiseConv2dNative, Diag as Diag, DiagPart as DiagPart, Digamma as Digamma,
    Dilation2D as Dilation2D, Div as Div, DivNoNan as DivNoNan, Dropout as Dropout, Dropout2D as Dropout2D,
    Dropout3D as Dropout3D, DropoutDoMask as DropoutDoMask, DropoutGenMask as DropoutGenMask,
    DropoutGrad as DropoutGrad, DtypeToEnum as DtypeToEnum, DumpGradient as DumpGradient,
    DynamicGRUV2 as DynamicGRUV2, DynamicRNN as DynamicRNN, DynamicShape as DynamicShape,
    EditDistance as EditDistance, Eig as Eig, Einsum as Einsum, Elu as Elu, EluGrad as EluGrad,
    EmbeddingLookup as EmbeddingLookup, Eps as Eps, Equal as Equal, EqualCount as EqualCount, Erf as Erf,
    Erfc as Erfc, Erfinv as Erfinv, EuclideanNorm as EuclideanNorm, Exp as Exp, Expand as Expand,
    ExpandDims as ExpandDims, Expm1 as Expm1, ExtractGlimpse as ExtractGlimpse,
    ExtractImagePatches as ExtractImagePatches, ExtractVolumePatches as ExtractVolumePatches, Eye as Eye,
    FFTWithSize as FFTWithSize, FastGeLU as FastGeLU, FastGeLUGrad as FastGeLUGrad, Fill as Fill,
    FillDiagonal as FillDiagonal, FillV2 as FillV2, Fills as Fills, Flatten as Flatten,
    FlattenGrad as FlattenGrad, FloatStatus as FloatStatus, Floor as Floor, FloorDiv as FloorDiv,
    FloorMod as FloorMod, Fmax as Fmax, Fmin as Fmin, FractionalAvgPool as FractionalAvgPool,
    FractionalAvgPoolGrad as FractionalAvgPoolGrad, FractionalMaxPool as FractionalMaxPool,
    FractionalMaxPool3DGradWithFixedKsize as FractionalMaxPool3DGradWithFixedKsize,
    FractionalMaxPool3DWithFixedKsize as FractionalMaxPool3DWithFixedKsize,
    FractionalMaxPoolGrad as FractionalMaxPoolGrad,
    FractionalMaxPoolGradWithFixedKsize as FractionalMaxPoolGradWithFixedKsize,
    FractionalMaxPoolWithFixedKsize as FractionalMaxPoolWithFixedKsize, FusedAdaFactor as FusedAdaFactor,
    FusedAdaFactorWithGlobalNorm as FusedAdaFactorWithGlobalNorm,
    FusedCastAdamWeightDecay as FusedCastAdamWeightDecay, FusedSparseAdam as FusedSparseAdam,
    FusedSparseFtrl as FusedSparseFtrl, FusedSparseLazyAdam as FusedSparseLazyAdam,
    FusedSparseProximalAdagrad as FusedSparseProximalAdagrad,
    FusedWeightScaleApplyMomentum as FusedWeightScaleApplyMomentum, GLU as GLU, GRUV2 as GRUV2,
    GRUV2Grad as GRUV2Grad, Gamma as Gamma, Gather as Gather, GatherD as GatherD, GatherNd as GatherNd,
    GatherV2 as GatherV2, Gcd as Gcd, GeLU as GeLU, GeLUGrad as GeLUGrad, Geqrf as Geqrf, Ger as Ger,
    GluGrad as GluGrad, Greater as Greater, GreaterEqual as GreaterEqual, GridSampler2D as GridSampler2D,
    GridSampler2DGrad as GridSampler2DGrad, GridSampler3D as GridSampler3D,
    GridSampler3DGrad as GridSampler3DGrad, HSVToRGB as HSVToRGB, HShrink as HShrink,
    HShrinkGrad as HShrinkGrad, HSigmoid as HSigmoid, HSigmoidGrad as HSigmoidGrad, HSwish as HSwish,
    HSwishGrad as HSwishGrad, HammingWindow as HammingWindow, Heaviside as Heaviside,
    Histogram as Histogram, HistogramFixedWidth as HistogramFixedWidth,
    HistogramSummary as HistogramSummary, Hypot as Hypot, IOU as IOU, Identity as Identity,
    IdentityN as IdentityN, Igamma as Igamma, Igammac as Igammac, Im2Col as Im2Col, Imag as Imag,
    ImageSummary as ImageSummary, InSequence as InSequence, InTopK as InTopK, IndexAdd as IndexAdd,
    IndexFill as IndexFill, IndexPut as IndexPut, InplaceAdd as InplaceAdd,
    InplaceIndexAdd as InplaceIndexAdd, InplaceSub as InplaceSub, InplaceUpdate as InplaceUpdate,
    InplaceUpdateV2 as InplaceUpdateV2, Inv as Inv, InvGrad as InvGrad, Invert as Invert,
    InvertPermutation as InvertPermutation, IsClose as IsClose, IsFinite as IsFinite, IsInf as IsInf,
    IsInstance as IsInstance, IsNan as IsNan, IsSubClass as IsSubClass, KLDivLoss as KLDivLoss,
    KLDivLossGrad as KLDivLossGrad, L2Loss as L2Loss, L2Normalize as L2Normalize,
    L2NormalizeGrad as L2NormalizeGrad, LARSUpdate as LARSUpdate, LRN as LRN, LRNGrad as LRNGrad,
    LSTM as LSTM, LayerNorm as LayerNorm, LayerNormGrad as LayerNormGrad,
    LayerNormGradGrad as LayerNormGradGrad, Lcm as Lcm, LeftShift as LeftShift, Lerp as Lerp,
    LerpScalar as LerpScalar, Less as Less, LessEqual as LessEqual, Lgamma as Lgamma, LinSpace as LinSpace,
    ListDiff as ListDiff, ListToTensor as ListToTensor, ListToTuple as ListToTuple, Load as Load,
    Log as Log, Log1p as Log1p, LogMatrixDeterminant as LogMatrixDeterminant,
    LogNormalReverse as LogNormalReverse, LogSoftmax as LogSoftmax, LogSoftmaxExt as LogSoftmaxExt,
    LogSoftmaxGrad as LogSoftmaxGrad, LogSpace as LogSpace,
    LogUniformCandidateSampler as LogUniformCandidateSampler, LogicalAnd as LogicalAnd,
    LogicalNot as LogicalNot, LogicalOr as LogicalOr, LogicalXor as LogicalXor, Logit as Logit,
    LogitGrad as LogitGrad, LowerBound as LowerBound, LpNorm as LpNorm, Lstsq as Lstsq, LuSolve as LuSolve,
    LuUnpack as LuUnpack, MapUniform as MapUniform, MaskedFill as MaskedFill,
    MaskedScatter as MaskedScatter, MaskedSelect as MaskedSelect, MatMul as MatMul,
    MatrixBandPart as MatrixBandPart, MatrixDeterminant as MatrixDeterminant, MatrixDiag as MatrixDiag,
    MatrixDiagPart as MatrixDiagPart, MatrixDiagPartV3 as MatrixDiagPartV3, MatrixDiagV3 as MatrixDiagV3,
    MatrixExp as MatrixExp, MatrixInverse as MatrixInverse, MatrixLogarithm as MatrixLogarithm,
    MatrixPower as MatrixPower, MatrixSetDiag as MatrixSetDiag, MatrixSetDiagV3 as MatrixSetDiagV3,
    MatrixSolve as MatrixSolve, MatrixSolveLs as MatrixSolveLs,
    MatrixTriangularSolve as MatrixTriangularSolve, MaxPool as MaxPool, MaxPool3D as MaxPool3D,
    MaxPool3DGrad as MaxPool3DGrad, MaxPool3DGradGrad as MaxPool3DGradGrad,
    MaxPool3DWithArgmax as MaxPool3DWithArgmax, MaxPoolGrad as MaxPoolGrad,
    MaxPoolGradGrad as MaxPoolGradGrad, MaxPoolGradGradWithArgmax as MaxPoolGradGradWithArgmax,
    MaxPoolGradWithArgmax as MaxPoolGradWithArgmax, MaxPoolGradWithArgmaxV2 as MaxPoolGradWithArgmaxV2,
    MaxPoolWithArgmax as MaxPoolWithArgmax, MaxPoolWithArgmaxV2 as MaxPoolWithArgmaxV2,
    MaxUnpool2D as MaxUnpool2D, MaxUnpool3D as MaxUnpool3D, Maximum as Maximum, MaximumGrad as MaximumGrad,
    MaximumGradGrad as MaximumGradGrad, Median as Median, MedianGrad as MedianGrad, Meshgrid as Meshgrid,
    Minimum as Minimum, MinimumGrad as MinimumGrad, MinimumGradGrad as MinimumGradGrad,
    MirrorPad as MirrorPad, Mish as Mish, Mod as Mod, MoveTo as MoveTo, Mul as Mul, MulNoNan as MulNoNan,
    MultiMarginLoss as MultiMarginLoss, MultilabelMarginLoss as MultilabelMarginLoss,
    Multinomial as Multinomial, MultinomialWithReplacement as MultinomialWithReplacement,
    Mvlgamma as Mvlgamma, NLLLoss as NLLLoss, NLLLossGrad as NLLLossGrad, NMSWithMask as NMSWithMask,
    NPUAllocFloatStatus as NPUAllocFloatStatus, NPUClearFloatStatus as NPUClearFloatStatus,
    NPUGetFloatStatus as NPUGetFloatStatus, NanToNum as NanToNum, Neg as Neg,
    NeighborExchange as NeighborExchange, NeighborExchangeV2 as NeighborExchangeV2, NextAfter as NextAfter,
    NoRepeatNGram as NoRepeatNGram, NonDeterministicInts as NonDeterministicInts,
    NonMaxSuppressionV3 as NonMaxSuppressionV3,
    NonMaxSuppressionWithOverlaps as NonMaxSuppressionWithOverlaps, NonZero as NonZero,
    NotEqual as NotEqual, NthElement as NthElement, NuclearNorm as NuclearNorm, OneHot as OneHot,
    Ones as Ones, OnesLike as OnesLike, Orgqr as Orgqr, Ormqr as Ormqr, PReLU as PReLU,
    PReLUGrad as PReLUGrad, PSROIPooling as PSROIPooling, PSROIPoolingGrad as PSROIPoolingGrad,
    Pack as Pack, Pad as Pad, PadAndShift as PadAndShift, PadV3 as PadV3, PadV3Grad as PadV3Grad,
    Padding as Padding, PagedAttention as PagedAttention, PagedAttentionMask as PagedAttentionMask,
    ParallelConcat as ParallelConcat, ParameterizedTruncatedNormal as ParameterizedTruncatedNormal,
    Pdist as Pdist, PdistGrad as PdistGrad, Poisson as Poisson, Polar as Polar, Polygamma as Polygamma,
    PopulationCount as PopulationCount, Pow as Pow, Print as Print, Qr as Qr, Quantile as Quantile,
    RGBToHSV as RGBToHSV, RNNTLoss as RNNTLoss, ROIAlign as ROIAlign, ROIAlignGrad as ROIAlignGrad,
    RaggedRange as RaggedRange, RaggedTensorToSparse as RaggedTensorToSparse,
    RandomCategorical as RandomCategorical, RandomChoiceWithMask as RandomChoiceWithMask,
    RandomGamma as RandomGamma, RandomPoisson as RandomPoisson, RandomShuffle as RandomShuffle,
    Randperm as Randperm, RandpermV2 as RandpermV2, Range as Range, Rank as Rank, ReLU as ReLU,
    ReLU6 as ReLU6, ReLU6Grad as ReLU6Grad, Real as Real, RealDiv as RealDiv, Receive as Receive,
    Reciprocal as Reciprocal, ReciprocalGrad as ReciprocalGrad, Reduce as Reduce, ReduceAll as ReduceAll,
    ReduceAny as ReduceAny, ReduceMax as ReduceMax, ReduceMean as ReduceMean, ReduceMin as ReduceMin,
    ReduceProd as ReduceProd, ReduceScatter as ReduceScatter, ReduceScatterV as ReduceScatterV,
    ReduceStd as ReduceStd, ReduceSum as ReduceSum, ReluGrad as ReluGrad, Renorm as Renorm,
    Reshape as Reshape, ReshapeAndCache as ReshapeAndCache, Reshard as Reshard, ResizeArea as ResizeArea,
    ResizeBicubic as ResizeBicubic, ResizeBicubicGrad as ResizeBicubicGrad,
    ResizeBilinearGrad as ResizeBilinearGrad, ResizeBilinearV2 as ResizeBilinearV2,
    ResizeLinear1D as ResizeLinear1D, ResizeNearestNeighbor as ResizeNearestNeighbor,
    ResizeNearestNeighborGrad as ResizeNearestNeighborGrad,
    ResizeNearestNeighborV2 as ResizeNearestNeighborV2,
    ResizeNearestNeighborV2Grad as ResizeNearestNeighborV2Grad, Reusing as Reusing,
    ReverseSequence as ReverseSequence, ReverseV2 as ReverseV2, RightShift as RightShift, Rint as Rint,
    RmsNorm as RmsNorm, Roll as Roll, Round as Round, Rsqrt as Rsqrt, RsqrtGrad as RsqrtGrad, SGD as SGD,
    STFT as STFT, SameTypeShape as SameTypeShape,
    SampleDistortedBoundingBoxV2 as SampleDistortedBoundingBoxV2, ScalarCast as ScalarCast,
    ScalarSummary as ScalarSummary, ScalarToArray as ScalarToArray, ScalarToTensor as ScalarToTensor,
    ScaleAndTranslate as ScaleAndTranslate, ScatterAdd as ScatterAdd,
    ScatterAddWithAxis as ScatterAddWithAxis, ScatterDiv as ScatterDiv, ScatterMax as ScatterMax,
    ScatterMin as ScatterMin, ScatterMul as ScatterMul, ScatterNd as ScatterNd,
    ScatterNdAdd as ScatterNdAdd, ScatterNdDiv as ScatterNdDiv, ScatterNdMax as ScatterNdMax,
    ScatterNdMin as ScatterNdMin, ScatterNdMul as ScatterNdMul, ScatterNdSub as ScatterNdSub,
    ScatterNdUpdate as ScatterNdUpdate, ScatterNonAliasingAdd as ScatterNonAliasingAdd,
    ScatterSub as ScatterSub, ScatterUpdate as ScatterUpdate, SeLU as SeLU, SeLUGrad as SeLUGrad,
    SearchSorted as SearchSorted, SegmentMax as SegmentMax, SegmentMean as SegmentMean,
    SegmentMin as SegmentMin, SegmentProd as SegmentProd, SegmentSum as SegmentSum, Select as Select,
    Send as Send, SequenceAdd as SequenceAdd, SequenceAddN as SequenceAddN,
    SequenceConcat as SequenceConcat, SequenceCount as SequenceCount, SequenceIndex as SequenceIndex,
    SequenceMax as SequenceMax, SequenceMin as SequenceMin, SequenceMul as SequenceMul,
    SequenceSlice as SequenceSlice, SequenceStack as SequenceStack, SequenceUnstack as SequenceUnstack,
    SequenceZerosLike as SequenceZerosLike, SetSize as SetSize, Shape as Shape, Shift as Shift,
    SiLUGrad as SiLUGrad, Sigmoid as Sigmoid,
    SigmoidCrossEntropyWithLogits as SigmoidCrossEntropyWithLogits,
    SigmoidCrossEntropyWithLogitsGrad as SigmoidCrossEntropyWithLogitsGrad, SigmoidGrad as SigmoidGrad,
    Sign as Sign, Sin as Sin, Sinc as Sinc, Sinh as Sinh, Size as Size, Slice as Slice,
    SliceGrad as SliceGrad, SmoothL1Loss as SmoothL1Loss, SmoothL1LossGrad as SmoothL1LossGrad,
    SoftMarginLoss as SoftMarginLoss, SoftShrink as SoftShrink, SoftShrinkGrad as SoftShrinkGrad,
    Softmax as Softmax, SoftmaxBackward as SoftmaxBackward,
    SoftmaxCrossEntropyWithLogits as SoftmaxCrossEntropyWithLogits, SoftmaxGrad as SoftmaxGrad,
    Softplus as Softplus, SoftplusGrad as SoftplusGrad, Softsign as Softsign, Sort as Sort,
    SpaceToBatch as SpaceToBatch, SpaceToBatchND as SpaceToBatchND, SpaceToDepth as SpaceToDepth,
    SparseAdd as SparseAdd, SparseAddmm as SparseAddmm, SparseApplyAdadelta as SparseApplyAdadelta,
    SparseApplyAdagrad as SparseApplyAdagrad, SparseApplyAdagradV2 as SparseApplyAdagradV2,
    SparseApplyFtrl as SparseApplyFtrl, SparseApplyFtrlV2 as SparseApplyFtrlV2,
    SparseApplyProximalAdagrad as SparseApplyProximalAdagrad, SparseApplyRMSProp as SparseApplyRMSProp,
    SparseConcat as SparseConcat, SparseCountSparseOutput as SparseCountSparseOutput,
    SparseDenseCwiseAdd as SparseDenseCwiseAdd, SparseDenseCwiseDiv as SparseDenseCwiseDiv,
    SparseDenseCwiseMul as SparseDenseCwiseMul, SparseFillEmptyRows as SparseFillEmptyRows,
    SparseGatherV2 as SparseGatherV2, SparseMatrixAdd as SparseMatrixAdd,
    SparseMatrixMatMul as SparseMatrixMatMul, SparseMatrixNNZ as SparseMatrixNNZ,
    SparseMatrixSoftmax as SparseMatrixSoftmax, SparseMatrixTranspose as SparseMatrixTranspose,
    SparseReorder as SparseReorder, SparseReshape as SparseReshape,
    SparseSegmentMeanGrad as SparseSegmentMeanGrad,
    SparseSegmentMeanWithNumSegments as SparseSegmentMeanWithNumSegments,
    SparseSegmentSqrtN as SparseSegmentSqrtN,
    SparseSegmentSqrtNWithNumSegments as SparseSegmentSqrtNWithNumSegments,
    SparseSegmentSum as SparseSegmentSum,
    SparseSegmentSumWithNumSegments as SparseSegmentSumWithNumSegments, SparseSlice as SparseSlice,
    SparseSliceGrad as SparseSliceGrad, SparseSoftmax as SparseSoftmax,
    SparseSoftmaxCrossEntropyWithLogits as SparseSoftmaxCrossEntropyWithLogits,
    SparseSoftmaxCrossEntropyWithLogitsV2 as SparseSoftmaxCrossEntropyWithLogitsV2,
    SparseSparseMaximum as SparseSparseMaximum, SparseSparseMinimum as SparseSparseMinimum,
    SparseTensorDenseAdd as SparseTensorDenseAdd, SparseTensorDenseMatmul as SparseTensorDenseMatmul,
    SparseTensorToCSRSparseMatrix as SparseTensorToCSRSparseMatrix, SparseToDense as SparseToDense,
    SparseToDenseV2 as SparseToDenseV2, Split as Split, SplitV as SplitV, Sqrt as Sqrt,
    SqrtGrad as SqrtGrad, Square as Square, SquareSumAll as SquareSumAll,
    SquaredDifference as SquaredDifference, Squeeze as Squeeze, Stack as Stack,
    StandardLaplace as StandardLaplace, StandardNormal as StandardNormal, StopGradient as StopGradient,
    StridedSlice as StridedSlice, StridedSliceGrad as StridedSliceGrad, Sub as Sub,
    SubAndFilter as SubAndFilter, Svd as Svd, Tan as Tan, Tanh as Tanh, TanhGrad as TanhGrad,
    TensorCopySlices as TensorCopySlices, TensorDump as TensorDump, TensorScatterAdd as TensorScatterAdd,
    TensorScatterDiv as TensorScatterDiv, TensorScatterElements as TensorScatterElements,
    TensorScatterMax as TensorScatterMax, TensorScatterMin as TensorScatterMin,
    TensorScatterMul as TensorScatterMul, TensorScatterSub as TensorScatterSub,
    TensorScatterUpdate as TensorScatterUpdate, TensorShape as TensorShape, TensorSummary as TensorSummary,
    TensorToList as TensorToList, TensorToTuple as TensorToTuple, Tile as Tile, TopK as TopK,
    Trace as Trace, Transpose as Transpose, TransposeExtView as TransposeExtView,
    TransposeView as TransposeView, TridiagonalMatMul as TridiagonalMatMul, Tril as Tril,
    TrilIndices as TrilIndices, TripletMarginLoss as TripletMarginLoss, Triu as Triu,
    TriuIndices as TriuIndices, Trunc as Trunc, TruncateDiv as TruncateDiv, TruncateMod as TruncateMod,
    TruncatedNormal as TruncatedNormal, TupleToArray as TupleToArray, TupleToList as TupleToList,
    TupleToTensor as TupleToTensor, Uniform as Uniform, UniformCandidateSampler as UniformCandidateSampler,
    UniformInt as UniformInt, UniformReal as UniformReal, Unique as Unique,
    UniqueConsecutive as UniqueConsecutive, UniqueWithPad as UniqueWithPad, Unpack as Unpack,
    UnravelIndex as UnravelIndex, UnsortedSegmentMax as UnsortedSegmentMax,
    UnsortedSegmentMin as UnsortedSegmentMin, UnsortedSegmentProd as UnsortedSegmentProd,
    UnsortedSegmentSum as UnsortedSegmentSum, Unstack as Unstack, UpdateCache as UpdateCache,
    UpdateState as UpdateState, UpperBound as UpperBound, UpsampleNearest3D as UpsampleNearest3D,
    UpsampleNearest3DGrad as UpsampleNearest3DGrad, UpsampleTrilinear3D as UpsampleTrilinear3D,
    UpsampleTrilinear3DGrad as UpsampleTrilinear3DGrad, Xdivy as Xdivy, Xlogy as Xlogy, Zeros as Zeros,
    ZerosLike as ZerosLike, Zeta as Zeta, vm_impl_registry as vm_impl_registry,
)
from mycelia.ops.primitive import (
    Primitive as Primitive, PrimitiveWithCheck as PrimitiveWithCheck,
    PrimitiveWithInfer as PrimitiveWithInfer, constexpr as constexpr, get_vm_impl_fn as get_vm_impl_fn,
    prim_arg_register as prim_arg_register, prim_attr_register as prim_attr_register,
)
from mycelia.ops.primitives.comm_ops import ReduceOp as ReduceOp
from mycelia.ops.primitives.custom_ops import Custom as Custom, CustomOpBuilder as CustomOpBuilder
from mycelia.ops.primitives.define import Operation as _Operation
from mycelia.ops.primitives.effect_ops import (
    HookBackward as HookBackward, InsertGradientOf as InsertGradientOf,
)
from mycelia.ops.primitives.python_ops import Morph as Morph, PyFunc as PyFunc
from mycelia.ops.sequences import (
    array_to_scalar as array_to_scalar,
    is_dynamic_sequence_element_unknown as is_dynamic_sequence_element_unknown,
    is_sequence_value_unknown as is_sequence_value_unknown, tail as tail,
)
from operator import (
    add as _add, floordiv as _floordiv, mod as _mod, mul as _mul, sub as _sub, truediv as _truediv,
)
from typing import Any as Any, Literal as Literal

__all__ = [
    "ModuleType", "primitive", "kernel", "ms_kernel", "op_info_register", "AiCPURegOp", "AkgAscendRegOp",
    "AkgCpuRegOp", "AkgGpuRegOp", "CpuRegOp", "CustomRegOp", "DataType", "TBERegOp", "custom_info_register",
    "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "constexpr", "get_vm_impl_fn",
    "prim_arg_register", "prim_attr_register", "vm_impl_registry", "flatten", "ravel", "transpose",
    "permute", "swapaxes", "swapdims", "movedim", "moveaxis", "t", "flip", "reverse", "fliplr", "flipud",
    "rot90", "roll", "batch_to_space_nd", "col2im", "padding", "pdist", "reverse_sequence",
    "space_to_batch_nd", "full", "zeros", "ones", "fill", "full_like", "zeros_like", "ones_like", "fills",
    "empty", "empty_like", "eye", "arange", "range", "linspace", "logspace", "vander", "sequence_mask",
    "gather", "index_select", "take", "embedding", "gather_d", "gather_elements", "gather_nd", "meshgrid",
    "cartesian_prod", "combinations", "is_tensor", "cat", "concat", "stack", "hstack", "vstack",
    "row_stack", "dstack", "column_stack", "block_diag", "split", "chunk", "tensor_split", "hsplit",
    "vsplit", "dsplit", "unstack", "unbind", "where", "select", "masked_fill", "masked_select",
    "masked_scatter", "nonzero", "argwhere", "one_hot", "sort", "argsort", "msort", "topk", "top_k",
    "kthvalue", "intopk", "searchsorted", "bucketize", "unique", "unique_consecutive", "pad", "mirror_pad",
    "tile", "repeat_interleave", "repeat_elements", "index_add", "inplace_index_add", "index_fill",
    "inplace_update", "inplace_add", "inplace_sub", "tensor_scatter_update", "tensor_scatter_add",
    "tensor_scatter_sub", "tensor_scatter_mul", "tensor_scatter_div", "tensor_scatter_max",
    "tensor_scatter_min", "tensor_scatter_elements", "scatter_nd", "scatter_nd_update", "scatter_nd_add",
    "scatter_nd_sub", "scatter_nd_mul", "scatter_nd_div", "scatter_nd_max", "scatter_nd_min",
    "scatter_update", "scatter_add", "scatter_sub", "scatter_mul", "scatter_div", "scatter_max",
    "scatter_min", "scatter", "reshape", "view", "view_as", "squeeze", "expand_dims", "unsqueeze",
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "expand", "expand_as", "broadcast_shapes",
    "shape", "rank", "size", "numel", "dyn_shape", "strided_slice", "narrow", "slice", "select_scatter",
    "slice_scatter", "tril", "triu", "diagonal", "diag_embed", "diagflat", "diag", "diagonal_scatter",
    "tril_indices", "triu_indices", "stop_gradient", "assign", "assign_add", "assign_sub", "celu", "elu",
    "glu", "logsigmoid", "mish", "selu", "sigmoid", "silu", "softplus", "softsign", "swiglu", "tanhshrink",
    "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0",
    "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "invert", "cast", "type_as", "clamp",
    "clip", "clip_by_norm", "clip_by_value", "fmax", "fmin", "maximum", "minimum", "nan_to_num",
    "accumulate_n", "addcdiv", "addcmul", "addn", "heaviside", "lerp", "nextafter", "eq", "equal", "ge",
    "greater", "greater_equal", "gt", "isclose", "le", "less", "less_equal", "lt", "ne", "not_equal",
    "tensor_ge", "tensor_gt", "tensor_le", "tensor_lt", "angle", "conj", "imag", "polar", "real",
    "view_as_real", "digamma", "igamma", "igammac", "lgamma", "mvlgamma", "polygamma", "zeta", "fast_gelu",
    "gelu", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "xdivy", "xlogy", "isfinite",
    "isinf", "isnan", "isneginf", "isposinf", "isreal", "logical_and", "logical_not", "logical_or",
    "logical_xor", "signbit", "abs", "absolute", "add", "copysign", "div", "divide", "inv", "mul",
    "multiply", "neg", "negative", "positive", "reciprocal", "sgn", "sign", "square", "sub", "subtract",
    "tanh", "tensor_add", "tensor_div", "tensor_mul", "tensor_sub", "true_divide", "exp", "exp2", "expm1",
    "float_power", "float_power_ext", "hypot", "ldexp", "pow", "pows", "rsqrt", "sqrt", "tensor_exp",
    "tensor_expm1", "tensor_pow", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "prelu", "relu", "relu6", "softshrink", "threshold", "ceil", "floor", "floor_div", "floor_divide",
    "floor_mod", "floordiv", "floormod", "fmod", "frac", "remainder", "round", "tensor_floordiv",
    "tensor_mod", "trunc", "truncate_div", "truncate_mod", "erf", "erfc", "erfinv", "gcd", "i0", "lcm",
    "logit", "population_count", "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "deg2rad", "rad2deg",
    "sin", "sinc", "sinh", "tan", "identity", "depend", "bounding_box_decode", "bounding_box_encode",
    "check_valid", "iou", "channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle", "upsample",
    "affine_grid", "crop_and_resize", "deformable_conv2d", "grid_sample", "adjoint", "batch_dot", "cross",
    "dot", "ger", "inner", "kron", "outer", "tensor_dot", "trace", "vecdot", "cholesky", "cholesky_inverse",
    "cholesky_solve", "cond", "eig", "eigvals", "matrix_exp", "pinv", "svd", "det", "inverse",
    "log_matrix_determinant", "logdet", "matrix_determinant", "matrix_power", "matrix_solve", "slogdet",
    "matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag", "cdist", "renorm", "einsum",
    "geqrf", "lstsq", "orgqr", "ormqr", "qr", "lu_solve", "lu_unpack", "bias_add", "dense", "matmul",
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "mm", "mv", "adaptive_avg_pool1d",
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "batch_norm",
    "log_uniform_candidate_sampler", "uniform_candidate_sampler", "conv1d", "conv2d", "conv3d",
    "conv3d_transpose", "conv_transpose2d", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "cross_entropy", "nll_loss", "ctc_greedy_decoder", "ctc_loss", "fractional_max_pool2d",
    "fractional_max_pool3d", "group_norm", "cosine_embedding_loss", "cosine_similarity",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss",
    "mse_loss", "multi_margin_loss", "multilabel_soft_margin_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss", "lrn", "max_unpool1d", "max_unpool2d", "max_unpool3d", "add_layer_norm",
    "add_rms_norm", "layer_norm", "rms_norm", "max_pool2d", "max_pool3d", "fold", "unfold",
    "approximate_equal", "augassign_add", "augassign_div", "augassign_floordiv", "augassign_mod",
    "augassign_mul", "augassign_sub", "bidense", "clamp_", "coalesce", "deepcopy", "dtype", "eps",
    "erfinv_", "is_complex", "is_floating_point", "is_nonzero", "mixed_precision_cast", "move_to",
    "multilabel_margin_loss", "print_", "shape_", "shape_mul", "soft_shrink", "tanh_", "tensor_slice",
    "unique_with_pad", "bernoulli", "choice_with_mask", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "exponential_", "gamma", "gumbel_softmax", "laplace", "multinomial", "multinomial_with_replacement",
    "normal", "normal_", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "random_", "random_categorical", "random_gamma", "random_poisson", "randperm", "rrelu", "shuffle",
    "standard_laplace", "standard_normal", "uniform", "uniform_", "amax", "amin", "reduce_max",
    "reduce_min", "aminmax", "argmax", "argmin", "max", "min", "cov", "dist", "logsumexp", "matrix_norm",
    "nanmean", "nansum", "norm", "std", "std_mean", "var", "var_mean", "vector_norm", "mean", "prod",
    "reduce_mean", "reduce_sum", "sum", "cummax", "cummin", "cumprod", "cumsum", "diff", "logcumsumexp",
    "trapz", "log_softmax", "softmax", "softmin", "bincount", "histc", "median", "nanmedian", "nanquantile",
    "quantile", "all", "any", "count_nonzero", "sparse_segment_mean", "unsorted_segment_max",
    "unsorted_segment_min", "unsorted_segment_prod", "unsorted_segment_sum", "tuple_getitem",
    "list_getitem", "dict_getitem", "tuple_setitem", "list_setitem", "dict_setitem", "tuple_len",
    "list_len", "tuple_equal", "list_equal", "string_eq", "bool_eq", "scalar_ne", "tuple_reversed",
    "tuple_div", "make_range", "make_tuple", "make_list", "make_dict", "make_slice", "string_concat",
    "bool_not", "bool_or", "bool_and", "is_", "is_not", "in_dict", "not_in_dict", "broadcast_gradient_args",
    "reduced_shape", "switch", "isconstant", "hastype", "is_tensor_bool_cond", "typeof", "scalar_add",
    "scalar_sub", "scalar_mul", "scalar_div", "scalar_floordiv", "scalar_mod", "scalar_pow", "scalar_gt",
    "scalar_ge", "scalar_lt", "scalar_le", "scalar_eq", "scalar_max", "scalar_min", "scalar_uadd",
    "scalar_usub", "scalar_log", "scalar_cast", "scalar_to_array", "scalar_to_tensor", "tuple_to_array",
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn",
    "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq",
    "rfftn", "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window", "stft",
    "composite", "primitives", "operations", "get_grad", "grad", "value_and_grad", "jvp", "vjp",
    "clip_by_global_norm", "jacfwd", "jacrev", "linearize", "derivative", "jet", "vmap", "ForiLoop",
    "GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "Partial", "Scan", "WhileLoop", "add_flags",
    "env_get", "hyper_add", "partial", "adaptive_avg_pool2d_ext", "baddbmm_ext", "bernoulli_ext",
    "diff_ext", "einsum_ext", "isnan_ext", "mse_loss_ext", "all_gather", "all_gather_into_tensor",
    "all_gather_into_tensor_uneven", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group",
    "gather_object", "get_backend", "get_global_rank", "get_group_rank", "get_process_group_ranks",
    "get_rank", "get_world_size", "init_process_group", "irecv", "is_available", "is_initialized", "isend",
    "new_group", "recv", "recv_object_list", "reduce_scatter", "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven", "scatter_object_list", "send", "send_object_list",
    "set_comm_ops_inplace", "gather_into_tensor", "scatter_tensor", "rotated_iou", "all_gather_matmul",
    "all_to_all_v_c", "flash_attention_score", "fused_infer_attention_score", "incre_flash_attention",
    "lightning_indexer", "matmul_reduce_scatter", "moe_distribute_combine", "moe_distribute_dispatch",
    "moe_init_routing_v2", "multi_scale_deformable_attn_function", "nsa_compress", "nsa_compress_attention",
    "nsa_select_attention", "prompt_flash_attention", "ring_attention_update", "sparse_flash_attention",
    "speed_fusion_attention", "array_to_scalar", "coo_tensor_get_dense_shape", "coo_tensor_get_indices",
    "coo_tensor_get_values", "csr_tensor_get_dense_shape", "csr_tensor_get_indices",
    "csr_tensor_get_indptr", "csr_tensor_get_values", "is_dynamic_sequence_element_unknown",
    "is_sequence_shape_unknown", "is_sequence_value_unknown", "make_coo_tensor", "make_csr_tensor",
    "make_row_tensor", "make_row_tensor_inner", "make_sparse_tensor", "row_tensor_add",
    "row_tensor_get_dense_shape", "row_tensor_get_indices", "row_tensor_get_values", "tail", "tensor_muls",
    "tensor_range", "bernoulli_", "inplace_sigmoid", "put_", "reshape_", "stop_gradient_", "zero_",
    "moe_token_permute", "moe_token_unpermute", "rotary_position_embedding", "dense_to_sparse_coo",
    "dense_to_sparse_csr", "coo_abs", "csr_abs", "coo_acos", "csr_acos", "coo_acosh", "csr_acosh",
    "coo_asin", "csr_asin", "coo_asinh", "csr_asinh", "coo_atan", "csr_atan", "coo_atanh", "csr_atanh",
    "coo_ceil", "csr_ceil", "coo_cos", "csr_cos", "coo_cosh", "csr_cosh", "coo_exp", "csr_exp", "coo_expm1",
    "csr_expm1", "coo_floor", "csr_floor", "coo_inv", "csr_inv", "coo_isfinite", "csr_isfinite",
    "coo_isinf", "csr_isinf", "coo_isnan", "csr_isnan", "coo_log", "csr_log", "coo_log1p", "csr_log1p",
    "coo_neg", "csr_neg", "coo_relu", "csr_relu", "coo_relu6", "csr_relu6", "coo_round", "csr_round",
    "coo_sigmoid", "csr_sigmoid", "coo_sin", "csr_sin", "coo_sinh", "csr_sinh", "coo_softsign",
    "csr_softsign", "coo_sqrt", "csr_sqrt", "coo_square", "csr_square", "coo_tan", "csr_tan", "coo_tanh",
    "csr_tanh", "coo2csr", "csr2coo", "csr_gather", "csr_mul", "csr_div", "csr_mv", "csr_mm",
    "csr_reduce_sum", "csr_to_coo", "csr_to_dense", "csr_add", "csr_softmax", "coo_add", "coo_concat",
    "ACos", "ACosGrad", "Abs", "AbsGrad", "AccumulateNV2", "Acosh", "AcoshGrad", "Adam",
    "AdamNoUpdateParam", "AdamWeightDecay", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D", "Add", "AddN", "AddV2", "Addcdiv", "Addcmul", "AdjustHue", "AdjustSaturation",
    "AffineGrid", "AllGather", "AllGatherV", "AllReduce", "AlltoAll", "AlltoAllV", "AlltoAllVC", "Angle",
    "ApplyAdaMax", "ApplyAdadelta", "ApplyAdagrad", "ApplyAdagradDA", "ApplyAdagradV2",
    "ApplyAdamWithAmsgrad", "ApplyAdamWithAmsgradV2", "ApplyAddSign", "ApplyCenteredRMSProp", "ApplyFtrl",
    "ApplyGradientDescent", "ApplyKerasMomentum", "ApplyMomentum", "ApplyPowerSign", "ApplyProximalAdagrad",
    "ApplyProximalGradientDescent", "ApplyRMSProp", "ApplyRotaryPosEmb", "ApproximateEqual",
    "ArgMaxWithValue", "ArgMinWithValue", "Argmax", "Argmin", "Asin", "AsinGrad", "Asinh", "AsinhGrad",
    "Assert", "Assign", "AssignAdd", "AssignSub", "Atan", "Atan2", "Atan2Grad", "AtanGrad", "Atanh",
    "AvgPool", "AvgPool3D", "AvgPoolGrad", "BCEWithLogitsLoss", "Barrier", "BartlettWindow",
    "BasicLSTMCell", "BatchISendIRecv", "BatchMatMul", "BatchNorm", "BatchNormGrad", "BatchToSpace",
    "BatchToSpaceND", "BatchToSpaceNDV2", "Bernoulli", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
    "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1",
    "Betainc", "BiasAdd", "BiasAddGrad", "BinaryCrossEntropy", "BinaryCrossEntropyGrad", "Bincount",
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BlackmanWindow", "BoundingBoxDecode", "BoundingBoxEncode",
    "Broadcast", "BroadcastTo", "Bucketize", "CSRSparseMatrixToDense", "CSRSparseMatrixToSparseTensor",
    "CTCGreedyDecoder", "CTCLoss", "CTCLossV2", "Cast", "Cauchy", "Cdist", "CdistGrad", "CeLU", "Ceil",
    "ChannelShuffle", "CheckNumerics", "CheckValid", "Cholesky", "CholeskyGrad", "CholeskyInverse",
    "CholeskySolve", "ClipByNorm", "Coalesce", "Col2Im", "CollectiveGather", "CollectiveScatter",
    "CombinedNonMaxSuppression", "CompareAndBitpack", "Complex", "ComplexAbs", "ComputeAccidentalHits",
    "Concat", "ConcatOffset", "ConcatOffsetV1", "ConfusionMatrix", "Conj", "ConjugateTranspose", "Conv2D",
    "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv2DTranspose", "Conv3D", "Conv3DBackpropFilter",
    "Conv3DBackpropInput", "Conv3DTranspose", "ConvertToDynamic", "CopyWithSlice", "Cos", "Cosh",
    "CountNonZero", "CropAndResize", "Cross", "CumProd", "CumSum", "Cummax", "Cummin",
    "CumulativeLogsumexp", "Custom", "CustomOpBuilder", "DType", "DataFormatDimMap", "DataFormatVecPermute",
    "DeformableOffsets", "DeformableOffsetsGrad", "Dense", "DenseToCSRSparseMatrix", "Depend",
    "DepthToSpace", "DepthwiseConv2dNative", "Diag", "DiagPart", "Digamma", "Dilation2D", "Div", "DivNoNan",
    "Dropout", "Dropout2D", "Dropout3D", "DropoutDoMask", "DropoutGenMask", "DropoutGrad", "DtypeToEnum",
    "DumpGradient", "DynamicGRUV2", "DynamicRNN", "DynamicShape", "EditDistance", "Eig", "Einsum", "Elu",
    "EluGrad", "EmbeddingLookup", "Eps", "Equal", "EqualCount", "Erf", "Erfc", "Erfinv", "EuclideanNorm",
    "Exp", "Expand", "ExpandDims", "Expm1", "ExtractGlimpse", "ExtractImagePatches", "ExtractVolumePatches",
    "Eye", "FFTWithSize", "FastGeLU", "FastGeLUGrad", "FastGelu", "Fill", "FillDiagonal", "FillV2", "Fills",
    "Flatten", "FlattenGrad", "FloatStatus", "Floor", "FloorDiv", "FloorMod", "Fmax", "Fmin",
    "FractionalAvgPool", "FractionalAvgPoolGrad", "FractionalMaxPool",
    "FractionalMaxPool3DGradWithFixedKsize", "FractionalMaxPool3DWithFixedKsize", "FractionalMaxPoolGrad",
    "FractionalMaxPoolGradWithFixedKsize", "FractionalMaxPoolWithFixedKsize", "FusedAdaFactor",
    "FusedAdaFactorWithGlobalNorm", "FusedCastAdamWeightDecay", "FusedSparseAdam", "FusedSparseFtrl",
    "FusedSparseLazyAdam", "FusedSparseProximalAdagrad", "FusedWeightScaleApplyMomentum", "GLU", "GRUV2",
    "GRUV2Grad", "Gamma", "Gather", "GatherD", "GatherNd", "GatherV2", "Gcd", "GeLU", "GeLUGrad", "Gelu",
    "Geqrf", "Ger", "GluGrad", "Greater", "GreaterEqual", "GridSampler2D", "GridSampler2DGrad",
    "GridSampler3D", "GridSampler3DGrad", "HSVToRGB", "HShrink", "HShrinkGrad", "HSigmoid", "HSigmoidGrad",
    "HSwish", "HSwishGrad", "HammingWindow", "Heaviside", "Histogram", "HistogramFixedWidth",
    "HistogramSummary", "HookBackward", "Hypot", "IOU", "Identity", "IdentityN", "Igamma", "Igammac",
    "Im2Col", "Imag", "ImageSummary", "InSequence", "InTopK", "IndexAdd", "IndexFill", "IndexPut",
    "InplaceAdd", "InplaceIndexAdd", "InplaceSub", "InplaceUpdate", "InplaceUpdateV2", "InsertGradientOf",
    "Inv", "InvGrad", "Invert", "InvertPermutation", "IsClose", "IsFinite", "IsInf", "IsInstance", "IsNan",
    "IsSubClass", "KLDivLoss", "KLDivLossGrad", "L2Loss", "L2Normalize", "L2NormalizeGrad", "LARSUpdate",
    "LRN", "LRNGrad", "LSTM", "LayerNorm", "LayerNormGrad", "LayerNormGradGrad", "Lcm", "LeftShift", "Lerp",
    "LerpScalar", "Less", "LessEqual", "Lgamma", "LinSpace", "ListDiff", "ListToTensor", "ListToTuple",
    "Load", "Log", "Log1p", "LogMatrixDeterminant", "LogNormalReverse", "LogSoftmax", "LogSoftmaxExt",
    "LogSoftmaxGrad", "LogSpace", "LogUniformCandidateSampler", "LogicalAnd", "LogicalNot", "LogicalOr",
    "LogicalXor", "Logit", "LogitGrad", "LowerBound", "LpNorm", "Lstsq", "LuSolve", "LuUnpack",
    "MapUniform", "MaskedFill", "MaskedScatter", "MaskedSelect", "MatMul", "MatrixBandPart",
    "MatrixDeterminant", "MatrixDiag", "MatrixDiagPart", "MatrixDiagPartV3", "MatrixDiagV3", "MatrixExp",
    "MatrixInverse", "MatrixLogarithm", "MatrixPower", "MatrixSetDiag", "MatrixSetDiagV3", "MatrixSolve",
    "MatrixSolveLs", "MatrixTriangularSolve", "MaxPool", "MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad",
    "MaxPool3DWithArgmax", "MaxPoolGrad", "MaxPoolGradGrad", "MaxPoolGradGradWithArgmax",
    "MaxPoolGradWithArgmax", "MaxPoolGradWithArgmaxV2", "MaxPoolWithArgmax", "MaxPoolWithArgmaxV2",
    "MaxUnpool2D", "MaxUnpool3D", "Maximum", "MaximumGrad", "MaximumGradGrad", "Median", "MedianGrad",
    "Meshgrid", "Minimum", "MinimumGrad", "MinimumGradGrad", "MirrorPad", "Mish", "Mod", "Morph", "MoveTo",
    "Mul", "MulNoNan", "MultiMarginLoss", "MultilabelMarginLoss", "Multinomial",
    "MultinomialWithReplacement", "Mvlgamma", "NLLLoss", "NLLLossGrad", "NMSWithMask",
    "NPUAllocFloatStatus", "NPUClearFloatStatus", "NPUGetFloatStatus", "NanToNum", "Neg",
    "NeighborExchange", "NeighborExchangeV2", "NextAfter", "NoRepeatNGram", "NonDeterministicInts",
    "NonMaxSuppressionV3", "NonMaxSuppressionWithOverlaps", "NonZero", "NotEqual", "NthElement",
    "NuclearNorm", "OneHot", "Ones", "OnesLike", "Orgqr", "Ormqr", "P2POp", "PReLU", "PReLUGrad",
    "PSROIPooling", "PSROIPoolingGrad", "Pack", "Pad", "PadAndShift", "PadV3", "PadV3Grad", "Padding",
    "PagedAttention", "PagedAttentionMask", "ParallelConcat", "ParameterizedTruncatedNormal", "Pdist",
    "PdistGrad", "Poisson", "Polar", "Polygamma", "PopulationCount", "Pow", "Print", "PyFunc", "Qr",
    "Quantile", "RGBToHSV", "RNNTLoss", "ROIAlign", "ROIAlignGrad", "RaggedRange", "RaggedTensorToSparse",
    "RandomCategorical", "RandomChoiceWithMask", "RandomGamma", "RandomPoisson", "RandomShuffle",
    "Randperm", "RandpermV2", "Range", "Rank", "ReLU", "ReLU6", "ReLU6Grad", "Real", "RealDiv", "Receive",
    "Reciprocal", "ReciprocalGrad", "Reduce", "ReduceAll", "ReduceAny", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceOp", "ReduceProd", "ReduceScatter", "ReduceScatterV", "ReduceStd", "ReduceSum",
    "ReluGrad", "Renorm", "Reshape", "ReshapeAndCache", "Reshard", "ResizeArea", "ResizeBicubic",
    "ResizeBicubicGrad", "ResizeBilinearGrad", "ResizeBilinearV2", "ResizeLinear1D",
    "ResizeNearestNeighbor", "ResizeNearestNeighborGrad", "ResizeNearestNeighborV2",
    "ResizeNearestNeighborV2Grad", "Reusing", "ReverseSequence", "ReverseV2", "RightShift", "Rint",
    "RmsNorm", "Roll", "Round", "Rsqrt", "RsqrtGrad", "SGD", "STFT", "SameTypeShape",
    "SampleDistortedBoundingBoxV2", "ScalarCast", "ScalarSummary", "ScalarToArray", "ScalarToTensor",
    "ScaleAndTranslate", "ScatterAdd", "ScatterAddWithAxis", "ScatterDiv", "ScatterMax", "ScatterMin",
    "ScatterMul", "ScatterNd", "ScatterNdAdd", "ScatterNdDiv", "ScatterNdMax", "ScatterNdMin",
    "ScatterNdMul", "ScatterNdSub", "ScatterNdUpdate", "ScatterNonAliasingAdd", "ScatterSub",
    "ScatterUpdate", "SeLU", "SeLUGrad", "SearchSorted", "SegmentMax", "SegmentMean", "SegmentMin",
    "SegmentProd", "SegmentSum", "Select", "Send", "SequenceAdd", "SequenceAddN", "SequenceConcat",
    "SequenceCount", "SequenceIndex", "SequenceMax", "SequenceMin", "SequenceMul", "SequenceSlice",
    "SequenceStack", "SequenceUnstack", "SequenceZerosLike", "SetSize", "Shape", "Shift", "SiLUGrad",
    "Sigmoid", "SigmoidCrossEntropyWithLogits", "SigmoidCrossEntropyWithLogitsGrad", "SigmoidGrad", "Sign",
    "Sin", "Sinc", "Sinh", "Size", "Slice", "SliceGrad", "SmoothL1Loss", "SmoothL1LossGrad",
    "SoftMarginLoss", "SoftShrink", "SoftShrinkGrad", "Softmax", "SoftmaxBackward",
    "SoftmaxCrossEntropyWithLogits", "SoftmaxGrad", "Softplus", "SoftplusGrad", "Softsign", "Sort",
    "SpaceToBatch", "SpaceToBatchND", "SpaceToDepth", "SparseAdd", "SparseAddmm", "SparseApplyAdadelta",
    "SparseApplyAdagrad", "SparseApplyAdagradV2", "SparseApplyFtrl", "SparseApplyFtrlV2",
    "SparseApplyProximalAdagrad", "SparseApplyRMSProp", "SparseConcat", "SparseCountSparseOutput",
    "SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseDenseCwiseMul", "SparseFillEmptyRows",
    "SparseGatherV2", "SparseMatrixAdd", "SparseMatrixMatMul", "SparseMatrixNNZ", "SparseMatrixSoftmax",
    "SparseMatrixTranspose", "SparseReorder", "SparseReshape", "SparseSegmentMeanGrad",
    "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments",
    "SparseSegmentSum", "SparseSegmentSumWithNumSegments", "SparseSlice", "SparseSliceGrad",
    "SparseSoftmax", "SparseSoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogitsV2",
    "SparseSparseMaximum", "SparseSparseMinimum", "SparseTensorDenseAdd", "SparseTensorDenseMatmul",
    "SparseTensorToCSRSparseMatrix", "SparseToDense", "SparseToDenseV2", "Split", "SplitV", "Sqrt",
    "SqrtGrad", "Square", "SquareSumAll", "SquaredDifference", "Squeeze", "Stack", "StandardLaplace",
    "StandardNormal", "StopGradient", "StridedSlice", "StridedSliceGrad", "Sub", "SubAndFilter", "Svd",
    "TCPStore", "Tan", "Tanh", "TanhGrad", "TensorAdd", "TensorCopySlices", "TensorDump",
    "TensorScatterAdd", "TensorScatterDiv", "TensorScatterElements", "TensorScatterMax", "TensorScatterMin",
    "TensorScatterMul", "TensorScatterSub", "TensorScatterUpdate", "TensorShape", "TensorSummary",
    "TensorToList", "TensorToTuple", "Tile", "TopK", "Trace", "Transpose", "TransposeExtView",
    "TransposeView", "TridiagonalMatMul", "Tril", "TrilIndices", "TripletMarginLoss", "Triu", "TriuIndices",
    "Trunc", "TruncateDiv", "TruncateMod", "TruncatedNormal", "TupleToArray", "TupleToList",
    "TupleToTensor", "Uniform", "UniformCandidateSampler", "UniformInt", "UniformReal", "Unique",
    "UniqueConsecutive", "UniqueWithPad", "Unpack", "UnravelIndex", "UnsortedSegmentMax",
    "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum", "Unstack", "UpdateCache",
    "UpdateState", "UpperBound", "UpsampleNearest3D", "UpsampleNearest3DGrad", "UpsampleTrilinear3D",
    "UpsampleTrilinear3DGrad", "Xdivy", "Xlogy", "Zeros", "ZerosLike", "Zeta",
]


class ModuleType:
    """Create a module object."""
    def __init__(self, name, doc=None) -> None: ...

def flatten(input, order='C', *, start_dim=1, end_dim=-1) -> Tensor:
    """Merge the axes `start_dim` to `end_dim` into one; with `order` "F" all axes are reversed first."""

def ravel(input) -> Tensor:
    """All elements in one axis."""

def transpose(input: TensorLike, dims: int | Sequence[int]) -> Tensor:
    """Put the axes in the order `dims`: axis i of the result is axis ``dims[i]`` of the input."""

def permute(input, axis) -> Tensor:
    """`transpose` under its other name."""

def swapaxes(input, axis0, axis1) -> Tensor:
    """Exchange two axes."""

def swapdims(input, dim0, dim1) -> Tensor:
    """Exchange two axes."""

def movedim(x, source, destination) -> Tensor:
    """Move the axes `source` to the positions `destination`; the others keep their order."""

def moveaxis(x, source, destination) -> Tensor:
    """`movedim` under its NumPy name."""

def t(input) -> Tensor:
    """The transpose of a matrix; tensors of rank 0 and 1 as they are."""

def flip(input: TensorLike, dims: int | Sequence[int]) -> Tensor:
    """Reverse the order of the elements along `dims`."""

def reverse(x, axis) -> Tensor:
    """`flip` under its older name."""

def fliplr(input) -> Tensor:
    """Reverse the second axis."""

def flipud(input) -> Tensor:
    """Reverse the first axis."""

def rot90(input, k, dims) -> Tensor:
    """Rotate by ``k * 90`` degrees in the plane of the two axes `dims`, from the first towards the second."""

def roll(input, shifts, dims=None) -> Tensor:
    """Shift the elements along `dims` by `shifts` places, around the end; without `dims` in row-major order."""

def batch_to_space_nd(input_x, block_shape, crops) -> Tensor:
    """Undoes `space_to_batch_nd`: batches become blocks of the last axes, `crops` is cut from their ends."""

def col2im(input_x, output_size, kernel_size, dilation, padding_value, stride) -> Tensor:
    """Sum of columns at the places from which sliding windows took them."""

def padding(x, pad_dim_size=8) -> Tensor:
    """The last axis widened to `pad_dim_size` with zeros. Shapes: [.., 1] -> [.., pad_dim_size]."""

def pdist(input, p=2.0) -> Tensor:
    """`p`-norm distances of all pairs of rows, in the order (0, 1), (0, 2), .., (1, 2), .."""

def reverse_sequence(x, seq_lengths, seq_dim, batch_dim=0) -> Tensor:
    """The first ``seq_lengths[i]`` elements along `seq_dim` in reverse, for each i along `batch_dim`."""

def space_to_batch_nd(input_x, block_size, paddings) -> Tensor:
    """Axes after the first m cut into blocks that become batches; `paddings` widens them first."""

def full(size, fill_value, *, dtype=None) -> Tensor:
    """A tensor of shape `size` with `fill_value` everywhere."""

def zeros(size, dtype=None) -> Tensor:
    """A tensor of shape `size` with 0 everywhere, float32 unless `dtype` says otherwise."""

def ones(shape, dtype=None) -> Tensor:
    """A tensor of the given shape with 1 everywhere, float32 unless `dtype` says otherwise."""

def fill(type, shape, value) -> Tensor:
    """A tensor of dtype `type` and the given shape with `value` everywhere."""

def full_like(input, fill_value, *, dtype=None) -> Tensor:
    """A tensor of the shape and dtype of `input` (or `dtype`) with `fill_value` everywhere."""

def zeros_like(input, *, dtype=None) -> Tensor:
    """A tensor of the shape and dtype of `input` (or `dtype`) with 0 everywhere."""

def ones_like(input, *, dtype=None) -> Tensor:
    """A tensor of the shape and dtype of `input` (or `dtype`) with 1 everywhere."""

def fills(x, value) -> Tensor:
    """A tensor of the shape and dtype of `x` with `value` everywhere."""

def empty(*size, dtype=None, device=None) -> Tensor:
    """A tensor of shape `size` whose content is undefined, float32 unless `dtype` says otherwise."""

def empty_like(input, *, dtype=None, device=None) -> Tensor:
    """A tensor of the shape and dtype of `input` (or `dtype`) whose content is undefined."""

def eye(n, m=None, dtype=None) -> Tensor:
    """A matrix of `n` rows and `m` (by default n) columns with 1 on its diagonal and 0 elsewhere."""

def arange(start=0, end=None, step=1, *, dtype=None) -> Tensor:
    """The numbers from `start` to `end` (not included) in steps of `step`; with one argument from 0 to it."""

def range(start, end, step, maxlen=1000000) -> Tensor:
    """The numbers from `start` to `end` (not included) in steps of `step`, at most `maxlen`."""

def linspace(start, end, steps) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, at equal distances."""

def logspace(start, end, steps, base=10, *, dtype=...) -> Tensor:
    """`steps` powers of `base`, the exponents from `start` to `end` at equal distances."""

def vander(x, N=None) -> Tensor:
    """The matrix whose columns are the powers of the vector `x`, from ``N - 1`` down to 0."""

def sequence_mask(lengths, maxlen=None) -> Tensor:
    """Masks that are true for the first `lengths` places."""

def gather(input_params: TensorLike, input_indices: TensorLike, axis: int, batch_dims: int = 0) -> Tensor:
    """The slices of `input_params` along `axis` at the given indices, which count from the end where negative."""

def index_select(input, axis, index) -> Tensor:
    """The slices along `axis` at the positions `index`, a vector."""

def take(input, index) -> Tensor:
    """The elements of the flattened input at the positions `index`."""

def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False) -> Tensor:
    """The rows of the table `weight` at the positions `input`; no gradient flows into row `padding_idx`."""

def gather_d(x, dim, index) -> Tensor:
    """Elements picked along axis `dim`: ``y[i, j] = x[i, index[i, j]]`` for dim 1."""

def gather_elements(input, dim, index) -> Tensor:
    """`gather_d` under its other name."""

def gather_nd(input_x: TensorLike, indices: TensorLike) -> Tensor:
    """The slices named by the rows of `indices`: ``y[i] = x[indices[i, 0], indices[i, 1], ...]``."""

def meshgrid(*inputs, indexing='xy') -> tuple[Tensor, ...]:
    """Coordinate grids from vectors: result i holds the values of input i along its axis."""

def cartesian_prod(*inputs) -> Tensor:
    """All combinations of one element of each vector, as rows in row-major order."""

def combinations(input, r=2, with_replacement=False) -> Tensor:
    """All choices of `r` elements of a vector, in order of their positions, as rows."""

def cat(tensors, axis=0) -> Tensor:
    """Join tensors along an existing axis; different dtypes are promoted."""

def concat(tensors, axis=0) -> Tensor:
    """`cat` under its other name."""

def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis."""

def hstack(tensors) -> Tensor:
    """Join along the second axis (vectors: along the first)."""

def vstack(inputs) -> Tensor:
    """Join along the first axis; vectors become rows."""

def row_stack(tensors) -> Tensor:
    """`vstack` under its other name."""

def dstack(tensors) -> Tensor:
    """Join along the third axis."""

def column_stack(tensors) -> Tensor:
    """Join along the second axis; vectors become columns."""

def block_diag(*inputs) -> Tensor:
    """A matrix with the inputs (matrices; vectors as rows, scalars as 1 x 1) along its diagonal, zero elsewhere."""

def unstack(input_x: TensorLike, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, which is dropped."""

def unbind(input, dim=0) -> tuple[Tensor, ...]:
    """`unstack` under its other name."""

def where(condition, input, other) -> Tensor:
    """`input` where `condition` is true, `other` elsewhere; numbers may stand for either."""

def select(condition, input, other) -> Tensor:
    """`where` under its other name."""

def masked_fill(input_x, mask, value) -> Tensor:
    """`value` where `mask` is true, `input_x` elsewhere; the value is brought to the input's dtype."""

def masked_select(input: TensorLike, mask: TensorLike) -> Tensor:
    """The elements where `mask` is true, in row-major order."""

def masked_scatter(input_x: TensorLike, mask: TensorLike, source: TensorLike) -> Tensor:
    """`input_x` with its elements where `mask` is true replaced by the first elements of `source`, in order."""

def argwhere(input) -> Tensor:
    """The positions of the elements that are not zero, one a row."""

def one_hot(indices, depth, on_value=1, off_value=0, axis=-1) -> Tensor:
    """`on_value` at the position that the index names along a new axis of size `depth`, `off_value` elsewhere."""

def sort(input_x, axis=-1, descending=False) -> tuple[Tensor, Tensor]:
    """Values in order along `axis`, and the positions they had; equal values keep their order."""

def argsort(input, axis=-1, descending=False) -> Tensor:
    """The positions that put `axis` in order; equal values keep their order."""

def msort(input) -> Tensor:
    """The values in ascending order along the first axis."""

def topk(input, k, dim=None, largest=True, sorted=True) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) values along `dim` (the last axis if None), and the positions they had."""

def top_k(input_x, k, sorted=True) -> tuple[Tensor, Tensor]:
    """The `k` largest values along the last axis, and the positions they had."""

def intopk(x1, x2, k) -> Tensor:
    """Whether the class `x2` of each row of `x1` is among its `k` largest values."""

def searchsorted(sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None) -> Tensor:
    """Where each value would be inserted into its ascending sequence: before equal elements, or behind them (`right`)."""

def bucketize(input, boundaries, *, right=False) -> Tensor:
    """The number of the interval between ascending `boundaries` in which each element lies."""

def unique(input: TensorLike) -> tuple[Tensor, Tensor]:
    """The different elements in the order of their first appearance, and for each element which of them it is."""

def tile(input: TensorLike, dims: int | Sequence[int]) -> Tensor:
    """Repeat the whole tensor ``dims[i]`` times along axis i; missing leading entries count as 1."""

def repeat_interleave(input, repeats, axis=None) -> Tensor:
    """Repeat each element along `axis` (without: of the flattened input), `repeats` times or as often as each entry says."""

def repeat_elements(x, rep, axis=0) -> Tensor:
    """Repeat each element `rep` times along `axis`."""

def index_add(x, indices, y, axis, use_lock=True, check_index_bound=True) -> Tensor:
    """`x` with the slices of `y` added along `axis` at the positions `indices`; a Parameter is updated in place."""

def inplace_index_add(var, indices, updates, axis) -> Tensor:
    """The Parameter `var` with the slices of `updates` added along `axis` at the positions `indices`; returns the new value."""

def index_fill(x, axis, index, value) -> Tensor:
    """`x` with its slices along `axis` at the positions `index` set to `value`, a number or a tensor of rank 0."""

def inplace_update(x, v, indices) -> Tensor:
    """`x` with its slices `indices` of the first axis replaced by those of `v`."""

def inplace_add(x, v, indices) -> Tensor:
    """`x` with the slices of `v` added at the positions `indices` of the first axis."""

def inplace_sub(x, v, indices) -> Tensor:
    """`x` with the slices of `v` subtracted at the positions `indices` of the first axis."""

def tensor_scatter_update(input_x, indices, updates) -> Tensor:
    """`input_x` with the slices named by the rows of `indices` replaced by `updates`."""

def tensor_scatter_add(input_x, indices, updates) -> Tensor:
    """`input_x` with the slices named by the rows of `indices` increased by `updates`."""

def tensor_scatter_sub(input_x, indices, updates) -> Tensor:
    """`input_x` with the slices named by the rows of `indices` decreased by `updates`."""

def tensor_scatter_mul(input_x, indices, updates) -> Tensor:
    """`input_x` with the slices named by the rows of `indices` multiplied by `updates`."""

def tensor_scatter_div(input_x, indices, updates) -> Tensor:
    """`input_x` with the slices named by the rows of `indices` divided by `updates`."""

def tensor_scatter_max(input_x, indices, updates) -> Tensor:
    """`input_x` with the slices named by the rows of `indices` replaced by the maximum of themselves and `updates`."""

def tensor_scatter_min(input_x, indices, updates) -> Tensor:
    """`input_x` with the slices named by the rows of `indices` replaced by the minimum of themselves and `updates`."""

def tensor_scatter_elements(input_x, indices, updates, axis=0, reduction='none') -> Tensor:
    """`input_x` with elements of `updates` written (or added) along one axis: ``y[i, indices[i, j]] = updates[i, j]``."""

def scatter_nd(indices: TensorLike, updates: TensorLike, shape: int | Sequence[int]) -> Tensor:
    """Zeros of `shape` to which `updates` are added in the slices named by the rows of `indices`."""

def scatter_nd_update(input_x, indices, updates, use_locking=False) -> Tensor:
    """In the Parameter `input_x`, replace the slices named by the rows of `indices`; returns the new value."""

def scatter_nd_add(input_x, indices, updates, use_locking=False) -> Tensor:
    """In the Parameter `input_x`, increase the slices named by the rows of `indices`; returns the new value."""

def scatter_nd_sub(input_x, indices, updates, use_locking=False) -> Tensor:
    """In the Parameter `input_x`, decrease the slices named by the rows of `indices`; returns the new value."""

def scatter_nd_mul(input_x, indices, updates, use_locking=False) -> Tensor:
    """In the Parameter `input_x`, multiply the slices named by the rows of `indices`; returns the new value."""

def scatter_nd_div(input_x, indices, updates, use_locking=False) -> Tensor:
    """In the Parameter `input_x`, divide the slices named by the rows of `indices`; returns the new value."""

def scatter_nd_max(input_x, indices, updates, use_locking=False) -> Tensor:
    """In the Parameter `input_x`, raise to the maximum the slices named by the rows of `indices`; returns the new value."""

def scatter_nd_min(input_x, indices, updates, use_locking=False) -> Tensor:
    """In the Parameter `input_x`, lower to the minimum the slices named by the rows of `indices`; returns the new value."""

def scatter_update(input_x, indices, updates) -> Tensor:
    """In the Parameter `input_x`, replace the slices `indices` of the first axis; returns the new value."""

def scatter_add(input_x, indices, updates) -> Tensor:
    """In the Parameter `input_x`, increase the slices `indices` of the first axis; returns the new value."""

def scatter_sub(input_x, indices, updates) -> Tensor:
    """In the Parameter `input_x`, decrease the slices `indices` of the first axis; returns the new value."""

def scatter_mul(input_x, indices, updates) -> Tensor:
    """In the Parameter `input_x`, multiply the slices `indices` of the first axis; returns the new value."""

def scatter_div(input_x, indices, updates) -> Tensor:
    """In the Parameter `input_x`, divide the slices `indices` of the first axis; returns the new value."""

def scatter_max(input_x, indices, updates) -> Tensor:
    """In the Parameter `input_x`, raise to the maximum the slices `indices` of the first axis; returns the new value."""

def scatter_min(input_x, indices, updates) -> Tensor:
    """In the Parameter `input_x`, lower to the minimum the slices `indices` of the first axis; returns the new value."""

def scatter(input, axis, index, src) -> Tensor:
    """`input` with elements of `src` (a tensor or one number) written along `axis`: ``y[i, index[i, j]] = src[i, j]``."""

def reshape(input: TensorLike, shape: int | Sequence[int]) -> Tensor:
    """The same elements in row-major order under another shape; one size may be -1 and is then computed."""

def view(input, *shape) -> Tensor:
    """`reshape` with the sizes as arguments: ``view(x, 2, -1)`` or ``view(x, (2, -1))``."""

def view_as(input, other) -> Tensor:
    """`input` under the shape of `other`."""

def squeeze(input: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """Drop axes of size 1: all of them, or those in `axis` (an axis of another size stays as it is)."""

def expand_dims(input_x: TensorLike, axis: int) -> Tensor:
    """Insert an axis of size 1 at `axis`, counted in the result."""

def unsqueeze(input, dim) -> Tensor:
    """Insert an axis of size 1 at `dim`, counted in the result."""

def broadcast_to(input: TensorLike, shape: int | Sequence[int]) -> Tensor:
    """Repeat along axes of size 1 (and new leading axes) up to `shape`; -1 keeps the input's size."""

def expand(input_x, size) -> Tensor:
    """`broadcast_to` under its other name."""

def expand_as(input, other) -> Tensor:
    """`input` broadcast to the shape of `other`."""

def numel(input) -> int:
    """The number of elements of a tensor."""

def dyn_shape(input_x) -> Tensor:
    """The shape of a tensor as an int64 tensor."""

def narrow(input, axis, start, length) -> Tensor:
    """`length` elements along `axis` from `start` on."""

def slice(input_x, begin, size) -> Tensor:
    """`size` elements along each axis from `begin` on; a size of -1 takes all that follow."""

def select_scatter(input, src, axis, index) -> Tensor:
    """`input` with `src` in place of its slice `index` along `axis`."""

def slice_scatter(input, src, axis=0, start=None, end=None, step=1) -> Tensor:
    """`input` with `src` in place of its part ``start:end:step`` along `axis`."""

def tril(input: TensorLike, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two axes, zero above the given diagonal."""

def triu(input: TensorLike, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two axes, zero below the given diagonal."""

def diagonal(input: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of the planes spanned by two axes, as the last axis of the result."""

def diag_embed(input, offset=0, dim1=-2, dim2=-1) -> Tensor:
    """Matrices with the last axis of the input on a diagonal, zero elsewhere, spanned by the new axes dim1 and dim2."""

def diagflat(input, offset=0) -> Tensor:
    """A matrix with the elements of the input, flattened, on the given diagonal."""

def diag(input) -> Tensor:
    """A tensor of twice the rank with the input on its diagonal: ``y[i, j, i, j] = x[i, j]``, zero elsewhere."""

def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1) -> Tensor:
    """`input` with `src` on the diagonal that `diagonal` reads."""

def tril_indices(row, col, offset=0, *, dtype=...) -> Tensor:
    """The positions of the lower triangle of a `row` x `col` matrix: a row of rows, a row of columns."""

def triu_indices(row, col, offset=0, *, dtype=...) -> Tensor:
    """The positions of the upper triangle of a `row` x `col` matrix: a row of rows, a row of columns."""

def assign(variable, value) -> Tensor:
    """Overwrite the Parameter `variable` with `value`, cast to its dtype; returns the new value."""

def assign_add(variable, value) -> Tensor:
    """Increase the Parameter `variable` by `value`, cast to its dtype; returns the new value."""

def assign_sub(variable, value) -> Tensor:
    """Decrease the Parameter `variable` by `value`, cast to its dtype; returns the new value."""

def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Continuously differentiable exponential unit: ``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""

def elu(input_x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Exponential linear unit: ``x if x > 0 else alpha * (exp(x) - 1)``."""

def glu(x, axis=-1) -> Tensor:
    """Gated linear unit: the first half of `x` along `axis` times the sigmoid of the second half."""

def logsigmoid(x: TensorLike) -> Tensor:
    """Logarithm of the logistic function: ``-log(1 + exp(-x))``."""

def mish(x: TensorLike) -> Tensor:
    """Self regularized unit: ``x * tanh(log(1 + exp(x)))``."""

def selu(input_x: TensorLike) -> Tensor:
    """Scaled exponential unit: ``1.0507 * (x if x > 0 else 1.67326 * (exp(x) - 1))``, which keeps mean and variance."""

def sigmoid(input: TensorLike) -> Tensor:
    """Logistic function: ``1 / (1 + exp(-input))``."""

def silu(input: TensorLike) -> Tensor:
    """Sigmoid linear unit (swish): ``input * sigmoid(input)``."""

def softplus(input, beta=1, threshold=20) -> Tensor:
    """Smooth rectifier: ``log(1 + exp(beta * input)) / beta``; `input` itself where ``beta * input > threshold``."""

def softsign(x: TensorLike) -> Tensor:
    """``x / (1 + |x|)``."""

def swiglu(input, dim=-1) -> Tensor:
    """Swish gated unit: silu of the first half of `input` along `dim` times the second half."""

def tanhshrink(input) -> Tensor:
    """``input - tanh(input)``."""

def bessel_i0(x: TensorLike) -> Tensor:
    """Modified Bessel function I0."""

def bessel_i0e(x: TensorLike) -> Tensor:
    """``exp(-|x|) * I0(x)``."""

def bessel_i1(x: TensorLike) -> Tensor:
    """Modified Bessel function I1."""

def bessel_i1e(x: TensorLike) -> Tensor:
    """``exp(-|x|) * I1(x)``."""

def bessel_j0(x: TensorLike) -> Tensor:
    """Bessel function J0."""

def bessel_j1(x: TensorLike) -> Tensor:
    """Bessel function J1."""

def bessel_k0(x: TensorLike) -> Tensor:
    """Modified Bessel function K0."""

def bessel_k0e(x: TensorLike) -> Tensor:
    """``exp(x) * K0(x)``."""

def bessel_k1(x: TensorLike) -> Tensor:
    """Modified Bessel function K1."""

def bessel_k1e(x: TensorLike) -> Tensor:
    """``exp(x) * K1(x)``."""

def bessel_y0(x: TensorLike) -> Tensor:
    """Bessel function Y0; minus infinity below 0."""

def bessel_y1(x: TensorLike) -> Tensor:
    """Bessel function Y1; minus infinity below 0."""

def bitwise_and(input: TensorLike, other: TensorLike) -> Tensor:
    """Bits set in both operands."""

def bitwise_left_shift(input: TensorLike, other: TensorLike) -> Tensor:
    """``input * 2**other`` in the dtype's width; counts outside of it give 0."""

def bitwise_not(x: TensorLike) -> Tensor:
    """Flips every bit: ``-x - 1`` for signed integers, "not" for bool."""

def bitwise_or(input: TensorLike, other: TensorLike) -> Tensor:
    """Bits set in either operand."""

def bitwise_right_shift(input: TensorLike, other: TensorLike) -> Tensor:
    """``floor(input / 2**other)``: arithmetic shift; counts outside of the width give 0 or -1."""

def bitwise_xor(input: TensorLike, other: TensorLike) -> Tensor:
    """Bits set in exactly one operand."""

def invert(x: TensorLike) -> Tensor:
    """Flips every bit: ``-x - 1`` for signed integers, "not" for bool."""

def cast(input: TensorLike, dtype: DTypeLike) -> Tensor:
    """`input` with elements of `dtype`: rounded to the nearest floating number, cut to zero for integers."""

def type_as(input, other) -> Tensor:
    """`input` with the element type of `other`."""

def clamp(input, min=None, max=None) -> Tensor:
    """`input` limited to [min, max]; either bound may be missing; `max` wins where they cross."""

def clip(input, min=None, max=None) -> Tensor:
    """`input` limited to [min, max]; either bound may be missing; `max` wins where they cross."""

def fmax(input, other) -> Tensor:
    """Elementwise larger operand; where one is NaN, the other."""

def fmin(input, other) -> Tensor:
    """Elementwise smaller operand; where one is NaN, the other."""

def maximum(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise larger operand; NaN if either is NaN."""

def minimum(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise smaller operand; NaN if either is NaN."""

def nan_to_num(input: TensorLike, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replaces NaN by `nan` (default 0), the infinities by `posinf`, `neginf` (default: the dtype's limits)."""

def accumulate_n(x) -> Tensor:
    """Sum of all tensors of the list `x`."""

def addcdiv(input, tensor1, tensor2, value=1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""

def addcmul(input, tensor1, tensor2, value=1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""

def addn(x) -> Tensor:
    """Sum of all tensors of the list `x`."""

def heaviside(input, values) -> Tensor:
    """Step function: 0 below zero, 1 above, `values` at zero."""

def lerp(input, end, weight) -> Tensor:
    """Linear interpolation: ``input + weight * (end - input)``; `weight` is a number or a tensor."""

def nextafter(input: TensorLike, other: TensorLike) -> Tensor:
    """Neighbouring floating number of `input` in the direction of `other`."""

def eq(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input == other``; NaN equals nothing."""

def equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input == other``; NaN equals nothing."""

def ge(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input >= other``."""

def greater(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input > other``."""

def greater_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input >= other``."""

def gt(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input > other``."""

def isclose(input: TensorLike, other: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Elementwise ``|input - other| <= atol + rtol * |other|``; equal infinities are close."""

def le(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input <= other``."""

def less(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input < other``."""

def less_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input <= other``."""

def lt(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input < other``."""

def ne(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input != other``; NaN differs from everything."""

def not_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input != other``; NaN differs from everything."""

def tensor_ge(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input >= other``."""

def tensor_gt(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input > other``."""

def tensor_le(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input <= other``."""

def tensor_lt(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input < other``."""

def angle(input) -> Tensor:
    """Argument of complex numbers in radians. Shapes: any -> same. dtypes: complex -> floating."""

def conj(input) -> Tensor:
    """Complex conjugate; real numbers stay. Shapes: any -> same."""

def imag(input) -> Tensor:
    """Imaginary part, 0 for real numbers. Shapes: any -> same. dtypes: as `real`."""

def polar(abs, angle) -> Tensor:
    """Complex numbers from length and angle. Shapes: equal -> same. dtypes: float32, float64 -> complex."""

def real(input) -> Tensor:
    """Real part. Shapes: any -> same. dtypes: complex64 -> float32, complex128 -> float64, others stay."""

def view_as_real(input) -> Tensor:
    """Real and imaginary parts side by side in a new last axis."""

def digamma(input: TensorLike) -> Tensor:
    """Derivative of lgamma; minus infinity at 0, NaN at the negative integers."""

def igamma(input: TensorLike, other: TensorLike) -> Tensor:
    """Regularized lower incomplete gamma function P(a = `input`, x = `other`); differentiable in `other`."""

def igammac(input: TensorLike, other: TensorLike) -> Tensor:
    """Regularized upper incomplete gamma function Q(a = `input`, x = `other`); differentiable in `other`."""

def lgamma(input: TensorLike) -> Tensor:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ..."""

def mvlgamma(input, p) -> Tensor:
    """Multivariate log-gamma function of dimension `p`."""

def polygamma(n, input) -> Tensor:
    """Derivative of digamma of order `n`, a number or a tensor with one integer; order 0 is digamma itself."""

def zeta(input: TensorLike, other: TensorLike) -> Tensor:
    """Hurwitz zeta function: sum over k >= 0 of ``(other + k) ** -input``; infinite at poles, NaN below 1."""

def fast_gelu(x: TensorLike) -> Tensor:
    """Sigmoid form of gelu: ``x * sigmoid(1.702 * x)``."""

def gelu(input: TensorLike, approximate: Literal['none', 'tanh'] = 'none') -> Tensor:
    """Gaussian error unit: ``x * (1 + erf(x / sqrt(2))) / 2``."""

def log(input: TensorLike) -> Tensor:
    """Elementwise natural logarithm; NaN below zero."""

def log10(input: TensorLike) -> Tensor:
    """Elementwise logarithm to base 10; NaN below zero."""

def log1p(input: TensorLike) -> Tensor:
    """Elementwise ``log(1 + input)``, accurate near zero; NaN below -1."""

def log2(input: TensorLike) -> Tensor:
    """Elementwise logarithm to base 2; NaN below zero."""

def logaddexp(input: TensorLike, other: TensorLike) -> Tensor:
    """``log(exp(input) + exp(other))`` without overflow on the way."""

def logaddexp2(input: TensorLike, other: TensorLike) -> Tensor:
    """``log2(2**input + 2**other)`` without overflow on the way."""

def xdivy(x: TensorLike, y: TensorLike) -> Tensor:
    """``x / y``, and 0 where `x` is 0, whatever `y` is (NaN excepted)."""

def xlogy(input: TensorLike, other: TensorLike) -> Tensor:
    """``input * log(other)``, and 0 where `input` is 0, whatever `other` is (NaN excepted)."""

def isfinite(input: TensorLike) -> Tensor:
    """Where `input` is neither infinite nor NaN."""

def isinf(input: TensorLike) -> Tensor:
    """Where `input` is infinite of either sign."""

def isnan(input: TensorLike) -> Tensor:
    """Where `input` is not a number; false for integers."""

def isneginf(input: TensorLike) -> Tensor:
    """Where `input` is negative infinity."""

def isposinf(input: TensorLike) -> Tensor:
    """Where `input` is positive infinity."""

def isreal(input: TensorLike) -> Tensor:
    """Where the imaginary part of `input` is zero; true for all real dtypes."""

def logical_and(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise "and"; numbers count as true where they are not zero."""

def logical_not(input: TensorLike) -> Tensor:
    """Elementwise "not": true where `input` is false or zero."""

def logical_or(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise "or"; numbers count as true where they are not zero."""

def logical_xor(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise "exclusive or"; numbers count as true where they are not zero."""

def signbit(input: TensorLike) -> Tensor:
    """Where the sign bit of `input` is set: negative numbers and negative zero."""

def abs(input: TensorLike) -> Tensor:
    """Elementwise absolute value; the most negative integer stays as it is."""

def absolute(input) -> Tensor:
    """Elementwise absolute value."""

def add(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input + other``; "or" for bool."""

def copysign(x: TensorLike, other: TensorLike) -> Tensor:
    """Magnitude of `x` with the sign of `other`; negative zero counts as negative."""

def div(input, other, *, rounding_mode=None) -> Tensor:
    """Elementwise quotient: true, or rounded by `rounding_mode` "floor" (down) or "trunc" (to zero)."""

def divide(input, other, *, rounding_mode=None) -> Tensor:
    """Elementwise quotient: true, or rounded by `rounding_mode` "floor" (down) or "trunc" (to zero)."""

def inv(x) -> Tensor:
    """Elementwise ``1 / x``."""

def mul(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input * other``; "and" for bool."""

def multiply(input, other) -> Tensor:
    """Elementwise ``input * other``."""

def neg(input: TensorLike) -> Tensor:
    """Elementwise ``-input``; unsigned integers wrap around."""

def negative(input) -> Tensor:
    """Elementwise ``-input``."""

def positive(input) -> Tensor:
    """`input` itself."""

def reciprocal(input: TensorLike) -> Tensor:
    """Elementwise ``1 / input``."""

def sgn(input: TensorLike) -> Tensor:
    """-1, 0 or 1 by the sign of `input`; 0 for NaN. A complex number is divided by its magnitude."""

def sign(input: TensorLike) -> Tensor:
    """-1, 0 or 1 by the sign of `input`; 0 for NaN. A complex number is divided by its magnitude."""

def square(input: TensorLike) -> Tensor:
    """Elementwise ``input * input``."""

def sub(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input - other``; integers wrap around."""

def subtract(input, other, *, alpha=1) -> Tensor:
    """Elementwise ``input - alpha * other``."""

def tanh(input: TensorLike) -> Tensor:
    """Elementwise hyperbolic tangent."""

def tensor_add(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input + other``; "or" for bool."""

def tensor_div(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise quotient ``input / other``; x / 0 is infinite or NaN."""

def tensor_mul(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input * other``; "and" for bool."""

def tensor_sub(input: TensorLike, other: TensorLike) -> Tensor:
    """Elementwise ``input - other``; integers wrap around."""

def true_divide(dividend, divisor) -> Tensor:
    """Elementwise ``dividend / divisor``."""

def exp(input: TensorLike) -> Tensor:
    """Elementwise ``e ** input``."""

def exp2(input: TensorLike) -> Tensor:
    """Elementwise ``2 ** input``."""

def expm1(input: TensorLike) -> Tensor:
    """Elementwise ``e ** input - 1``, accurate near zero."""

def float_power(input, exponent) -> Tensor:
    """``input ** exponent`` computed in float64."""

def float_power_ext(input, exponent) -> Tensor:
    """``input ** exponent`` computed in float64."""

def hypot(input: TensorLike, other: TensorLike) -> Tensor:
    """Length of the hypotenuse, ``sqrt(input**2 + other**2)``, without overflow on the way."""

def ldexp(x, other) -> Tensor:
    """``x * 2 ** other``."""

def pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """Elementwise ``input ** exponent``; integers to negative powers are rounded to zero."""

def pows(input: TensorLike, exponent: TensorLike) -> Tensor:
    """Elementwise ``input ** exponent``; integers to negative powers are rounded to zero."""

def rsqrt(input: TensorLike) -> Tensor:
    """Elementwise ``1 / sqrt(input)``."""

def sqrt(x: TensorLike) -> Tensor:
    """Elementwise square root; NaN below zero."""

def tensor_exp(input: TensorLike) -> Tensor:
    """Elementwise ``e ** input``."""

def tensor_expm1(input: TensorLike) -> Tensor:
    """Elementwise ``e ** input - 1``, accurate near zero."""

def tensor_pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """Elementwise ``input ** exponent``; integers to negative powers are rounded to zero."""

def hardshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """Zero near the origin: `input` where ``|input| > lambd``, else 0."""

def hardsigmoid(input: TensorLike) -> Tensor:
    """Piecewise linear sigmoid: ``min(max(input / 6 + 1 / 2, 0), 1)``."""

def hardswish(input: TensorLike) -> Tensor:
    """Piecewise quadratic swish: ``input * min(max(input + 3, 0), 6) / 6``."""

def hardtanh(input, min_val=-1.0, max_val=1.0) -> Tensor:
    """Clip to an interval: ``min(max(input, min_val), max_val)``."""

def leaky_relu(input: TensorLike, alpha: float = 0.2) -> Tensor:
    """Rectifier with a slope for negative values: ``input if input > 0 else alpha * input``."""

def prelu(input: TensorLike, weight: TensorLike) -> Tensor:
    """Rectifier whose slope for negative values is learned, one a channel: ``max(input, 0) + weight * min(input, 0)``."""

def relu(input, inplace=False) -> Tensor:
    """Rectified linear unit: ``max(input, 0)``; with `inplace` the result replaces the value of `input`."""

def relu6(x: TensorLike) -> Tensor:
    """Rectified linear unit cut at six: ``min(max(x, 0), 6)``."""

def softshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """Shrink towards zero: ``input - lambd`` above `lambd`, ``input + lambd`` below ``-lambd``, else 0."""

def threshold(input: TensorLike, thr: float, value: float) -> Tensor:
    """`input` where it exceeds `thr`, else `value`."""

def ceil(input: TensorLike) -> Tensor:
    """Smallest integer not below `input`."""

def floor(input: TensorLike) -> Tensor:
    """Largest integer not above `input`."""

def floor_div(x: TensorLike, y: TensorLike) -> Tensor:
    """Quotient rounded down: ``floor(x / y)``; integers by zero give the largest, the smallest or (0 / 0) 0."""

def floor_divide(input, other) -> Tensor:
    """Quotient rounded down: ``floor(input / other)``."""

def floor_mod(x: TensorLike, y: TensorLike) -> Tensor:
    """Remainder with the sign of the divisor: ``x - floor(x / y) * y``; an integer modulo zero is itself."""

def floordiv(input, other) -> Tensor:
    """Quotient rounded down: ``floor(input / other)``."""

def floormod(x: TensorLike, y: TensorLike) -> Tensor:
    """Remainder with the sign of the divisor: ``x - floor(x / y) * y``; an integer modulo zero is itself."""

def fmod(input, other) -> Tensor:
    """Remainder with the sign of the dividend, as C's ``fmod``."""

def frac(x) -> Tensor:
    """The fraction of `x`, with its sign: ``x - trunc(x)``."""

def remainder(input, other) -> Tensor:
    """Remainder with the sign of the divisor, as Python's ``%``."""

def round(input: TensorLike, decimals: int = 0) -> Tensor:
    """Rounded to `decimals` places; ties go to the even neighbour."""

def tensor_floordiv(x: TensorLike, y: TensorLike) -> Tensor:
    """Quotient rounded down: ``floor(x / y)``; integers by zero give the largest, the smallest or (0 / 0) 0."""

def tensor_mod(x: TensorLike, y: TensorLike) -> Tensor:
    """Remainder with the sign of the divisor: ``x - floor(x / y) * y``; an integer modulo zero is itself."""

def trunc(input: TensorLike) -> Tensor:
    """`input` without its fraction: rounded to zero."""

def truncate_div(x: TensorLike, y: TensorLike) -> Tensor:
    """Quotient rounded to zero: ``trunc(x / y)``; integers by 0 give the largest, the smallest or (0 / 0) 0."""

def truncate_mod(x: TensorLike, y: TensorLike) -> Tensor:
    """Remainder with the sign of the dividend: ``x - trunc(x / y) * y``; an integer modulo zero is itself."""

def erf(input: TensorLike) -> Tensor:
    """Error function: ``2 / sqrt(pi) * integral of exp(-t**2) from 0 to input``."""

def erfc(input: TensorLike) -> Tensor:
    """Complement of the error function, ``1 - erf(input)``, accurate also where it is tiny."""

def erfinv(input: TensorLike) -> Tensor:
    """Inverse of the error function; infinite at -1 and 1, NaN beyond."""

def gcd(input: TensorLike, other: TensorLike) -> Tensor:
    """Greatest common divisor, not negative; gcd(0, 0) = 0."""

def i0(input: TensorLike) -> Tensor:
    """Modified Bessel function of the first kind, order 0."""

def lcm(input: TensorLike, other: TensorLike) -> Tensor:
    """Least common multiple, not negative; 0 if either is 0."""

def logit(input, eps=None) -> Tensor:
    """``log(x / (1 - x))``; with `eps`, x is first limited to [eps, 1 - eps]."""

def population_count(input_x: TensorLike) -> Tensor:
    """Number of bits that are set in each element."""

def acos(input: TensorLike) -> Tensor:
    """Elementwise inverse cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""

def acosh(input: TensorLike) -> Tensor:
    """Elementwise inverse hyperbolic cosine; NaN below 1."""

def arccos(input: TensorLike) -> Tensor:
    """Elementwise inverse cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""

def arccosh(input: TensorLike) -> Tensor:
    """Elementwise inverse hyperbolic cosine; NaN below 1."""

def arcsin(x) -> Tensor:
    """`asin` under its longer name."""

def arcsinh(input: TensorLike) -> Tensor:
    """Elementwise inverse hyperbolic sine."""

def arctan(input: TensorLike) -> Tensor:
    """Elementwise inverse tangent in radians, in [-pi/2, pi/2]."""

def arctan2(input: TensorLike, other: TensorLike) -> Tensor:
    """Angle in radians of the point (x = `other`, y = `input`), in [-pi, pi]."""

def arctanh(input: TensorLike) -> Tensor:
    """Elementwise inverse hyperbolic tangent; NaN outside of [-1, 1]."""

def asin(input: TensorLike) -> Tensor:
    """Elementwise inverse sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""

def asinh(input: TensorLike) -> Tensor:
    """Elementwise inverse hyperbolic sine."""

def atan(input: TensorLike) -> Tensor:
    """Elementwise inverse tangent in radians, in [-pi/2, pi/2]."""

def atan2(input: TensorLike, other: TensorLike) -> Tensor:
    """Angle in radians of the point (x = `other`, y = `input`), in [-pi, pi]."""

def atanh(input: TensorLike) -> Tensor:
    """Elementwise inverse hyperbolic tangent; NaN outside of [-1, 1]."""

def cos(input: TensorLike) -> Tensor:
    """Elementwise cosine of an angle in radians."""

def cosh(input: TensorLike) -> Tensor:
    """Elementwise hyperbolic cosine."""

def deg2rad(x) -> Tensor:
    """Degrees to radians."""

def rad2deg(x) -> Tensor:
    """Radians to degrees."""

def sin(input: TensorLike) -> Tensor:
    """Elementwise sine of an angle in radians."""

def sinc(input: TensorLike) -> Tensor:
    """Normalized sinc: ``sin(pi * input) / (pi * input)``, and 1 at zero."""

def sinh(input: TensorLike) -> Tensor:
    """Elementwise hyperbolic sine."""

def tan(input: TensorLike) -> Tensor:
    """Elementwise tangent of an angle in radians."""

def identity(x) -> Tensor:
    """The argument itself."""

def bounding_box_decode(anchor_box, deltas, max_shape, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0), wh_ratio_clip=0.016) -> Tensor:
    """Boxes from anchors and what `bounding_box_encode` gives, cut at the image of (height, width) `max_shape`."""

def bounding_box_encode(anchor_box, groundtruth_box, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0)) -> Tensor:
    """Shift and logarithm of growth from anchors to boxes, less `means`, over `stds`."""

def check_valid(bboxes, img_metas) -> Tensor:
    """Which boxes lie inside of an image; `img_metas`: its height, width and the ratio both are scaled with."""

def iou(anchor_boxes, gt_boxes, mode='iou') -> Tensor:
    """Intersection of each pair of boxes over their union, or (`mode` "iof") over the box in `gt_boxes`."""

def channel_shuffle(x, groups) -> Tensor:
    """Channels of `groups` groups interleaved (Zhang et al. 2018). Shapes: [..., C, H, W] -> same."""

def pixel_shuffle(input, upscale_factor) -> Tensor:
    """Channels moved into space (Shi et al. 2016)."""

def pixel_unshuffle(input, downscale_factor) -> Tensor:
    """Space moved into channels, the inverse of `pixel_shuffle`."""

def affine_grid(theta, size, align_corners=False) -> Tensor:
    """The places, for `grid_sample`, that an affine map sends the pixels of an image of `size` to."""

def crop_and_resize(image, boxes, box_indices, crop_size, method='bilinear', extrapolation_value=0.0) -> Tensor:
    """Parts of images, given by boxes (y1, x1, y2, x2) with 0 and 1 at the outermost pixels, brought to one size."""

def deformable_conv2d(x, weight, offsets, kernel_size, strides, padding, bias=None, dilations=(1, 1, 1, 1), groups=1, deformable_groups=1, modulated=True) -> Tensor:
    """Convolution whose windows are bent: each tap is read at its place plus an offset, times a mask."""

def grid_sample(input, grid, mode='bilinear', padding_mode='zeros', align_corners=None) -> Tensor:
    """`input` at the places `grid`, whose last axis is (x, y) or (x, y, z) in [-1, 1]."""

def adjoint(x) -> Tensor:
    """The last two axes swapped; complex numbers conjugated too. Shapes: [.., m, n] -> [.., n, m]."""

def batch_dot(x1, x2, axes=None) -> Tensor:
    """Contraction of one axis of each input, for every entry of the shared first axis."""

def cross(input, other, dim=None) -> Tensor:
    """Cross product of vectors of 3 along `dim`; the default is the first axis of size 3."""

def dot(input, other) -> Tensor:
    """Sum of products over the last axis of `input` and the second to last of `other`."""

def ger(input, vec2) -> Tensor:
    """All products of an element of `input` with one of `vec2`. Shapes: [m], [n] -> [m, n]."""

def inner(input, other) -> Tensor:
    """Sum of products over the last axes. Shapes: [A.., k] and [B.., k] -> [A.., B..]; a rank 0 input scales."""

def kron(input, other) -> Tensor:
    """Kronecker product: blocks ``input[i, j] * other``; the shorter shape is padded with ones in front."""

def outer(input, vec2) -> Tensor:
    """All products of an element of `input` with one of `vec2`, flattened. Shapes: [m], [n] -> [m, n]."""

def tensor_dot(x1, x2, axes) -> Tensor:
    """Contraction: sum of products over pairs of axes."""

def trace(input) -> Tensor:
    """Sum of the main diagonal of a matrix, in its dtype. Shapes: [m, n] -> []."""

def vecdot(x, y, *, axis=-1) -> Tensor:
    """Sum of products along `axis`, which both inputs share; the other axes broadcast."""

def cholesky(input_x, upper=False) -> Tensor:
    """Triangular L with ``L @ L.T = input_x``; with `upper` its transpose."""

def cholesky_inverse(input_x, upper=False) -> Tensor:
    """Inverse of the matrix whose Cholesky factor is given. Shapes: [.., n, n] -> same."""

def cholesky_solve(input, input2, upper=False) -> Tensor:
    """The x of ``A @ x = input``, given the Cholesky factor `input2` of A. Shapes: [.., n, k], [.., n, n]."""

def cond(A, p=None) -> Tensor:
    """Condition number: the norm of a matrix times that of its inverse; `p` as `matrix_norm`, None means 2."""

def eig(A: TensorLike) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors (columns) of square matrices, always complex."""

def eigvals(A) -> Tensor:
    """Eigenvalues of square matrices, always complex. Shapes: [.., n, n] -> [.., n]."""

def matrix_exp(input: TensorLike) -> Tensor:
    """Matrix exponential: the sum of ``input^i / i!``."""

def pinv(x, *, atol=None, rtol=None, hermitian=False) -> Tensor:
    """Pseudo-inverse (Moore-Penrose) by the singular values above ``max(atol, rtol * largest)``."""

def det(input: TensorLike) -> Tensor:
    """Determinant of each matrix."""

def inverse(input: TensorLike) -> Tensor:
    """Inverse of each matrix. A singular one gives infinities or an error of LAPACK."""

def log_matrix_determinant(input) -> tuple[Tensor, Tensor]:
    """Sign and logarithm of the absolute value of each determinant: `slogdet`."""

def logdet(input) -> Tensor:
    """Logarithm of each determinant, NaN for negative ones. Shapes: [.., n, n] -> [..]."""

def matrix_determinant(input) -> Tensor:
    """Determinant of each matrix: `det`."""

def matrix_solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False) -> Tensor:
    """The x of ``matrix @ x = rhs``; with `adjoint` of ``matrix.T @ x = rhs``."""

def slogdet(input: TensorLike) -> tuple[Tensor, Tensor]:
    """Sign and logarithm of the absolute value of each determinant."""

def matrix_band_part(x, lower, upper) -> Tensor:
    """`x` with zeros outside of a band around the main diagonal; a negative width means no limit."""

def matrix_diag(x, k=0, num_rows=-1, num_cols=-1, padding_value=0, align='RIGHT_LEFT') -> Tensor:
    """Matrices with the diagonals `x` on the diagonals `k`, and `padding_value` elsewhere."""

def matrix_diag_part(x, k, padding_value, align='RIGHT_LEFT') -> Tensor:
    """The diagonals `k` of matrices, short ones filled up with `padding_value`."""

def matrix_set_diag(x, diagonal, k=0, align='RIGHT_LEFT') -> Tensor:
    """Matrices with their diagonals `k` replaced by `diagonal`."""

def cdist(x1, x2, p=2.0) -> Tensor:
    """Distances between rows: `p`-norms of differences. Shapes: [.., m, d], [.., n, d] -> [.., m, n]."""

def renorm(input, p, axis, maxnorm) -> Tensor:
    """Scales each slice along `axis` whose `p`-norm exceeds `maxnorm` down to it."""

def geqrf(input: TensorLike) -> tuple[Tensor, Tensor]:
    """QR factorization as LAPACK keeps it: r and the reflectors in one matrix, and their factors tau."""

def lstsq(input, A) -> Tensor:
    """Least squares: the x that minimizes ``|input @ x - A|``, the shortest one if there are many."""

def orgqr(input: TensorLike, input2: TensorLike) -> Tensor:
    """The first columns of Q from reflectors `input` and factors `input2`, as `geqrf` gives them."""

def ormqr(input, tau, other, left=True, transpose=False) -> Tensor:
    """``Q @ other`` (or ``other @ Q``) with Q, or its transpose, from reflectors as `geqrf` gives them."""

def qr(input, mode='reduced') -> tuple[Tensor, Tensor]:
    """Orthogonal q and upper triangular r with ``input = q @ r``; `mode` "reduced" or "complete"."""

def lu_solve(b, LU_data, LU_pivots) -> Tensor:
    """The x of ``A @ x = b``, given the packed LU factorization of A with 1-based pivots."""

def bias_add(input_x: TensorLike, bias: TensorLike, data_format: Literal['NCHW', 'NHWC', 'NCDHW'] = 'NCHW') -> Tensor:
    """Add one number per channel; the channels are axis 1, with `data_format` "NHWC" the last axis."""

def dense(input, weight, bias=None) -> Tensor:
    """Fully connected layer: ``input @ weight.T + bias``."""

def matmul(input, other) -> Tensor:
    """Matrix product with NumPy's rules: rank 1 is a row (left) or a column (right), leading axes broadcast."""

def addbmm(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
    """``beta * input + alpha * sum over b of batch1[b] @ batch2[b]``. Shapes: [B, m, k], [B, k, n] -> [m, n]."""

def addmm(input, mat1, mat2, *, beta=1, alpha=1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``. Shapes: input like [m, n]; [m, k], [k, n] -> [m, n]."""

def addmv(input, mat, vec, *, beta=1, alpha=1) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``. Shapes: input like [m]; [m, k], [k] -> [m]."""

def addr(x, vec1, vec2, *, beta=1, alpha=1) -> Tensor:
    """``beta * x + alpha * outer(vec1, vec2)``. Shapes: x like [m, n]; [m], [n] -> [m, n]."""

def baddbmm(input, batch1, batch2, beta=1, alpha=1) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` by matrices. Shapes: [B, m, k], [B, k, n] -> [B, m, n]."""

def bmm(input_x, mat2) -> Tensor:
    """Products of the matrices in the last two axes. Shapes: [B.., m, k] and [B.., k, n] -> [B.., m, n]."""

def mm(input, mat2) -> Tensor:
    """Product of two matrices. Shapes: [m, k] and [k, n] -> [m, n]. Errors: ValueError for other ranks."""

def mv(mat, vec) -> Tensor:
    """Matrix times vector. Shapes: [m, k] and [k] -> [m]. Errors: ValueError for other ranks."""

def adaptive_avg_pool1d(input, output_size) -> Tensor:
    """Mean of each of `output_size` equal windows of a sequence."""

def adaptive_max_pool1d(input, output_size) -> Tensor:
    """Largest element of each of `output_size` equal windows of a sequence."""

def avg_pool1d(input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True) -> Tensor:
    """Mean of each window of a sequence."""

def avg_pool2d(input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=0) -> Tensor:
    """Mean of each window of an image."""

def avg_pool3d(input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=0) -> Tensor:
    """Mean of each window of a volume; `padding`: an int or (front, back, top, bottom, left, right)."""

def lp_pool1d(x, norm_type, kernel_size, stride=None, ceil_mode=False) -> Tensor:
    """Power average of each window: ``(sum of x ** norm_type) ** (1 / norm_type)``."""

def lp_pool2d(x, norm_type, kernel_size, stride=None, ceil_mode=False) -> Tensor:
    """Power average of each window of an image, see `lp_pool1d`."""

def batch_norm(input_x, running_mean, running_var, weight, bias, training=False, momentum=0.1, eps=1e-05) -> Tensor:
    """Batch normalization: ``weight * (x - mean) / sqrt(var + eps) + bias`` per channel."""

def log_uniform_candidate_sampler(true_classes, num_true=1, num_sampled=5, unique=True, range_max=5, seed=0) -> tuple[Tensor, Tensor, Tensor]:
    """Classes drawn as of words by frequency: k with ``log((k + 2) / (k + 1)) / log(range_max + 1)``."""

def uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=0, remove_accidental_hits=False) -> tuple[Tensor, Tensor, Tensor]:
    """Classes drawn uniformly from [0, range_max), and how often true and drawn classes are expected."""

def conv1d(input, weight, bias=None, stride=1, pad_mode='valid', padding=0, dilation=1, groups=1) -> Tensor:
    """Convolution over one spatial dimension, see `conv2d`."""

def conv2d(input, weight, bias=None, stride=1, pad_mode='valid', padding=0, dilation=1, groups=1) -> Tensor:
    """Convolution (cross-correlation) of images with a bank of filters."""

def conv3d(input, weight, bias=None, stride=1, pad_mode='valid', padding=0, dilation=1, groups=1) -> Tensor:
    """Convolution over three spatial dimensions, see `conv2d`."""

def conv3d_transpose(inputs, weight, pad_mode='valid', padding=0, stride=1, dilation=1, group=1, output_padding=0) -> Tensor:
    """Transposed convolution over three dimensions, see `conv_transpose`."""

def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1) -> Tensor:
    """Transposed convolution of images with explicit padding, see `conv_transpose` with pad mode 'pad'."""

def binary_cross_entropy(logits, labels, weight=None, reduction='mean') -> Tensor:
    """Cross entropy of two classes from probabilities: ``-w * (labels * log(p) + (1 - labels) * log(1 - p))``."""

def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction='mean') -> Tensor:
    """Cross entropy of two classes from logits, `pos_weight` multiplying the term of the positive class."""

def cross_entropy(input, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0) -> Tensor:
    """Cross entropy of logits with class indices (integer `target`) or class probabilities (floating `target`)."""

def nll_loss(inputs, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0) -> Tensor:
    """Negative log likelihood of class indices: ``-weight[target] * inputs[target]`` of log-probabilities."""

def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Greedy decoding: the best class of each step, repeats merged, blanks (the last class) left out."""

def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False) -> tuple[Tensor, Tensor]:
    """Loss of label sequences without alignment: ``-log p(target)``, and alpha."""

def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05) -> Tensor:
    """Group normalization: each group of channels of each sample gets mean 0 and variance 1, then `weight` and `bias`."""

def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction='mean') -> Tensor:
    """``1 - cos(input1, input2)`` for pairs with target 1, ``max(0, cos - margin)`` for -1."""

def cosine_similarity(x1, x2, dim=1, eps=1e-08) -> Tensor:
    """Cosine of the angle along `dim`: ``sum(x1 * x2) / max(|x1| * |x2|, eps)``."""

def gaussian_nll_loss(x, target, var, full=False, eps=1e-06, reduction='mean') -> Tensor:
    """Negative log likelihood of a normal distribution: ``(log(v) + (x - target)^2 / v) / 2``, v = max(var, eps)."""

def hinge_embedding_loss(inputs, targets, margin=1.0, reduction='mean') -> Tensor:
    """``inputs`` where the target is 1, ``max(0, margin - inputs)`` where it is -1."""

def huber_loss(input, target, reduction='mean', delta=1.0) -> Tensor:
    """Squared error up to `delta`, linear beyond: ``d^2 / 2`` if ``|d| <= delta``, else ``delta * (|d| - delta / 2)``."""

def kl_div(logits, labels, reduction='mean') -> Tensor:
    """Kullback-Leibler divergence from log-probabilities: ``labels * (log(labels) - logits)``."""

def l1_loss(input, target, reduction='mean') -> Tensor:
    """Mean absolute error: ``|input - target|``, reduced."""

def margin_ranking_loss(input1, input2, target, margin=0.0, reduction='mean') -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``: target 1 wants input1 larger, -1 smaller."""

def mse_loss(input, target, reduction='mean') -> Tensor:
    """Mean squared error: ``(input - target)^2``, reduced."""

def multi_margin_loss(input, target, p=1, margin=1, weight=None, reduction='mean') -> Tensor:
    """Hinge over all wrong classes: ``sum(w * max(0, margin - x[target] + x[j])^p, j != target) / C``."""

def multilabel_soft_margin_loss(input, target, weight=None, reduction='mean') -> Tensor:
    """Mean over the classes of the two-class cross entropy of each: labels 1 and 0, logits `input`."""

def smooth_l1_loss(input, target, beta=1.0, reduction='none') -> Tensor:
    """Squared error near zero, absolute error beyond `beta`: ``d^2 / (2 beta)`` if ``|d| < beta``, ``|d| - beta / 2``."""

def soft_margin_loss(input, target, reduction='mean') -> Tensor:
    """``log(1 + exp(-target * input))`` for targets 1 and -1."""

def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, reduction='mean') -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the distance ``|x - y + eps|_p``."""

def lrn(x, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region='ACROSS_CHANNELS') -> Tensor:
    """Local response normalization: ``x / (bias + alpha * (sum of x^2 over nearby channels)) ^ beta``."""

def max_unpool1d(x, indices, kernel_size, stride=None, padding=0, output_size=None) -> Tensor:
    """Puts maxima of a sequence back where `indices` say, zero elsewhere."""

def max_unpool2d(x, indices, kernel_size, stride=None, padding=0, output_size=None) -> Tensor:
    """Puts maxima of an image back where `indices` (into H * W of the result) say, see `max_unpool1d`."""

def max_unpool3d(x, indices, kernel_size, stride=None, padding=0, output_size=None) -> Tensor:
    """Puts maxima of a volume back where `indices` (into D * H * W of the result) say, see `max_unpool1d`."""

def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05) -> Tensor:
    """Layer normalization over the last axes: ``weight * (input - mean) / sqrt(variance + eps) + bias``."""

def rms_norm(x: TensorLike, gamma: TensorLike, epsilon: float = 1e-06) -> tuple[Tensor, Tensor]:
    """Divide by the root mean square over the axes of `gamma`: ``gamma * x / sqrt(mean(x^2) + epsilon)``."""

def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Sum of columns at the places `unfold` takes them from."""

def unfold(input, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Sliding windows of a batch of images as columns."""

def approximate_equal(x, y, tolerance=1e-05) -> Tensor:
    """Where ``|x - y| < tolerance``. Shapes: broadcast. dtypes: real, promoted -> bool."""
augassign_add = _add
augassign_div = _truediv
augassign_floordiv = _floordiv
augassign_mod = _mod
augassign_mul = _mul
augassign_sub = _sub

def bidense(input1, input2, weight, bias=None) -> Tensor:
    """``input1 @ weight[k] @ input2`` for each output k, plus `bias`."""

def clamp_(input, *args, **kwargs) -> Any:
    """``input.clamp_(...)``: replaces the value of `input`, and returns it."""

def deepcopy(input_x) -> Tensor:
    """A Tensor with the same values in memory of its own; gradients flow through it."""

def eps(x) -> Tensor:
    """The distance from 1 to the next number of the dtype of `x`, in its shape."""

def erfinv_(input, *args, **kwargs) -> Any:
    """``input.erfinv_(...)``: replaces the value of `input`, and returns it."""

def is_nonzero(input) -> bool:
    """Whether the only element of a Tensor is not zero."""

def move_to(input, to='CPU', blocking=True) -> Tensor:
    """A copy of `input` on another kind of device: "CPU", or that of a backend with memory of its own."""

def multilabel_margin_loss(input, target, reduction='mean') -> Tensor:
    """Mean over the classes of ``max(0, 1 - (input[label] - input[other]))``, over all pairs of a sample."""

def print_(*input_x) -> None:
    """Prints texts, numbers and Tensors, each on a line of its own, Tensors as their `repr`."""

def shape_(x) -> tuple[int, ...]:
    """The shape of a Tensor as a tuple."""

def soft_shrink(input, lambd=0.5) -> Tensor:
    """`softshrink` under another name."""

def tanh_(input, *args, **kwargs) -> Any:
    """``input.tanh_(...)``: replaces the value of `input`, and returns it."""

def tensor_slice(input, begin, size) -> Tensor:
    """`size` elements from `begin` on along each axis. Shapes: any -> size."""

def unique_with_pad(x, pad_num) -> tuple[Tensor, Tensor]:
    """The different elements in the order they first occur, filled up with `pad_num`, and for each its place there."""

def bernoulli(input, p=0.5, seed=None) -> Tensor:
    """Ones with probability `p` and zeros, in the shape and dtype of `input`."""

def choice_with_mask(input_x, count=256, seed=None) -> tuple[Tensor, Tensor]:
    """Positions of `count` true elements in random order, and which are real: fewer are padded with 0."""

def dropout(input, p=0.5, training=True, seed=None) -> Tensor:
    """Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``; `input` itself if not training."""

def dropout1d(input, p=0.5, training=True) -> Tensor:
    """Zeroes whole channels with probability `p` and scales the others by ``1 / (1 - p)``."""

def dropout2d(input, p=0.5, training=True) -> Tensor:
    """Zeroes whole channels with probability `p` and scales the others by ``1 / (1 - p)``."""

def dropout3d(input, p=0.5, training=True) -> Tensor:
    """Zeroes whole channels with probability `p` and scales the others by ``1 / (1 - p)``."""

def exponential_(input, lambd=1, *, generator=None) -> Tensor:
    """Overwrites `input` with numbers of the exponential distribution with rate `lambd`."""

def gamma(shape, alpha, beta, seed=None) -> Tensor:
    """Numbers of the gamma distribution with shape `alpha` and rate `beta`, float32."""

def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1) -> Tensor:
    """A soft sample of the classes: softmax of ``(logits + Gumbel noise) / tau`` along `dim`."""

def laplace(shape, mean, lambda_param, seed=None) -> Tensor:
    """Numbers of the Laplace distribution: density ``exp(-|x - mean| / lambda_param) / (2 lambda_param)``, float32."""

def multinomial(input, num_samples, replacement=True, seed=None) -> Tensor:
    """Indices along the last axis, drawn in proportion to the weights `input`."""

def multinomial_with_replacement(x, seed, offset, numsamples, replacement=False) -> Tensor:
    """Indices along the last axis, drawn in proportion to the weights `x` with the key (seed, offset)."""

def normal(shape, mean, stddev, seed=None) -> Tensor:
    """Numbers of the normal distribution with the given mean and standard deviation, float32."""

def normal_(input, mean=0, std=1, *, generator=None) -> Tensor:
    """Overwrites `input` with numbers of the normal distribution."""

def poisson(shape, mean, seed=None) -> Tensor:
    """Numbers of the Poisson distribution with the given mean, float32."""

def rand(*size, dtype=None, seed=None) -> Tensor:
    """Numbers of the uniform distribution over [0, 1)."""

def rand_like(input, seed=None, *, dtype=None) -> Tensor:
    """`rand` with the shape of `input`, and its dtype unless `dtype` is given."""

def randint(low, high, size, seed=None, *, dtype=None) -> Tensor:
    """Integers of the uniform distribution over [low, high)."""

def randint_like(input, low, high, seed=None, *, dtype=None) -> Tensor:
    """`randint` with the shape of `input`, and its dtype unless `dtype` is given."""

def randn(*size, dtype=None, seed=None) -> Tensor:
    """Numbers of the standard normal distribution."""

def randn_like(input, seed=None, *, dtype=None) -> Tensor:
    """`randn` with the shape of `input`."""

def random_(input, from_=0, to=None, *, generator=None) -> Tensor:
    """Overwrites `input` with integers of [from_, to); without `to` with the range that its dtype holds exactly."""

def random_categorical(logits, num_sample, seed=0, dtype=...) -> Tensor:
    """Class indices drawn from the softmax of `logits`."""

def random_gamma(shape, alpha, seed=None) -> Tensor:
    """Numbers of the gamma distribution with shape `alpha` and rate 1."""

def random_poisson(shape, rate, seed=None, dtype=...) -> Tensor:
    """Numbers of the Poisson distribution."""

def randperm(n, seed=0, offset=0, dtype=...) -> Tensor:
    """The numbers 0 to n - 1 in random order; a `seed` of 0 continues the default stream."""

def rrelu(input, lower=0.125, upper=0.3333333333333333) -> Tensor:
    """Rectifier with random slopes for negative values, uniform over [lower, upper)."""

def shuffle(x, seed=None) -> Tensor:
    """`x` with its first axis in random order."""

def standard_laplace(shape, seed=None) -> Tensor:
    """Numbers of the Laplace distribution with mean 0 and scale 1, float32."""

def standard_normal(shape, seed=None) -> Tensor:
    """Numbers of the standard normal distribution, float32."""

def uniform(shape, minval, maxval, seed=None, dtype=...) -> Tensor:
    """Numbers of the uniform distribution over [minval, maxval)."""

def uniform_(input, from_=0, to=1, *, generator=None) -> Tensor:
    """Overwrites `input` with numbers of the uniform distribution over [from_, to)."""

def amax(input, axis=None, keepdims=False, *, initial=None, where=None) -> Tensor:
    """Largest element over `axis` (all by default), of those that the mask `where` admits, and of `initial`."""

def amin(input, axis=None, keepdims=False, *, initial=None, where=None) -> Tensor:
    """Smallest element over `axis` (all by default), of those that the mask `where` admits, and of `initial`."""

def reduce_max(x, axis=()) -> Tensor:
    """Largest element over `axis`, all axes by default."""

def reduce_min(x, axis=()) -> Tensor:
    """Smallest element over `axis`, all axes by default."""

def aminmax(input, *, axis=0, keepdims=False) -> tuple[Tensor, Tensor]:
    """Smallest and largest element along `axis`, without regard to NaN; None means all axes."""

def argmax(input, dim=None, keepdim=False) -> Tensor:
    """Place of the largest element along `dim`, or in the flattened tensor: first of equals, or of NaNs."""

def argmin(input, axis=None, keepdims=False) -> Tensor:
    """Place of the smallest element along `axis`, or in the flattened tensor: first of equals, or of NaNs."""

def max(input, axis=None, keepdims=False, *, initial=None, where=None) -> tuple[Tensor, Tensor]:
    """Largest element along `axis` and its place; without an axis the largest of all, and 0."""

def min(input, axis=None, keepdims=False, *, initial=None, where=None) -> tuple[Tensor, Tensor]:
    """Smallest element along `axis` and its place; without an axis the smallest of all, and 0."""

def cov(input, *, correction=1, fweights=None, aweights=None) -> Tensor:
    """Covariance of the variables in the rows of `input`, observed in its columns."""

def dist(input, other, p=2) -> Tensor:
    """`p`-norm of the difference of two tensors."""

def logsumexp(input, dim, keepdim=False) -> Tensor:
    """``log(sum(exp(input)))`` over `dim` without overflow on the way."""

def nanmean(input, axis=None, keepdims=False, *, dtype=None) -> Tensor:
    """Mean over `axis` of the elements that are not NaN; NaN where there is none."""

def nansum(input, axis=None, keepdims=False, *, dtype=None) -> Tensor:
    """Sum over `axis` with NaN counted as 0."""

def std(input, axis=None, ddof=0, keepdims=False) -> Tensor:
    """Standard deviation over `axis`: ``sqrt(sum((x - mean)**2) / (n - ddof))``."""

def std_mean(input, axis=None, ddof=0, keepdims=False) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean over `axis`."""

def var(input, axis=None, ddof=0, keepdims=False) -> Tensor:
    """Variance over `axis`: ``sum((x - mean)**2) / (n - ddof)``, in two passes."""

def var_mean(input, axis=None, ddof=0, keepdims=False) -> tuple[Tensor, Tensor]:
    """Variance and mean over `axis`."""

def vector_norm(x, ord=2, axis=None, keepdims=False, *, dtype=None) -> Tensor:
    """Vector norm over `axis`: ``sum(|x|**ord) ** (1 / ord)``; `ord` may be 0 (nonzero count), inf or -inf."""

def mean(x: TensorLike, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Tensor:
    """Mean over `axis`; NaN where there is nothing to average; the mean of integers is cut to an integer."""

def prod(input: TensorLike, axis: int | Sequence[int] | None = None, keep_dims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Product over `axis`; 1 where there is nothing to multiply."""

def reduce_mean(x, axis=()) -> Tensor:
    """Mean over `axis`, all axes by default."""

def reduce_sum(x, axis=()) -> Tensor:
    """Sum over `axis`, all axes by default, in the dtype of `x`."""

def sum(input: TensorLike, dim: int | Sequence[int] | None = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Sum over the axes `dim`; 0 where there is nothing to add."""

def cummax(input, axis) -> tuple[Tensor, Tensor]:
    """Largest element so far along `axis` and its place."""

def cummin(input, axis) -> tuple[Tensor, Tensor]:
    """Smallest element so far along `axis` and its place."""

def cumprod(input, dim, dtype=None) -> Tensor:
    """Products of all elements up to each one along `dim`, in `dtype` if given; integers give int64."""

def cumsum(x, axis, dtype=None) -> Tensor:
    """Sums of all elements up to each one along `axis`, in `dtype` if given."""

def diff(x, n=1, axis=-1, prepend=None, append=None) -> Tensor:
    """Differences of neighbours along `axis`, taken `n` times; `prepend` and `append` are joined first."""

def logcumsumexp(input, axis) -> Tensor:
    """``log(cumsum(exp(input)))`` along `axis` without overflow on the way."""

def trapz(y, x=None, *, dx=1.0, dim=-1) -> Tensor:
    """Integral along `dim` by the trapezoidal rule, over the points `x` or over steps of `dx`."""

def log_softmax(logits: TensorLike, axis: int = -1) -> Tensor:
    """Logarithm of softmax: ``logits - log(sum(exp(logits)))`` along `axis`."""

def softmax(input, axis=-1, *, dtype=None) -> Tensor:
    """Normalized exponentials along `axis`: ``exp(input) / sum(exp(input))``."""

def softmin(x, axis=-1, *, dtype=None) -> Tensor:
    """Softmax of the negative: ``exp(-x) / sum(exp(-x))``."""

def bincount(input, weights=None, minlength=0) -> Tensor:
    """Number of times that 0, 1, 2, ... occur in `input`, or the sum of their weights."""

def histc(input, bins=100, min=0.0, max=0.0) -> Tensor:
    """Histogram of `bins` equal bins over [min, max]; over the range of `input` if the bounds are equal."""

def median(input, axis=-1, keepdims=False) -> tuple[Tensor, Tensor]:
    """Lower median along `axis` and its place."""

def nanmedian(input, axis=-1, keepdims=False) -> tuple[Tensor, Tensor]:
    """Lower median along `axis` of the elements that are not NaN, and its place."""

def nanquantile(input, q, axis=None, keepdims=False) -> Tensor:
    """The `q` quantile along `axis` of the elements that are not NaN, interpolated linearly."""

def quantile(input, q, axis=None, keepdims=False) -> Tensor:
    """The `q` quantile along `axis` (all elements by default), interpolated linearly; NaN where there is one."""

def all(input: TensorLike, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Tensor:
    """Whether every element along `axis` is true or not zero; true where there is none."""

def any(input: TensorLike, axis: int | Sequence[int] | None = None, keep_dims: bool = False) -> Tensor:
    """Whether some element along `axis` is true or not zero; false where there is none."""

def count_nonzero(x, axis=(), keep_dims=False, dtype=...) -> Tensor:
    """Number of elements along `axis` that are not zero; NaN counts."""

def sparse_segment_mean(x, indices, segment_ids) -> Tensor:
    """Means of the rows ``x[indices]`` that have the same number in the sorted `segment_ids`."""

def unsorted_segment_max(x, segment_ids, num_segments) -> Tensor:
    """Maximum of the rows of `x` that have the same number in `segment_ids`, in any order."""

def unsorted_segment_min(x, segment_ids, num_segments) -> Tensor:
    """Minimum of the rows of `x` that have the same number in `segment_ids`, in any order."""

def unsorted_segment_prod(x, segment_ids, num_segments) -> Tensor:
    """Product of the rows of `x` that have the same number in `segment_ids`, in any order."""

def unsorted_segment_sum(input_x, segment_ids, num_segments) -> Tensor:
    """Sum of the rows of `x` that have the same number in `segment_ids`, in any order."""

def tuple_getitem(*args: Any, **kwargs: Any) -> Any:
    """Tuple getitem, of Python values."""

def list_getitem(*args: Any, **kwargs: Any) -> Any:
    """List getitem, of Python values."""

def dict_getitem(*args: Any, **kwargs: Any) -> Any:
    """Dict getitem, of Python values."""

def tuple_setitem(*args: Any, **kwargs: Any) -> Any:
    """Tuple setitem, of Python values."""

def list_setitem(*args: Any, **kwargs: Any) -> Any:
    """List setitem, of Python values."""

def dict_setitem(*args: Any, **kwargs: Any) -> Any:
    """Dict setitem, of Python values."""

def tuple_len(*args: Any, **kwargs: Any) -> Any:
    """Tuple len, of Python values."""

def list_len(*args: Any, **kwargs: Any) -> Any:
    """List len, of Python values."""

def tuple_equal(*args: Any, **kwargs: Any) -> Any:
    """Tuple equal, of Python values."""

def list_equal(*args: Any, **kwargs: Any) -> Any:
    """List equal, of Python values."""

def string_eq(*args: Any, **kwargs: Any) -> Any:
    """String eq, of Python values."""

def bool_eq(*args: Any, **kwargs: Any) -> Any:
    """Bool eq, of Python values."""

def scalar_ne(*args: Any, **kwargs: Any) -> Any:
    """Scalar ne, of Python values."""

def tuple_reversed(*args: Any, **kwargs: Any) -> Any:
    """Tuple reversed, of Python values."""

def tuple_div(*args: Any, **kwargs: Any) -> Any:
    """Tuple div, of Python values."""

def make_range(*args: Any, **kwargs: Any) -> Any:
    """Make range, of Python values."""

def make_tuple(*args: Any, **kwargs: Any) -> Any:
    """Make tuple, of Python values."""

def make_list(*args: Any, **kwargs: Any) -> Any:
    """Make list, of Python values."""

def make_dict(*args: Any, **kwargs: Any) -> Any:
    """Make dict, of Python values."""

def make_slice(*args: Any, **kwargs: Any) -> Any:
    """Make slice, of Python values."""

def string_concat(*args: Any, **kwargs: Any) -> Any:
    """String concat, of Python values."""

def bool_not(*args: Any, **kwargs: Any) -> Any:
    """Bool not, of Python values."""

def bool_or(*args: Any, **kwargs: Any) -> Any:
    """Bool or, of Python values."""

def bool_and(*args: Any, **kwargs: Any) -> Any:
    """Bool and, of Python values."""

def is_(*args: Any, **kwargs: Any) -> Any:
    """Is, of Python values."""

def is_not(*args: Any, **kwargs: Any) -> Any:
    """Is not, of Python values."""

def in_dict(*args: Any, **kwargs: Any) -> Any:
    """In dict, of Python values."""

def not_in_dict(*args: Any, **kwargs: Any) -> Any:
    """Not in dict, of Python values."""

def broadcast_gradient_args(*args: Any, **kwargs: Any) -> Any:
    """Broadcast gradient args, of Python values."""

def reduced_shape(*args: Any, **kwargs: Any) -> Any:
    """Reduced shape, of Python values."""

def switch(*args: Any, **kwargs: Any) -> Any:
    """Switch, of Python values."""

def isconstant(*args: Any, **kwargs: Any) -> Any:
    """Isconstant, of Python values."""

def hastype(*args: Any, **kwargs: Any) -> Any:
    """Hastype, of Python values."""

def is_tensor_bool_cond(*args: Any, **kwargs: Any) -> Any:
    """Is tensor bool cond, of Python values."""

def typeof(*args: Any, **kwargs: Any) -> Any:
    """Typeof, of Python values."""

def scalar_add(x, y) -> Any:
    """Scalar add, of Python values."""

def scalar_sub(x, y) -> Any:
    """Scalar sub, of Python values."""

def scalar_mul(x, y) -> Any:
    """Scalar mul, of Python values."""

def scalar_div(x, y) -> Any:
    """Scalar div, of Python values."""

def scalar_floordiv(x, y) -> Any:
    """Scalar floordiv, of Python values."""

def scalar_mod(x, y) -> Any:
    """Scalar mod, of Python values."""

def scalar_pow(x, y) -> Any:
    """Scalar pow, of Python values."""

def scalar_gt(x, y) -> Any:
    """Scalar gt, of Python values."""

def scalar_ge(x, y) -> Any:
    """Scalar ge, of Python values."""

def scalar_lt(x, y) -> Any:
    """Scalar lt, of Python values."""

def scalar_le(x, y) -> Any:
    """Scalar le, of Python values."""

def scalar_eq(x, y) -> Any:
    """Scalar eq, of Python values."""

def scalar_max(x, y) -> Any:
    """Scalar max, of Python values."""

def scalar_min(x, y) -> Any:
    """Scalar min, of Python values."""

def scalar_uadd(x) -> Any:
    """Scalar uadd, of Python values."""

def scalar_usub(x) -> Any:
    """Scalar usub, of Python values."""

def scalar_log(x) -> Any:
    """Scalar log, of Python values."""

def fft(input, n=None, dim=-1, norm=None) -> Tensor:
    """The Fourier transform, along axis `dim`."""

def fft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor:
    """The Fourier transform, along two axes."""

def fftfreq(n, d=1.0, dtype=None) -> Tensor:
    """Frequencies of `fft` over n samples at distance d: 0, 1, .., then the negative ones, over n * d."""

def fftn(input, s=None, dim=None, norm=None) -> Tensor:
    """The Fourier transform, along `dim`."""

def fftshift(input, dim=None) -> Tensor:
    """Frequency zero moved to the middle of the axes `dim`, all by default. Shapes: any -> same."""

def hfft(input, n=None, dim=-1, norm=None) -> Tensor:
    """The Fourier transform, which is real, of the first half of a Hermitian, along axis `dim`."""

def hfft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor:
    """The Fourier transform, which is real, of the first half of a Hermitian, along two axes."""

def hfftn(input, s=None, dim=None, norm=None) -> Tensor:
    """The Fourier transform, which is real, of the first half of a Hermitian, along `dim`."""

def ifft(input, n=None, dim=-1, norm=None) -> Tensor:
    """The inverse Fourier transform, along axis `dim`."""

def ifft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor:
    """The inverse Fourier transform, along two axes."""

def ifftn(input, s=None, dim=None, norm=None) -> Tensor:
    """The inverse Fourier transform, along `dim`."""

def ifftshift(input, dim=None) -> Tensor:
    """Frequency zero moved back to the start: undoes `fftshift`. Shapes: any -> same."""

def ihfft(input, n=None, dim=-1, norm=None) -> Tensor:
    """The first half of the inverse Fourier transform of real numbers, along axis `dim`."""

def ihfft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor:
    """The first half of the inverse Fourier transform of real numbers, along two axes."""

def ihfftn(input, s=None, dim=None, norm=None) -> Tensor:
    """The first half of the inverse Fourier transform of real numbers, along `dim`."""

def irfft(input, n=None, dim=-1, norm=None) -> Tensor:
    """The real numbers from the first half of their Fourier transform, along axis `dim`."""

def irfft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor:
    """The real numbers from the first half of their Fourier transform, along two axes."""

def irfftn(input, s=None, dim=None, norm=None) -> Tensor:
    """The real numbers from the first half of their Fourier transform, along `dim`."""

def rfft(input, n=None, dim=-1, norm=None) -> Tensor:
    """The first half of the Fourier transform of real numbers, along axis `dim`."""

def rfft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor:
    """The first half of the Fourier transform of real numbers, along two axes."""

def rfftfreq(n, d=1.0, dtype=None) -> Tensor:
    """Frequencies of `rfft` over n samples at distance d: 0 .. n // 2 over n * d."""

def rfftn(input, s=None, dim=None, norm=None) -> Tensor:
    """The first half of the Fourier transform of real numbers, along `dim`."""

def bartlett_window(window_length, periodic=True, *, dtype=None) -> Tensor:
    """Triangle: ``1 - |2 i / (n - 1) - 1|``."""

def blackman_window(window_length, periodic=True, *, dtype=None) -> Tensor:
    """``0.42 - 0.5 cos(2 pi i / (n - 1)) + 0.08 cos(4 pi i / (n - 1))``. Arguments as `bartlett_window`."""

def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None) -> Tensor:
    """``alpha - beta cos(2 pi i / (n - 1))``. Arguments as `bartlett_window`."""

def hann_window(window_length, periodic=True, *, dtype=None) -> Tensor:
    """``sin(pi i / (n - 1)) ** 2``. Arguments as `bartlett_window`, but float64 by default."""

def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None) -> Tensor:
    """``I0(beta sqrt(1 - (2 i / (n - 1) - 1) ** 2)) / I0(beta)``. As `bartlett_window`, but float64."""

def stft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='REFLECT', normalized=False, onesided=None, return_complex=None) -> Tensor:
    """Fourier transforms of overlapping, windowed pieces of a signal."""

def clip_by_global_norm(x: Sequence, clip_norm: float = 1.0, use_norm=None) -> tuple[Tensor, ...]:
    """Scale the Tensors so that the 2-norm of all elements together is at most `clip_norm`."""
env_get: _MultitypeFuncGraph
hyper_add: _HyperMap
adaptive_avg_pool2d_ext = _adaptive_avg_pool2d

def baddbmm_ext(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` by matrices. Shapes: [B, m, k], [B, k, n] -> [B, m, n]."""

def bernoulli_ext(input, *, generator=None) -> Tensor:
    """Ones with the probabilities `input`, and zeros."""

def diff_ext(input, n=1, dim=-1, prepend=None, append=None) -> Tensor:
    """Differences of neighbours along `axis`, taken `n` times; `prepend` and `append` are joined first."""
einsum_ext = _einsum

def isnan_ext(tensor) -> Tensor:
    """Where `input` is not a number; false for integers."""

def mse_loss_ext(input, target, reduction='mean') -> Tensor:
    """Mean squared error: ``(input - target)^2``, reduced."""

def all_gather_object(object_list, obj, group=None) -> None:
    """The objects of all processes, into `object_list`."""

def broadcast_object_list(object_list, src=0, group=None, device=None) -> None:
    """The objects of process `src` to all, in place; the lists are of one length."""

def destroy_process_group(group=None) -> None:
    """Forget a group, or leave all of them."""

def gather_object(obj, object_gather_list=None, dst=0, group=None) -> None:
    """The objects of all processes, into `object_gather_list` of process `dst`."""

def init_process_group(backend='hccl', init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name='', pg_options=None, device_id=None) -> None:
    """Join the processes that a launcher started, or those that meet at ``init_method="tcp://host:port"``, where `rank` 0 of `world_size` listens; without either the group is this process alone."""

def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None) -> str:
    """A group of `ranks` (all by default); its name. All processes make the same groups in the same order."""

def recv(tensor, src=0, group=None, tag=0) -> None:
    """Receive a tensor from process `src`, in place."""

def scatter_object_list(scatter_object_output_list, scatter_object_input_list, src=0, group=None) -> None:
    """Entry i of the list of process `src` becomes the first of the output list of process i."""

def send(tensor, dst=0, group=None, tag=0) -> None:
    """Send a tensor to process `dst`."""

def send_object_list(object_list, dst, group=None, device=None) -> None:
    """Send objects to process `dst`."""

def gather_into_tensor(tensor, dst=0, group='hccl_world_group') -> Tensor:
    """Those of all processes joined along the first axis, at process `dst`; the others get a tensor of shape [1] without meaning."""

def scatter_tensor(tensor, src=0, group='hccl_world_group') -> Tensor:
    """The part of the first axis that process `src` has for this one; `tensor` has the same shape on all."""

def rotated_iou(boxes, query_boxes, trans=False, mode=0, is_cross=True, v_threshold=0.0, e_threshold=0.0) -> Tensor:
    """Overlap of turned boxes (x, y, w, h, degrees) over their union, `mode` 1: over the area of the first."""

def all_gather_matmul(*args, **kwargs) -> Any:
    """`all_gather_matmul` of MindSpore on Ascend. Errors: NotSupportedError."""

def all_to_all_v_c(output, input, send_count_matrix, group=None, async_op=False) -> Any:
    """`all_to_all_v_c` of MindSpore on Ascend. Errors: NotSupportedError."""

def flash_attention_score(query, key, value, head_num, *args, **kwargs) -> Any:
    """`flash_attention_score` of MindSpore on Ascend. Errors: NotSupportedError."""

def fused_infer_attention_score(query, key, value, *args, **kwargs) -> Any:
    """`fused_infer_attention_score` of MindSpore on Ascend. Errors: NotSupportedError."""

def incre_flash_attention(query, key, value, *args, **kwargs) -> Any:
    """`incre_flash_attention` of MindSpore on Ascend. Errors: NotSupportedError."""

def lightning_indexer(*args, **kwargs) -> Any:
    """`lightning_indexer` of MindSpore on Ascend. Errors: NotSupportedError."""

def matmul_reduce_scatter(*args, **kwargs) -> Any:
    """`matmul_reduce_scatter` of MindSpore on Ascend. Errors: NotSupportedError."""

def moe_distribute_combine(expand_x, expert_ids, expand_idx, ep_send_counts, expert_scales, ep_world_size, ep_rank_id, moe_expert_num, *args, **kwargs) -> Any:
    """`moe_distribute_combine` of MindSpore on Ascend. Errors: NotSupportedError."""

def moe_distribute_dispatch(x, expert_ids, ep_world_size, ep_rank_id, moe_expert_num, *args, **kwargs) -> Any:
    """`moe_distribute_dispatch` of MindSpore on Ascend. Errors: NotSupportedError."""

def moe_init_routing_v2(x, expert_idx, active_num, expert_capacity, expert_num, drop_pad_mode, expert_tokens_count_or_cumsum_flag, expert_tokens_before_capacity_flag) -> Any:
    """`moe_init_routing_v2` of MindSpore on Ascend. Errors: NotSupportedError."""

def multi_scale_deformable_attn_function(value, shape, offset, locations, weight) -> Any:
    """`multi_scale_deformable_attn_function` of MindSpore on Ascend. Errors: NotSupportedError."""

def nsa_compress(*args, **kwargs) -> Any:
    """`nsa_compress` of MindSpore on Ascend. Errors: NotSupportedError."""

def nsa_compress_attention(*args, **kwargs) -> Any:
    """`nsa_compress_attention` of MindSpore on Ascend. Errors: NotSupportedError."""

def nsa_select_attention(*args, **kwargs) -> Any:
    """`nsa_select_attention` of MindSpore on Ascend. Errors: NotSupportedError."""

def prompt_flash_attention(query, key, value, *args, **kwargs) -> Any:
    """`prompt_flash_attention` of MindSpore on Ascend. Errors: NotSupportedError."""

def ring_attention_update(prev_attn_out, prev_softmax_max, prev_softmax_sum, cur_attn_out, cur_softmax_max, cur_softmax_sum, actual_seq_qlen=None, layout='SBH') -> Any:
    """`ring_attention_update` of MindSpore on Ascend. Errors: NotSupportedError."""

def sparse_flash_attention(*args, **kwargs) -> Any:
    """`sparse_flash_attention` of MindSpore on Ascend. Errors: NotSupportedError."""

def speed_fusion_attention(query, key, value, head_num, input_layout, *args, **kwargs) -> Any:
    """`speed_fusion_attention` of MindSpore on Ascend. Errors: NotSupportedError."""

def coo_tensor_get_dense_shape(x) -> Any:
    """`dense_shape` of a COOTensor."""

def coo_tensor_get_indices(x) -> Any:
    """`indices` of a COOTensor."""

def coo_tensor_get_values(x) -> Any:
    """`values` of a COOTensor."""

def csr_tensor_get_dense_shape(x) -> Any:
    """`dense_shape` of a CSRTensor."""

def csr_tensor_get_indices(x) -> Any:
    """`indices` of a CSRTensor."""

def csr_tensor_get_indptr(x) -> Any:
    """`indptr` of a CSRTensor."""

def csr_tensor_get_values(x) -> Any:
    """`values` of a CSRTensor."""

def is_sequence_shape_unknown(sequence) -> bool:
    """Whether the length counts as unknown: what `mutable(..., True)` made in a graph, and made of that."""

def make_coo_tensor(*parts) -> Any:
    """A COOTensor of its parts."""

def make_csr_tensor(*parts) -> Any:
    """A CSRTensor of its parts."""

def make_row_tensor(*parts) -> Any:
    """A RowTensor of its parts."""

def make_row_tensor_inner(*parts) -> Any:
    """A RowTensor of its parts."""

def make_sparse_tensor(*parts) -> Any:
    """A SparseTensor of its parts."""

def row_tensor_add(x, y) -> Tensor:
    """A dense tensor plus the rows of a RowTensor at their places."""

def row_tensor_get_dense_shape(x) -> Any:
    """`dense_shape` of a RowTensor."""

def row_tensor_get_indices(x) -> Any:
    """`indices` of a RowTensor."""

def row_tensor_get_values(x) -> Any:
    """`values` of a RowTensor."""

def tensor_muls(input, other) -> Tensor:
    """`input` times a number."""

def tensor_range(start, end, step) -> Tensor:
    """Numbers from `start` to below `end` in steps."""

def bernoulli_(input, p=0.5, *, generator=None) -> Tensor:
    """Fill with ones of probability `p` and zeros, in place."""

def inplace_sigmoid(input) -> Tensor:
    """Sigmoid in place."""

def put_(input, index, source, accumulate=False) -> Tensor:
    """Write `source` to the places `index` of the flat tensor, in place; `accumulate`: add."""

def reshape_(input, shape) -> Tensor:
    """The same memory under another shape."""

def stop_gradient_(input) -> None:
    """No gradient flows into this tensor from now on."""

def zero_(input) -> Tensor:
    """Fill with zeros in place."""

def moe_token_permute(tokens, indices, num_out_tokens=None, padded_mode=False) -> tuple[Tensor, Tensor]:
    """Tokens in the order of their experts, and for each (expert's turn, token) its new place."""

def moe_token_unpermute(permuted_tokens, sorted_indices, probs=None, padded_mode=False, restore_shape=None) -> Tensor:
    """The tokens in their first order; those of several experts are summed, weighted by `probs` [n, k]."""

def rotary_position_embedding(x, cos, sin, mode=0) -> Tensor:
    """``x * cos + turned(x) * sin``; turned: halves (`mode` 0) or neighbours (1) exchanged, the first negated."""

def coo_abs(x) -> Any:
    """The COOTensor of `abs` of each value that `x` holds."""

def csr_abs(x) -> Any:
    """The CSRTensor of `abs` of each value that `x` holds."""

def coo_acos(x) -> Any:
    """The COOTensor of `acos` of each value that `x` holds."""

def csr_acos(x) -> Any:
    """The CSRTensor of `acos` of each value that `x` holds."""

def coo_acosh(x) -> Any:
    """The COOTensor of `acosh` of each value that `x` holds."""

def csr_acosh(x) -> Any:
    """The CSRTensor of `acosh` of each value that `x` holds."""

def coo_asin(x) -> Any:
    """The COOTensor of `asin` of each value that `x` holds."""

def csr_asin(x) -> Any:
    """The CSRTensor of `asin` of each value that `x` holds."""

def coo_asinh(x) -> Any:
    """The COOTensor of `asinh` of each value that `x` holds."""

def csr_asinh(x) -> Any:
    """The CSRTensor of `asinh` of each value that `x` holds."""

def coo_atan(x) -> Any:
    """The COOTensor of `atan` of each value that `x` holds."""

def csr_atan(x) -> Any:
    """The CSRTensor of `atan` of each value that `x` holds."""

def coo_atanh(x) -> Any:
    """The COOTensor of `atanh` of each value that `x` holds."""

def csr_atanh(x) -> Any:
    """The CSRTensor of `atanh` of each value that `x` holds."""

def coo_ceil(x) -> Any:
    """The COOTensor of `ceil` of each value that `x` holds."""

def csr_ceil(x) -> Any:
    """The CSRTensor of `ceil` of each value that `x` holds."""

def coo_cos(x) -> Any:
    """The COOTensor of `cos` of each value that `x` holds."""

def csr_cos(x) -> Any:
    """The CSRTensor of `cos` of each value that `x` holds."""

def coo_cosh(x) -> Any:
    """The COOTensor of `cosh` of each value that `x` holds."""

def csr_cosh(x) -> Any:
    """The CSRTensor of `cosh` of each value that `x` holds."""

def coo_exp(x) -> Any:
    """The COOTensor of `exp` of each value that `x` holds."""

def csr_exp(x) -> Any:
    """The CSRTensor of `exp` of each value that `x` holds."""

def coo_expm1(x) -> Any:
    """The COOTensor of `expm1` of each value that `x` holds."""

def csr_expm1(x) -> Any:
    """The CSRTensor of `expm1` of each value that `x` holds."""

def coo_floor(x) -> Any:
    """The COOTensor of `floor` of each value that `x` holds."""

def csr_floor(x) -> Any:
    """The CSRTensor of `floor` of each value that `x` holds."""

def coo_inv(x) -> Any:
    """The COOTensor of `inv` of each value that `x` holds."""

def csr_inv(x) -> Any:
    """The CSRTensor of `inv` of each value that `x` holds."""

def coo_isfinite(x) -> Any:
    """The COOTensor of `isfinite` of each value that `x` holds."""

def csr_isfinite(x) -> Any:
    """The CSRTensor of `isfinite` of each value that `x` holds."""

def coo_isinf(x) -> Any:
    """The COOTensor of `isinf` of each value that `x` holds."""

def csr_isinf(x) -> Any:
    """The CSRTensor of `isinf` of each value that `x` holds."""

def coo_isnan(x) -> Any:
    """The COOTensor of `isnan` of each value that `x` holds."""

def csr_isnan(x) -> Any:
    """The CSRTensor of `isnan` of each value that `x` holds."""

def coo_log(x) -> Any:
    """The COOTensor of `log` of each value that `x` holds."""

def csr_log(x) -> Any:
    """The CSRTensor of `log` of each value that `x` holds."""

def coo_log1p(x) -> Any:
    """The COOTensor of `log1p` of each value that `x` holds."""

def csr_log1p(x) -> Any:
    """The CSRTensor of `log1p` of each value that `x` holds."""

def coo_neg(x) -> Any:
    """The COOTensor of `neg` of each value that `x` holds."""

def csr_neg(x) -> Any:
    """The CSRTensor of `neg` of each value that `x` holds."""

def coo_relu(x) -> Any:
    """The COOTensor of `relu` of each value that `x` holds."""

def csr_relu(x) -> Any:
    """The CSRTensor of `relu` of each value that `x` holds."""

def coo_relu6(x) -> Any:
    """The COOTensor of `relu6` of each value that `x` holds."""

def csr_relu6(x) -> Any:
    """The CSRTensor of `relu6` of each value that `x` holds."""

def coo_round(x) -> Any:
    """The COOTensor of `round` of each value that `x` holds."""

def csr_round(x) -> Any:
    """The CSRTensor of `round` of each value that `x` holds."""

def coo_sigmoid(x) -> Any:
    """The COOTensor of `sigmoid` of each value that `x` holds."""

def csr_sigmoid(x) -> Any:
    """The CSRTensor of `sigmoid` of each value that `x` holds."""

def coo_sin(x) -> Any:
    """The COOTensor of `sin` of each value that `x` holds."""

def csr_sin(x) -> Any:
    """The CSRTensor of `sin` of each value that `x` holds."""

def coo_sinh(x) -> Any:
    """The COOTensor of `sinh` of each value that `x` holds."""

def csr_sinh(x) -> Any:
    """The CSRTensor of `sinh` of each value that `x` holds."""

def coo_softsign(x) -> Any:
    """The COOTensor of `softsign` of each value that `x` holds."""

def csr_softsign(x) -> Any:
    """The CSRTensor of `softsign` of each value that `x` holds."""

def coo_sqrt(x) -> Any:
    """The COOTensor of `sqrt` of each value that `x` holds."""

def csr_sqrt(x) -> Any:
    """The CSRTensor of `sqrt` of each value that `x` holds."""

def coo_square(x) -> Any:
    """The COOTensor of `square` of each value that `x` holds."""

def csr_square(x) -> Any:
    """The CSRTensor of `square` of each value that `x` holds."""

def coo_tan(x) -> Any:
    """The COOTensor of `tan` of each value that `x` holds."""

def csr_tan(x) -> Any:
    """The CSRTensor of `tan` of each value that `x` holds."""

def coo_tanh(x) -> Any:
    """The COOTensor of `tanh` of each value that `x` holds."""

def csr_tanh(x) -> Any:
    """The CSRTensor of `tanh` of each value that `x` holds."""

class AddV2(_Operation):
    """Elementwise ``input + other``; "or" for bool."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...

class FastGelu(_Operation):
    """Sigmoid form of gelu: ``x * sigmoid(1.702 * x)``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...

class Gelu(_Operation):
    """Gaussian error linear unit by its tanh approximation. Source: Hendrycks and Gimpel 2016."""
    def __init__(self) -> None: ...
    def __call__(self, x) -> Tensor: ...

class TensorAdd(_Operation):
    """Elementwise ``input + other``; "or" for bool."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
