# Written by tools/gen_stubs.py.
import builtins
from collections.abc import Iterator as Iterator, Sequence as Sequence
from mycelia.engine._C import Tensor as Tensor, TensorLike as TensorLike
from typing import Any as Any


class TensorMethods:
    def __add__(self, other: TensorLike) -> Tensor: ...
    def __radd__(self, other: TensorLike) -> Tensor: ...
    def __sub__(self, other: TensorLike) -> Tensor: ...
    def __rsub__(self, other: TensorLike) -> Tensor: ...
    def __mul__(self, other: TensorLike) -> Tensor: ...
    def __rmul__(self, other: TensorLike) -> Tensor: ...
    def __truediv__(self, other: TensorLike) -> Tensor: ...
    def __rtruediv__(self, other: TensorLike) -> Tensor: ...
    def __floordiv__(self, other: TensorLike) -> Tensor: ...
    def __rfloordiv__(self, other: TensorLike) -> Tensor: ...
    def __mod__(self, other: TensorLike) -> Tensor: ...
    def __rmod__(self, other: TensorLike) -> Tensor: ...
    def __pow__(self, other: TensorLike) -> Tensor: ...
    def __rpow__(self, other: TensorLike) -> Tensor: ...
    def __matmul__(self, other: TensorLike) -> Tensor: ...
    def __rmatmul__(self, other: TensorLike) -> Tensor: ...
    def __and__(self, other: TensorLike) -> Tensor: ...
    def __rand__(self, other: TensorLike) -> Tensor: ...
    def __or__(self, other: TensorLike) -> Tensor: ...
    def __ror__(self, other: TensorLike) -> Tensor: ...
    def __xor__(self, other: TensorLike) -> Tensor: ...
    def __rxor__(self, other: TensorLike) -> Tensor: ...
    def __lshift__(self, other: TensorLike) -> Tensor: ...
    def __rlshift__(self, other: TensorLike) -> Tensor: ...
    def __rshift__(self, other: TensorLike) -> Tensor: ...
    def __rrshift__(self, other: TensorLike) -> Tensor: ...
    def __lt__(self, other: TensorLike) -> Tensor: ...
    def __le__(self, other: TensorLike) -> Tensor: ...
    def __gt__(self, other: TensorLike) -> Tensor: ...
    def __ge__(self, other: TensorLike) -> Tensor: ...
    def __eq__(self, other: TensorLike) -> Tensor: ...  # type: ignore
    def __ne__(self, other: TensorLike) -> Tensor: ...  # type: ignore
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __bool__(self) -> builtins.bool: ...
    def __int__(self) -> builtins.int: ...
    def __float__(self) -> builtins.float: ...
    def __index__(self) -> builtins.int: ...
    def __len__(self) -> builtins.int: ...
    def __hash__(self) -> builtins.int: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: TensorLike) -> None: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
    @property
    def T(self, *axes, dim0=None, dim1=None) -> Tensor:
        """All axes in reverse, in the order `axes`, or (two ints) two axes exchanged."""
    def abs(self) -> Tensor:
        """Elementwise absolute value; the most negative integer stays as it is."""
    def absolute(self) -> Tensor:
        """Elementwise absolute value."""
    def acos(self) -> Tensor:
        """Elementwise inverse cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""
    def acosh(self) -> Tensor:
        """Elementwise inverse hyperbolic cosine; NaN below 1."""
    def add(self, other, *, alpha=1) -> Tensor:
        """``self + alpha * other``; `other` may be a list or tuple of numbers."""
    def add_(self, other, *, alpha=1) -> Tensor:
        """``self + alpha * other``; `other` may be a list or tuple of numbers. Replaces the value of this Tensor."""
    def addbmm(self, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
        """``beta * input + alpha * sum over b of batch1[b] @ batch2[b]``. Shapes: [B, m, k], [B, k, n] -> [m, n]."""
    def addcdiv(self, tensor1, tensor2, value=1) -> Tensor:
        """``input + value * tensor1 / tensor2``."""
    def addcmul(self, tensor1, tensor2, value=1) -> Tensor:
        """``self + value * tensor1 * tensor2``."""
    def addmm(self, mat1, mat2, *, beta=1, alpha=1) -> Tensor:
        """``beta * input + alpha * (mat1 @ mat2)``. Shapes: input like [m, n]; [m, k], [k, n] -> [m, n]."""
    def addmm_(self, mat1, mat2, *, beta=1, alpha=1) -> Tensor:
        """``beta * input + alpha * (mat1 @ mat2)``. Shapes: input like [m, n]; [m, k], [k, n] -> [m, n]. In place; returns this tensor."""
    def addmv(self, mat, vec, *, beta=1, alpha=1) -> Tensor:
        """``beta * input + alpha * (mat @ vec)``. Shapes: input like [m]; [m, k], [k] -> [m]."""
    def addr(self, vec1, vec2, *, beta=1, alpha=1) -> Tensor:
        """``beta * x + alpha * outer(vec1, vec2)``. Shapes: x like [m, n]; [m], [n] -> [m, n]."""
    def adjoint(self) -> Tensor:
        """The last two axes exchanged and conjugated."""
    def all(self, axis=None, keep_dims=False, *, dim=None, keepdim=False) -> Tensor:
        """Whether all elements over `axis` (or `dim`) are true."""
    def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> builtins.bool:
        """Whether all elements are close: ``|self - other| <= atol + rtol * |other|``; a Python bool."""
    def amax(self, axis=None, keepdims=False, *, initial=None, where=None) -> Tensor:
        """Largest element over `axis` (all by default), of those that the mask `where` admits, and of `initial`."""
    def amin(self, axis=None, keepdims=False, *, initial=None, where=None) -> Tensor:
        """Smallest element over `axis` (all by default), of those that the mask `where` admits, and of `initial`."""
    def aminmax(self, *, axis=0, keepdims=False) -> tuple[Tensor, Tensor]:
        """Smallest and largest element along `axis`, without regard to NaN; None means all axes."""
    def angle(self) -> Tensor:
        """Argument of complex numbers in radians. Shapes: any -> same. dtypes: complex -> floating."""
    def any(self, axis=None, keep_dims=False, *, dim=None, keepdim=False) -> Tensor:
        """Whether some element over `axis` (or `dim`) is true."""
    def approximate_equal(self, y, tolerance=1e-05) -> Tensor:
        """Where ``|x - y| < tolerance``. Shapes: broadcast. dtypes: real, promoted -> bool."""
    def arccos(self) -> Tensor:
        """Elementwise inverse cosine in radians, in [0, pi]; NaN outside of [-1, 1]."""
    def arccosh(self) -> Tensor:
        """Elementwise inverse hyperbolic cosine; NaN below 1."""
    def arcsin(self) -> Tensor:
        """Elementwise inverse sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    def arcsinh(self) -> Tensor:
        """Elementwise inverse hyperbolic sine."""
    def arctan(self) -> Tensor:
        """Elementwise inverse tangent in radians, in [-pi/2, pi/2]."""
    def arctan2(self, other: TensorLike) -> Tensor:
        """Angle in radians of the point (x = `other`, y = `input`), in [-pi, pi]."""
    def arctanh(self) -> Tensor:
        """Elementwise inverse hyperbolic tangent; NaN outside of [-1, 1]."""
    def argmax(self, axis=None, keepdims=False, *, dim=None, keepdim=False) -> Tensor:
        """Place of the largest element along `axis` (or `dim`), or in the flattened Tensor."""
    def argmax_with_value(self, axis=0, keep_dims=False) -> tuple[Tensor, Tensor]:
        """Largest element along `axis` and its place."""
    def argmin(self, axis=None, keepdims=False, *, dim=None, keepdim=False) -> Tensor:
        """Place of the smallest element along `axis` (or `dim`), or in the flattened Tensor."""
    def argmin_with_value(self, axis=0, keep_dims=False) -> tuple[Tensor, Tensor]:
        """Smallest element along `axis` and its place."""
    def argsort(self, axis=-1, descending=False, *, dim=None, stable=False) -> Tensor:
        """The positions that put an axis in order; always stable."""
    def argwhere(self) -> Tensor:
        """The positions of the elements that are not zero, one a row."""
    def asin(self) -> Tensor:
        """Elementwise inverse sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    def asinh(self) -> Tensor:
        """Elementwise inverse hyperbolic sine."""
    def assign_value(self, value) -> Tensor:
        """Become the tensor `value`, of any shape and dtype; returns this one."""
    def assign_value_cpp(self, value) -> Tensor:
        """Take the memory of another tensor, of any shape and dtype; returns this one."""
    def astype(self, dtype, copy=True) -> Tensor:
        """This Tensor with elements of `dtype`: a mycelia or NumPy dtype, a Python type, or a name."""
    def atan(self) -> Tensor:
        """Elementwise inverse tangent in radians, in [-pi/2, pi/2]."""
    def atan2(self, other: TensorLike) -> Tensor:
        """Angle in radians of the point (x = `other`, y = `input`), in [-pi, pi]."""
    def atanh(self) -> Tensor:
        """Elementwise inverse hyperbolic tangent; NaN outside of [-1, 1]."""
    def baddbmm(self, batch1, batch2, beta=1, alpha=1) -> Tensor:
        """``beta * input + alpha * (batch1 @ batch2)`` by matrices. Shapes: [B, m, k], [B, k, n] -> [B, m, n]."""
    def bernoulli(self, *, generator=None) -> Tensor:
        """1 with the probability that each element gives, else 0."""
    def bernoulli_(self, p=0.5, *, generator=None) -> Tensor:
        """1 with probability `p`, else 0. In place; returns this tensor."""
    def bfloat16(self) -> Tensor:
        """This Tensor with elements of bfloat16."""
    def bincount(self, weights=None, minlength=0) -> Tensor:
        """Number of times that 0, 1, 2, ... occur in `input`, or the sum of their weights."""
    def bitwise_and(self, other: TensorLike) -> Tensor:
        """Bits set in both operands."""
    def bitwise_left_shift(self, other: TensorLike) -> Tensor:
        """``input * 2**other`` in the dtype's width; counts outside of it give 0."""
    def bitwise_not(self) -> Tensor:
        """Flips every bit: ``-x - 1`` for signed integers, "not" for bool."""
    def bitwise_or(self, other: TensorLike) -> Tensor:
        """Bits set in either operand."""
    def bitwise_right_shift(self, other: TensorLike) -> Tensor:
        """``floor(input / 2**other)``: arithmetic shift; counts outside of the width give 0 or -1."""
    def bitwise_xor(self, other: TensorLike) -> Tensor:
        """Bits set in exactly one operand."""
    def bmm(self, mat2) -> Tensor:
        """Products of the matrices in the last two axes. Shapes: [B.., m, k] and [B.., k, n] -> [B.., m, n]."""
    def bool(self) -> Tensor:
        """This Tensor with elements of bool."""
    def broadcast_to(self, *shape, **second_names) -> Tensor:
        """Repeated along axes of size 1 up to `shape`; -1 keeps a size."""
    def byte(self) -> Tensor:
        """This Tensor with elements of uint8."""
    def cauchy(self, median=0.0, sigma=1.0) -> Tensor:
        """A tensor of this shape with samples of the Cauchy distribution, float32."""
    def ceil(self) -> Tensor:
        """Smallest integer not below `input`."""
    def cholesky(self, upper=False) -> Tensor:
        """Triangular L with ``L @ L.T = input_x``; with `upper` its transpose."""
    def cholesky_inverse(self, upper=False) -> Tensor:
        """Inverse of the matrix whose Cholesky factor is given. Shapes: [.., n, n] -> same."""
    def cholesky_solve(self, input2, upper=False) -> Tensor:
        """The x of ``A @ x = input``, given the Cholesky factor `input2` of A. Shapes: [.., n, k], [.., n, n]."""
    def choose(self, choices, mode='clip') -> Tensor:
        """At each place the element of the tensor of `choices` that this integer tensor names."""
    def chunk(self, chunks, axis=0, *, dim=None) -> Any:
        """At most `chunks` pieces of one size along an axis."""
    def clamp(self, min=None, max=None) -> Tensor:
        """`input` limited to [min, max]; either bound may be missing; `max` wins where they cross."""
    def clamp_(self, min=None, max=None) -> Tensor:
        """`input` limited to [min, max]; either bound may be missing; `max` wins where they cross. Replaces the value of this Tensor."""
    def clip(self, min=None, max=None) -> Tensor:
        """`input` limited to [min, max]; either bound may be missing; `max` wins where they cross."""
    def clone(self) -> Tensor:
        """The same values in memory of their own; gradients flow back."""
    def col2im(self, output_size, kernel_size, dilation, padding_value, stride) -> Tensor:
        """Sum of columns at the places from which sliding windows took them."""
    def conj(self) -> Tensor:
        """Complex conjugate; real numbers stay. Shapes: any -> same."""
    @property
    def const_arg(self) -> builtins.bool:
        """Whether it is a constant of the functions that are compiled for it."""
    def contiguous(self) -> Tensor:
        """This tensor."""
    @staticmethod
    def convert_bytes_to_tensor(content, shape, dtype) -> Any:
        """A tensor of `shape` and `dtype` from its bytes."""
    def copy(self) -> Tensor:
        """The same values in memory of their own; gradients flow back."""
    def copy_(self, src, non_blocking=False) -> Tensor:
        """The elements of `src`, broadcast and cast. In place; returns this tensor."""
    def copysign(self, other: TensorLike) -> Tensor:
        """Magnitude of `x` with the sign of `other`; negative zero counts as negative."""
    def cos(self) -> Tensor:
        """Elementwise cosine of an angle in radians."""
    def cosh(self) -> Tensor:
        """Elementwise hyperbolic cosine."""
    def count_nonzero(self, axis=(), keep_dims=False, dtype=..., *, dim=None) -> Tensor:
        """Number of elements over `axis` (or `dim`) that are not zero."""
    def cov(self, *, correction=1, fweights=None, aweights=None) -> Tensor:
        """Covariance of the variables in the rows of `input`, observed in its columns."""
    def cross(self, other, dim=None) -> Tensor:
        """Cross product of vectors of 3 along `dim`; the default is the first axis of size 3."""
    def cummax(self, axis) -> tuple[Tensor, Tensor]:
        """Largest element so far along `axis` and its place."""
    def cummin(self, axis) -> tuple[Tensor, Tensor]:
        """Smallest element so far along `axis` and its place."""
    def cumprod(self, dim, dtype=None) -> Tensor:
        """Products of all elements up to each one along `dim`, in `dtype` if given; integers give int64."""
    def cumsum(self, axis=None, dtype=None, *, dim=None) -> Tensor:
        """Running sum along `axis` (or `dim`); of the flattened Tensor if neither is given."""
    @property
    def data(self) -> Any:
        """The values as a tensor without gradient that shares them."""
    @data.setter
    def data(self, value) -> None: ...
    def data_ptr(self) -> Any:
        """The address of the first element."""
    def data_sync(self, *args, **kwargs) -> None:
        """Nothing: values are there when a call returns."""
    def deg2rad(self) -> Tensor:
        """Degrees to radians."""
    def delete_(self, non_blocking=False) -> None:
        """Give the memory back: the tensor is empty from then on."""
    delta_seed: builtins.int
    def det(self) -> Tensor:
        """Determinant of each matrix."""
    @property
    def device(self) -> str:
        """Where it lies: 'CPU', or the device of a backend with memory of its own, such as 'Ascend:0'."""
    def diag(self, diagonal=None) -> Tensor:
        """The tensor on the diagonal of one of twice its rank; with `diagonal`: a matrix from a vector or the reverse."""
    def diag_embed(self, offset=0, dim1=-2, dim2=-1) -> Tensor:
        """Matrices with the last axis of the input on a diagonal, zero elsewhere, spanned by the new axes dim1 and dim2."""
    def diagflat(self, offset=0) -> Tensor:
        """A matrix with the elements of the input, flattened, on the given diagonal."""
    def diagonal(self, offset=0, axis1=0, axis2=1, *, dim1=None, dim2=None) -> Tensor:
        """The diagonal of the planes of two axes, as the last axis."""
    def diagonal_scatter(self, src, offset=0, dim1=0, dim2=1) -> Tensor:
        """`input` with `src` on the diagonal that `diagonal` reads."""
    def diff(self, n=1, axis=-1, prepend=None, append=None) -> Tensor:
        """Differences of neighbours along `axis`, taken `n` times; `prepend` and `append` are joined first."""
    def digamma(self) -> Tensor:
        """Derivative of lgamma; minus infinity at 0, NaN at the negative integers."""
    def dim(self) -> builtins.int:
        """Number of axes."""
    def div(self, other, *, rounding_mode=None) -> Tensor:
        """Elementwise quotient: true, or rounded by `rounding_mode` "floor" (down) or "trunc" (to zero)."""
    def div_(self, other, *, rounding_mode=None) -> Tensor:
        """Elementwise quotient: true, or rounded by `rounding_mode` "floor" (down) or "trunc" (to zero). Replaces the value of this Tensor."""
    def divide(self, other, *, rounding_mode=None) -> Tensor:
        """Elementwise quotient: true, or rounded by `rounding_mode` "floor" (down) or "trunc" (to zero)."""
    def dot(self, other) -> Tensor:
        """Sum of products over the last axis of `input` and the second to last of `other`."""
    def double(self) -> Tensor:
        """This Tensor with elements of float64."""
    def dsplit(self, indices_or_sections) -> Any:
        """`tensor_split` along the third axis."""
    def eigvals(self) -> Tensor:
        """Eigenvalues of square matrices, always complex. Shapes: [.., n, n] -> [.., n]."""
    def eq(self, other: TensorLike) -> Tensor:
        """Elementwise ``input == other``; NaN equals nothing."""
    def equal(self, other: TensorLike) -> Tensor:
        """Elementwise ``input == other``; NaN equals nothing."""
    def erf(self) -> Tensor:
        """Error function: ``2 / sqrt(pi) * integral of exp(-t**2) from 0 to input``."""
    def erfc(self) -> Tensor:
        """Complement of the error function, ``1 - erf(input)``, accurate also where it is tiny."""
    def erfinv(self) -> Tensor:
        """Inverse of the error function; infinite at -1 and 1, NaN beyond."""
    def erfinv_(self) -> Tensor:
        """Inverse of the error function; infinite at -1 and 1, NaN beyond. Replaces the value of this Tensor."""
    def exp(self) -> Tensor:
        """Elementwise ``e ** input``."""
    def exp2(self) -> Tensor:
        """Elementwise ``2 ** input``."""
    def exp_(self) -> Tensor:
        """Elementwise ``e ** input``. Replaces the value of this Tensor."""
    def expand(self, *shape, **second_names) -> Tensor:
        """Repeated along axes of size 1 up to `shape`; -1 keeps a size."""
    def expand_as(self, other, **second_names) -> Tensor:
        """`input` broadcast to the shape of `other`."""
    def expand_dims(self, axis: builtins.int) -> Tensor:
        """Insert an axis of size 1 at `axis`, counted in the result."""
    def expm1(self) -> Tensor:
        """Elementwise ``e ** input - 1``, accurate near zero."""
    def exponential_(self, lambd=1, *, generator=None) -> Tensor:
        """Overwrites `input` with numbers of the exponential distribution with rate `lambd`."""
    def fill(self, value) -> Tensor:
        """A tensor of this shape and dtype with `value` everywhere."""
    def fill_(self, value) -> Tensor:
        """fill in place; returns this tensor."""
    def fill_diagonal(self, fill_value, wrap=False) -> Tensor:
        """A copy with `fill_value` on the main diagonal; with `wrap` again and again down a tall matrix."""
    def fill_diagonal_(self, fill_value, wrap=False) -> Tensor:
        """A copy with `fill_value` on the main diagonal; with `wrap` again and again down a tall matrix. In place; returns this tensor."""
    def fills(self, value) -> Tensor:
        """A tensor of the shape and dtype of `x` with `value` everywhere."""
    def flatten(self, *args, order='C', start_dim=None, end_dim=None) -> Tensor:
        """``flatten(start_dim=0, end_dim=-1)`` or ``flatten(order, *, start_dim, end_dim)``: the axes between merged into one."""
    def flip(self, *dims, **second_names) -> Tensor:
        """The elements along `dims` in reverse order."""
    def fliplr(self) -> Tensor:
        """Reverse the second axis."""
    def flipud(self) -> Tensor:
        """Reverse the first axis."""
    def float(self) -> Tensor:
        """This Tensor with elements of float32."""
    def float_power(self, exponent, **second_names) -> Tensor:
        """``input ** exponent`` computed in float64."""
    def floor(self) -> Tensor:
        """Largest integer not above `input`."""
    def floor_(self) -> Tensor:
        """Largest integer not above `input`. Replaces the value of this Tensor."""
    def floor_divide(self, other) -> Tensor:
        """Quotient rounded down: ``floor(input / other)``."""
    def floor_divide_(self, other) -> Tensor:
        """Quotient rounded down: ``floor(input / other)``. Replaces the value of this Tensor."""
    def flush_from_cache(self, *args, **kwargs) -> None:
        """Nothing: values are there when a call returns."""
    def fmax(self, other) -> Tensor:
        """Elementwise larger operand; where one is NaN, the other."""
    def fmin(self, other) -> Tensor:
        """Elementwise smaller operand; where one is NaN, the other."""
    def fmod(self, other) -> Tensor:
        """Remainder with the sign of the dividend, as C's ``fmod``."""
    def fold(self, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
        """Sum of columns at the places `unfold` takes them from."""
    def frac(self) -> Tensor:
        """The fraction of `x`, with its sign: ``x - trunc(x)``."""
    @staticmethod
    def from_dlpack(dlpack) -> Any:
        """A tensor on the memory of a DLPack capsule, or of an object that offers one."""
    def gather(self, *args, **kwargs) -> Tensor:
        """Slices along `axis` at ``input_indices`` (with `batch_dims`), or ``gather(dim, index)``: elements along `dim`."""
    def gather_d(self, dim, index) -> Tensor:
        """Elements picked along axis `dim`: ``y[i, j] = x[i, index[i, j]]`` for dim 1."""
    def gather_elements(self, dim, index) -> Tensor:
        """`gather_d` under its other name."""
    def gather_nd(self, indices: TensorLike) -> Tensor:
        """The slices named by the rows of `indices`: ``y[i] = x[indices[i, 0], indices[i, 1], ...]``."""
    def gcd(self, other: TensorLike) -> Tensor:
        """Greatest common divisor, not negative; gcd(0, 0) = 0."""
    def ge(self, other: TensorLike) -> Tensor:
        """Elementwise ``input >= other``."""
    def geqrf(self) -> tuple[Tensor, Tensor]:
        """QR factorization as LAPACK keeps it: r and the reflectors in one matrix, and their factors tau."""
    def ger(self, vec2) -> Tensor:
        """All products of an element of `input` with one of `vec2`. Shapes: [m], [n] -> [m, n]."""
    def get_bytes(self) -> Any:
        """The elements' bytes."""
    def greater(self, other: TensorLike) -> Tensor:
        """Elementwise ``input > other``."""
    def greater_equal(self, other: TensorLike) -> Tensor:
        """Elementwise ``input >= other``."""
    def gt(self, other: TensorLike) -> Tensor:
        """Elementwise ``input > other``."""
    def half(self) -> Tensor:
        """This Tensor with elements of float16."""
    def hardshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """Zero near the origin: `input` where ``|input| > lambd``, else 0."""
    @property
    def has_init(self) -> Any:
        """Whether it was made from an initializer."""
    def heaviside(self, values) -> Tensor:
        """Step function: 0 below zero, 1 above, `values` at zero."""
    def histc(self, bins=100, min=0.0, max=0.0) -> Tensor:
        """Histogram of `bins` equal bins over [min, max]; over the range of `input` if the bounds are equal."""
    def hooks(self) -> Any:
        """The hooks on its gradient."""
    def hsplit(self, indices_or_sections) -> Any:
        """`tensor_split` along the second axis (vectors: the first)."""
    def hypot(self, other: TensorLike) -> Tensor:
        """Length of the hypotenuse, ``sqrt(input**2 + other**2)``, without overflow on the way."""
    def i0(self) -> Tensor:
        """Modified Bessel function of the first kind, order 0."""
    def igamma(self, other: TensorLike) -> Tensor:
        """Regularized lower incomplete gamma function P(a = `input`, x = `other`); differentiable in `other`."""
    def igammac(self, other: TensorLike) -> Tensor:
        """Regularized upper incomplete gamma function Q(a = `input`, x = `other`); differentiable in `other`."""
    def imag(self) -> Tensor:
        """Imaginary part, 0 for real numbers. Shapes: any -> same. dtypes: as `real`."""
    def index_add(self, *args, **kwargs) -> Tensor:
        """``index_add(indices, y, axis)`` or ``index_add(dim, index, source, alpha=1)``: slices added along an axis."""
    def index_add_(self, *args, **kwargs) -> Tensor:
        """add_rows in place; returns this tensor."""
    def index_copy(self, axis, index, source) -> Tensor:
        """`x` with its slices along `axis` at the positions `index` replaced by those of `source`."""
    def index_copy_(self, dim, index, tensor) -> Tensor:
        """The slices along `dim` at the positions `index` replaced by those of `tensor`. In place; returns this tensor."""
    def index_fill(self, axis, index, value) -> Tensor:
        """`x` with its slices along `axis` at the positions `index` set to `value`, a number or a tensor of rank 0."""
    def index_fill_(self, dim, index, value) -> Tensor:
        """The slices along `dim` at the positions `index` filled with `value`. In place; returns this tensor."""
    index_of_parent_: Any
    def index_put(self, indices, values, accumulate=False) -> Tensor:
        """`input` with `values` at the positions ``(indices[0][i], indices[1][i], ...)``, replacing or (`accumulate`) added."""
    def index_put_(self, indices, values, accumulate=False) -> Tensor:
        """index_put in place; returns this tensor."""
    def index_select(self, axis=None, index=None, *, dim=None) -> Tensor:
        """The slices along an axis at the positions `index`."""
    @property
    def init(self) -> Any:
        """The initializer that the tensor was made from, or None."""
    def init_data(self, slice_index=None, shape=None, opt_shard_group=None) -> Tensor:
        """The tensor as its initializer has filled it; of `shape`, if that is given, filled anew."""
    @property
    def init_finished(self) -> Any:
        """Values are there as soon as the tensor is."""
    @property
    def init_flag(self) -> builtins.bool:
        """The mark that `set_init_flag` leaves."""
    def inner(self, other) -> Tensor:
        """Sum of products over the last axes. Shapes: [A.., k] and [B.., k] -> [A.., B..]; a rank 0 input scales."""
    def inplace_update(self, v, indices) -> Tensor:
        """`x` with its slices `indices` of the first axis replaced by those of `v`."""
    def int(self) -> Tensor:
        """This Tensor with elements of int32."""
    def inv(self) -> Tensor:
        """Elementwise ``1 / x``."""
    def inverse(self) -> Tensor:
        """Inverse of each matrix. A singular one gives infinities or an error of LAPACK."""
    def invert(self) -> Tensor:
        """Flips every bit: ``-x - 1`` for signed integers, "not" for bool."""
    def is_complex(self) -> Any:
        """Whether its elements are complex numbers."""
    def is_contiguous(self) -> Any:
        """Whether elements lie in order: they always do."""
    def is_floating_point(self) -> Any:
        """Whether its elements are floating numbers."""
    def is_init(self) -> Any:
        """Whether it was marked as initialized."""
    @property
    def is_meta(self) -> Any:
        """Whether it has a type, but no memory: ``Tensor(..., device="meta")``."""
    def is_pinned(self) -> Any:
        """Whether it lies in page-locked memory."""
    def is_shared(self) -> Any:
        """Whether it lies in memory of several processes."""
    def is_signed(self) -> Any:
        """Whether its elements may be negative."""
    def isclose(self, other: TensorLike, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False, **second_names) -> Tensor:
        """Elementwise ``|input - other| <= atol + rtol * |other|``; equal infinities are close."""
    def isfinite(self) -> Tensor:
        """Where `input` is neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Where `input` is infinite of either sign."""
    def isnan(self) -> Tensor:
        """Where `input` is not a number; false for integers."""
    def isneginf(self) -> Tensor:
        """Where `input` is negative infinity."""
    def isposinf(self) -> Tensor:
        """Where `input` is positive infinity."""
    def isreal(self) -> Tensor:
        """Where the imaginary part of `input` is zero; true for all real dtypes."""
    def itemset(self, *args) -> Tensor:
        """A copy with one element, named by its position (none: the only one), replaced."""
    def kthvalue(self, k, dim=-1, keepdim=False) -> Any:
        """The `k`-th smallest value along `dim`, counted from 1, and its position."""
    def lcm(self, other: TensorLike) -> Tensor:
        """Least common multiple, not negative; 0 if either is 0."""
    def ldexp(self, other) -> Tensor:
        """``x * 2 ** other``."""
    def le(self, other: TensorLike) -> Tensor:
        """Elementwise ``input <= other``."""
    def lerp(self, end, weight) -> Tensor:
        """Linear interpolation: ``input + weight * (end - input)``; `weight` is a number or a tensor."""
    def less(self, other: TensorLike) -> Tensor:
        """Elementwise ``input < other``."""
    def less_equal(self, other: TensorLike) -> Tensor:
        """Elementwise ``input <= other``."""
    def lgamma(self) -> Tensor:
        """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ..."""
    def log(self) -> Tensor:
        """Elementwise natural logarithm; NaN below zero."""
    def log10(self) -> Tensor:
        """Elementwise logarithm to base 10; NaN below zero."""
    def log1p(self) -> Tensor:
        """Elementwise ``log(1 + input)``, accurate near zero; NaN below -1."""
    def log2(self) -> Tensor:
        """Elementwise logarithm to base 2; NaN below zero."""
    def log_(self) -> Tensor:
        """Elementwise natural logarithm; NaN below zero. Replaces the value of this Tensor."""
    def log_matrix_determinant(self) -> tuple[Tensor, Tensor]:
        """Sign and logarithm of the absolute value of each determinant: `slogdet`."""
    def log_normal(self, mean=1.0, std=2.0) -> Tensor:
        """A tensor of this shape with samples of the log-normal distribution."""
    def logaddexp(self, other: TensorLike) -> Tensor:
        """``log(exp(input) + exp(other))`` without overflow on the way."""
    def logaddexp2(self, other: TensorLike) -> Tensor:
        """``log2(2**input + 2**other)`` without overflow on the way."""
    def logcumsumexp(self, axis) -> Tensor:
        """``log(cumsum(exp(input)))`` along `axis` without overflow on the way."""
    def logdet(self) -> Tensor:
        """Logarithm of each determinant, NaN for negative ones. Shapes: [.., n, n] -> [..]."""
    def logical_and(self, other: TensorLike, **second_names) -> Tensor:
        """Elementwise "and"; numbers count as true where they are not zero."""
    def logical_not(self) -> Tensor:
        """Elementwise "not": true where `input` is false or zero."""
    def logical_or(self, other: TensorLike, **second_names) -> Tensor:
        """Elementwise "or"; numbers count as true where they are not zero."""
    def logical_xor(self, other: TensorLike) -> Tensor:
        """Elementwise "exclusive or"; numbers count as true where they are not zero."""
    def logit(self, eps=None) -> Tensor:
        """``log(x / (1 - x))``; with `eps`, x is first limited to [eps, 1 - eps]."""
    def logsumexp(self, dim, keepdim=False) -> Tensor:
        """``log(sum(exp(input)))`` over `dim` without overflow on the way."""
    def long(self) -> Tensor:
        """This Tensor with elements of int64."""
    def lstsq(self, A) -> Tensor:
        """Least squares: the x that minimizes ``|input @ x - A|``, the shortest one if there are many."""
    def lt(self, other: TensorLike) -> Tensor:
        """Elementwise ``input < other``."""
    def lu_solve(self, LU_data, LU_pivots) -> Tensor:
        """The x of ``A @ x = b``, given the packed LU factorization of A with 1-based pivots."""
    @property
    def mH(self) -> Tensor:
        """The last two axes exchanged and conjugated."""
    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
    def masked_fill(self, mask, value) -> Tensor:
        """`value` where `mask` is true, `input_x` elsewhere; the value is brought to the input's dtype."""
    def masked_fill_(self, mask, value) -> Tensor:
        """masked_fill in place; returns this tensor."""
    def masked_scatter(self, mask: TensorLike, source: TensorLike) -> Tensor:
        """`input_x` with its elements where `mask` is true replaced by the first elements of `source`, in order."""
    def masked_scatter_(self, mask: TensorLike, source: TensorLike) -> Tensor:
        """`input_x` with its elements where `mask` is true replaced by the first elements of `source`, in order. In place; returns this tensor."""
    def masked_select(self, mask: TensorLike) -> Tensor:
        """The elements where `mask` is true, in row-major order."""
    def matmul(self, other, **second_names) -> Tensor:
        """Matrix product with NumPy's rules: rank 1 is a row (left) or a column (right), leading axes broadcast."""
    def matrix_determinant(self) -> Tensor:
        """Determinant of each matrix: `det`."""
    def matrix_power(self, n) -> Any:
        """Each matrix to the integer power `n`, by repeated squaring; negative powers of the inverse."""
    def max(self, *args, **named) -> Any:
        """The maximum of all elements, over `axis`, or with its place along `dim`."""
    def maximum(self, other: TensorLike) -> Tensor:
        """Elementwise larger operand; NaN if either is NaN."""
    def mean(self, axis=None, keep_dims=False, *, dim=None, keepdim=False, dtype=None) -> Tensor:
        """Mean over `axis` (or `dim`), of the elements as `dtype`."""
    def median(self, axis=-1, keepdims=False, **second_names) -> tuple[Tensor, Tensor]:
        """Lower median along `axis` and its place."""
    def min(self, *args, **named) -> Any:
        """The minimum of all elements, over `axis`, or with its place along `dim`."""
    def minimum(self, other: TensorLike) -> Tensor:
        """Elementwise smaller operand; NaN if either is NaN."""
    def mm(self, mat2) -> Tensor:
        """Product of two matrices. Shapes: [m, k] and [k, n] -> [m, n]. Errors: ValueError for other ranks."""
    def move_to(self, to, blocking=True) -> Tensor:
        """A copy of the tensor on another kind of device, "CPU" or that of a backend; gradients flow back."""
    def moveaxis(self, source, destination) -> Tensor:
        """Move the axes `source` to the positions `destination`; the others keep their order."""
    def movedim(self, source, destination) -> Tensor:
        """Move the axes `source` to the positions `destination`; the others keep their order."""
    def msort(self) -> Tensor:
        """The values in ascending order along the first axis."""
    def mul(self, other: TensorLike) -> Tensor:
        """Elementwise ``input * other``; "and" for bool."""
    def mul_(self, other) -> Tensor:
        """Elementwise ``input * other``. Replaces the value of this Tensor."""
    def multinomial(self, num_samples, replacement=True, seed=None) -> Tensor:
        """Indices along the last axis, drawn in proportion to the weights `input`."""
    def multiply(self, value) -> Tensor:
        """``self * value``."""
    def mvlgamma(self, p) -> Tensor:
        """Multivariate log-gamma function of dimension `p`."""
    def nan_to_num(self, nan: builtins.float | None = None, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> Tensor:
        """Replaces NaN by `nan` (default 0), the infinities by `posinf`, `neginf` (default: the dtype's limits)."""
    def nanmean(self, axis=None, keepdims=False, *, dtype=None) -> Tensor:
        """Mean over `axis` of the elements that are not NaN; NaN where there is none."""
    def nanmedian(self, axis=-1, keepdims=False) -> tuple[Tensor, Tensor]:
        """Lower median along `axis` of the elements that are not NaN, and its place."""
    def nanquantile(self, q, axis=None, keepdims=False) -> Tensor:
        """The `q` quantile along `axis` of the elements that are not NaN, interpolated linearly."""
    def nansum(self, axis=None, keepdims=False, *, dtype=None, dim=None, keepdim=False) -> Tensor:
        """Sum over `axis` (or `dim`) with NaN counted as 0."""
    def narrow(self, axis, start, length, **second_names) -> Tensor:
        """`length` elements along `axis` from `start` on."""
    def ndimension(self) -> builtins.int:
        """Number of axes."""
    def ne(self, other: TensorLike) -> Tensor:
        """Elementwise ``input != other``; NaN differs from everything."""
    def neg(self) -> Tensor:
        """Elementwise ``-input``; unsigned integers wrap around."""
    def negative(self) -> Tensor:
        """Elementwise ``-input``."""
    def nelement(self) -> builtins.int:
        """Number of elements."""
    def new_empty(self, size, *, dtype=None, device=None) -> Tensor:
        """A tensor of shape `size` with undefined content, of this tensor's dtype by default."""
    def new_full(self, size, fill_value, *, dtype=None) -> Tensor:
        """A tensor of shape `size` with `fill_value` everywhere, of this tensor's dtype by default."""
    def new_ones(self, size, dtype=None) -> Tensor:
        """Ones of shape `size`, of this tensor's dtype by default."""
    def new_zeros(self, size, dtype=None) -> Tensor:
        """Zeros of shape `size`, of this tensor's dtype by default."""
    def nextafter(self, other: TensorLike) -> Tensor:
        """Neighbouring floating number of `input` in the direction of `other`."""
    def nonzero(self, *, as_tuple=False) -> Any:
        """The positions of the elements that are not zero: one a row, or (`as_tuple`) one vector an axis."""
    def norm(self, ord=None, dim=None, keepdim=False, *, dtype=None) -> Any:
        """Vector norm over one axis or the flattened tensor; matrix norm over two axes or, with `ord`, of one."""
    def normal_(self, mean=0, std=1, *, generator=None) -> Tensor:
        """Overwrites `input` with numbers of the normal distribution."""
    def not_equal(self, other: TensorLike) -> Tensor:
        """Elementwise ``input != other``; NaN differs from everything."""
    def numel(self) -> builtins.int:
        """Number of elements."""
    def offload(self, file_path) -> builtins.bool:
        """Write the elements to a file, which `offload_file_path` names from then on; True when that is done."""
    def offload_file_path(self) -> Any:
        """The file that `offload` wrote, or an empty text."""
    def orgqr(self, input2: TensorLike) -> Tensor:
        """The first columns of Q from reflectors `input` and factors `input2`, as `geqrf` gives them."""
    def ormqr(self, tau, other, left=True, transpose=False, **second_names) -> Tensor:
        """``Q @ other`` (or ``other @ Q``) with Q, or its transpose, from reflectors as `geqrf` gives them."""
    def outer(self, vec2) -> Tensor:
        """All products of an element of `input` with one of `vec2`, flattened. Shapes: [m], [n] -> [m, n]."""
    def pad(self, padding, mode='constant', value=None) -> Any:
        """Pad the last axes: `padding` is (before, after) of the last axis, then of the one before it, and so on."""
    param_info: Any
    parent_tensor_: Any
    def permute(self, *axis, **second_names) -> Tensor:
        """The axes in the order `axis`."""
    def pin_memory(self) -> Any:
        """Raises RuntimeError: page-locked memory speeds up copies to a device, and there is none."""
    def positive(self) -> Tensor:
        """`input` itself."""
    def pow(self, exponent: TensorLike) -> Tensor:
        """Elementwise ``input ** exponent``; integers to negative powers are rounded to zero."""
    def prod(self, axis=None, keep_dims=False, dtype=None, *, dim=None, keepdim=False) -> Tensor:
        """Product over `axis` (or `dim`), in `dtype`."""
    def ptp(self, axis=None, keepdims=False) -> Tensor:
        """Range over `axis`: the largest element less the smallest."""
    def put_(self, index, source, accumulate=False) -> Tensor:
        """The elements at the positions `index` of the flattened tensor set to `source`, or added to. In place; returns this tensor."""
    def qr(self, some=True) -> tuple[Tensor, Tensor]:
        """`qr` of this Tensor; `some` False: complete."""
    def quantile(self, q, axis=None, keepdims=False) -> Tensor:
        """The `q` quantile along `axis` (all elements by default), interpolated linearly; NaN where there is one."""
    def rad2deg(self) -> Tensor:
        """Radians to degrees."""
    def random_(self, from_=0, to=None, *, generator=None) -> Tensor:
        """Overwrites `input` with integers of [from_, to); without `to` with the range that its dtype holds exactly."""
    def random_categorical(self, num_sample, seed=0, dtype=...) -> Tensor:
        """Class indices drawn from the softmax of `logits`."""
    def ravel(self) -> Tensor:
        """All elements in one axis."""
    def real(self) -> Tensor:
        """Real part. Shapes: any -> same. dtypes: complex64 -> float32, complex128 -> float64, others stay."""
    def reciprocal(self) -> Tensor:
        """Elementwise ``1 / input``."""
    def register_hook(self, hook) -> Any:
        """Call ``hook(gradient)`` when the gradient of this tensor is known; what it returns replaces it."""
    def remainder(self, other, **second_names) -> Tensor:
        """Remainder with the sign of the divisor, as Python's ``%``."""
    def remainder_(self, other) -> Tensor:
        """Remainder with the sign of the divisor, as Python's ``%``. Replaces the value of this Tensor."""
    @staticmethod
    def remove_hook(handle) -> Any:
        """Take away the hook that `handle` stands for."""
    def renorm(self, p, axis, maxnorm) -> Tensor:
        """Scales each slice along `axis` whose `p`-norm exceeds `maxnorm` down to it."""
    def repeat(self, *repeats, **second_names) -> Tensor:
        """The whole tensor repeated along each axis."""
    def repeat_elements(self, rep, axis=0) -> Tensor:
        """Repeat each element `rep` times along `axis`."""
    def repeat_interleave(self, repeats, axis=None, *, dim=None, output_size=None) -> Tensor:
        """Each element repeated along an axis, `repeats` times or as often as each entry says."""
    def requires_grad_(self, requires_grad=True) -> None:
        """Nothing: which tensors get gradients is said to `grad` and `value_and_grad`."""
    def reshape(self, *shape, **second_names) -> Tensor:
        """The same elements under another shape; one size may be -1."""
    def reshape_as(self, other) -> Tensor:
        """`input` under the shape of `other`."""
    def resize(self, *new_shape) -> Tensor:
        """The elements in order under another shape: what is missing is 0, what is too much is left out."""
    def reverse(self, dims: builtins.int | Sequence[builtins.int], **second_names) -> Tensor:
        """Reverse the order of the elements along `dims`."""
    def reverse_sequence(self, seq_lengths, seq_dim=0, batch_dim=0) -> Tensor:
        """`ops.reverse_sequence` of this tensor."""
    def roll(self, shifts, dims=None) -> Tensor:
        """Shift the elements along `dims` by `shifts` places, around the end; without `dims` in row-major order."""
    def rot90(self, k, dims) -> Tensor:
        """Rotate by ``k * 90`` degrees in the plane of the two axes `dims`, from the first towards the second."""
    def round(self, decimals=0) -> Tensor:
        """Rounded to `decimals` places; ties go to the even neighbour."""
    def rsqrt(self) -> Tensor:
        """Elementwise ``1 / sqrt(input)``."""
    def scatter(self, *args, **kwargs) -> Tensor:
        """Elements of `src` written along an axis: ``scatter(dim, index, src)``."""
    def scatter_(self, *args, **kwargs) -> Tensor:
        """scatter in place; returns this tensor."""
    def scatter_add(self, *args, **kwargs) -> Tensor:
        """``scatter_add(dim, index, src)``: elements added along an axis; ``scatter_add(indices, updates)``: slices added."""
    def scatter_add_(self, dim, index, src) -> Tensor:
        """The elements of `src` added along `dim` at the positions `index`. In place; returns this tensor."""
    def scatter_div(self, indices, updates) -> Tensor:
        """`input_x` with the slices named by the rows of `indices` divided by `updates`."""
    def scatter_max(self, indices, updates) -> Tensor:
        """`input_x` with the slices named by the rows of `indices` replaced by the maximum of themselves and `updates`."""
    def scatter_min(self, indices, updates) -> Tensor:
        """`input_x` with the slices named by the rows of `indices` replaced by the minimum of themselves and `updates`."""
    def scatter_mul(self, indices, updates) -> Tensor:
        """`input_x` with the slices named by the rows of `indices` multiplied by `updates`."""
    def scatter_sub(self, indices, updates) -> Tensor:
        """`input_x` with the slices named by the rows of `indices` decreased by `updates`."""
    def searchsorted(self, v, side='left', sorter=None) -> Tensor:
        """Where the values `v` would be inserted into this ascending vector."""
    def select(self, *args, **kwargs) -> Tensor:
        """``select(dim, index)``: one slice; ``select(condition, y)``: this tensor where the condition is true, else y."""
    def select_scatter(self, src, axis, index) -> Tensor:
        """`input` with `src` in place of its slice `index` along `axis`."""
    def set_(self, source=None, storage_offset=0, size=None, stride=None) -> Tensor:
        """Become `source` (its elements from `storage_offset` on under the shape `size`), or an empty tensor."""
    def set_cast_dtype(self, *args, **kwargs) -> None:
        """Nothing: values are there when a call returns."""
    def set_const_arg(self, const_arg=True) -> Tensor:
        """Note that compiled functions may take it as a constant; returns the tensor."""
    def set_dtype(self, dtype) -> Any:
        """Cast it in place; returns the dtype."""
    def set_init_flag(self, flag) -> None:
        """Mark whether it was initialized by other means."""
    def sgn(self) -> Tensor:
        """-1, 0 or 1 by the sign of `input`; 0 for NaN. A complex number is divided by its magnitude."""
    def short(self) -> Tensor:
        """This Tensor with elements of int16."""
    def sigmoid(self) -> Tensor:
        """Logistic function: ``1 / (1 + exp(-input))``."""
    def sigmoid_(self) -> Tensor:
        """Logistic function: ``1 / (1 + exp(-input))``. In place; returns this tensor."""
    def sign(self) -> Tensor:
        """-1, 0 or 1 by the sign of `input`; 0 for NaN. A complex number is divided by its magnitude."""
    def sign_(self) -> Tensor:
        """-1, 0 or 1 by the sign of `input`; 0 for NaN. A complex number is divided by its magnitude. Replaces the value of this Tensor."""
    def signbit(self) -> Tensor:
        """Where the sign bit of `input` is set: negative numbers and negative zero."""
    def sin(self) -> Tensor:
        """Elementwise sine of an angle in radians."""
    def sinc(self) -> Tensor:
        """Normalized sinc: ``sin(pi * input) / (pi * input)``, and 1 at zero."""
    def sinh(self) -> Tensor:
        """Elementwise hyperbolic sine."""
    def slice_scatter(self, src, axis=0, start=None, end=None, step=1) -> Tensor:
        """`input` with `src` in place of its part ``start:end:step`` along `axis`."""
    def slogdet(self) -> tuple[Tensor, Tensor]:
        """Sign and logarithm of the absolute value of each determinant."""
    def soft_shrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """Shrink towards zero: ``input - lambd`` above `lambd`, ``input + lambd`` below ``-lambd``, else 0."""
    def softmax(self, axis, dtype=None) -> Tensor:
        """Softmax along an axis, computed in `dtype`."""
    def sort(self, axis=-1, descending=False, *, dim=None, stable=False) -> tuple[Tensor, Tensor]:
        """Values in order along an axis, and the positions they had; always stable."""
    def split(self, split_size_or_sections=None, axis=0, *, split_size=None, dim=None) -> Any:
        """The pieces of a given size, or of given sizes, along an axis."""
    def sqrt(self) -> Tensor:
        """Elementwise square root; NaN below zero."""
    def square(self) -> Tensor:
        """Elementwise ``input * input``."""
    def squeeze(self, *axis, **second_names) -> Tensor:
        """Without the axes of size 1, all of them or those named."""
    def std(self, axis=None, ddof=0, keepdims=False, *, dim=None, correction=None, keepdim=False) -> Tensor:
        """Standard deviation over `axis`: ``sqrt(sum((x - mean)**2) / (n - ddof))``."""
    def storage(self) -> Any:
        """The bytes that hold the elements."""
    def storage_offset(self) -> Any:
        """Elements before the first one: none."""
    def stride(self, dim=None) -> Any:
        """Elements between neighbours along each axis, or along `dim`."""
    @property
    def strides(self) -> Any:
        """Bytes between neighbours along each axis."""
    def sub(self, other, *, alpha=1, **second_names) -> Tensor:
        """``self - alpha * other``; `other` may be a list or tuple of numbers."""
    def sub_(self, other, *, alpha=1, **second_names) -> Tensor:
        """``self - alpha * other``; `other` may be a list or tuple of numbers. Replaces the value of this Tensor."""
    def subtract(self, other, *, alpha=1) -> Tensor:
        """Elementwise ``input - alpha * other``."""
    def sum(self, axis=None, dtype=None, keepdims=False, initial=None, *, dim=None, keepdim=False) -> Tensor:
        """Sum over `axis` (or `dim`), in `dtype`, plus `initial`."""
    def sum_to_size(self, *size) -> Tensor:
        """Summed over the axes that broadcasting from the shape `size` has added or stretched."""
    def svd(self, full_matrices=False, compute_uv=True) -> Any:
        """`svd` of this Tensor."""
    def swapaxes(self, axis0, axis1) -> Tensor:
        """Exchange two axes."""
    def swapdims(self, axis0, axis1, **second_names) -> Tensor:
        """Exchange two axes."""
    symbolic_shape: Any
    def t(self) -> Tensor:
        """The transpose of a matrix; tensors of rank 0 and 1 as they are."""
    def take(self, indices=None, axis=None, mode='clip', *, index=None) -> Tensor:
        """The elements (without `axis`: of the flattened tensor) at `indices`, which are brought into range."""
    def tan(self) -> Tensor:
        """Elementwise tangent of an angle in radians."""
    def tanh(self) -> Tensor:
        """Elementwise hyperbolic tangent."""
    def tanh_(self) -> Tensor:
        """Elementwise hyperbolic tangent. Replaces the value of this Tensor."""
    def tensor_scatter_add(self, indices, updates) -> Tensor:
        """`input_x` with the slices named by the rows of `indices` increased by `updates`."""
    def tensor_scatter_update(self, indices, updates) -> Tensor:
        """`input_x` with the slices named by the rows of `indices` replaced by `updates`."""
    def tensor_split(self, indices_or_sections, axis=0) -> Any:
        """Cut along `axis` into that many nearly equal pieces, or before each of the given indices."""
    def tile(self, dims: builtins.int | Sequence[builtins.int], **second_names) -> Tensor:
        """Repeat the whole tensor ``dims[i]`` times along axis i; missing leading entries count as 1."""
    def to(self, *args, device=None, dtype=None, other=None, non_blocking=False, copy=False) -> Tensor:
        """``to(dtype)``, ``to(device, dtype=None)`` or ``to(other)``: this Tensor in another dtype, on another device, or as `other` is."""
    def to_(self, device=None, non_blocking=False) -> Tensor:
        """`move_to` in place."""
    def to_coo(self) -> Any:
        """A COOTensor of the elements of a matrix that are not zero."""
    def to_csr(self) -> Any:
        """A CSRTensor of the elements of a matrix that are not zero."""
    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares the memory."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for rank 0."""
    def top_k(self, k, sorted=True) -> tuple[Tensor, Tensor]:
        """The `k` largest values along the last axis, and the positions they had."""
    def topk(self, k, dim=None, largest=True, sorted=True) -> tuple[Tensor, Tensor]:
        """The `k` largest (or smallest) values along `dim` (the last axis if None), and the positions they had."""
    def trace(self, offset=0, axis1=0, axis2=1, dtype=None) -> Tensor:
        """Sum of a diagonal of the planes spanned by two axes."""
    def transpose(self, *axes, dim0=None, dim1=None, **second_names) -> Tensor:
        """All axes in reverse, in the order `axes`, or (two ints) two axes exchanged."""
    def triangular_solve(self, A, upper=True, transpose=False, unitriangular=False) -> Any:
        """The solution of a triangular system with the matrix `A` and this right side, and `A`."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """The lower triangle of the last two axes, zero above the given diagonal."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """The upper triangle of the last two axes, zero below the given diagonal."""
    def true_divide(self, divisor, **second_names) -> Tensor:
        """Elementwise ``dividend / divisor``."""
    def trunc(self) -> Tensor:
        """`input` without its fraction: rounded to zero."""
    def type(self, dtype=None) -> Any:
        """The name of the dtype, or this Tensor in another dtype."""
    def type_as(self, other) -> Tensor:
        """`input` with the element type of `other`."""
    def unbind(self, dim=0) -> tuple[Tensor, ...]:
        """The slices along an axis."""
    def unflatten(self, dim, sizes) -> Tensor:
        """Axis `dim` replaced by axes of the given sizes."""
    def unfold(self, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
        """Sliding windows of a batch of images as columns."""
    def uniform(self, from_=0.0, to=1.0, generator=None) -> Tensor:
        """A tensor of this shape with samples that are uniform in [from_, to)."""
    def uniform_(self, from_=0, to=1, *, generator=None) -> Tensor:
        """Overwrites `input` with numbers of the uniform distribution over [from_, to)."""
    def unique(self) -> tuple[Tensor, Tensor]:
        """The different elements in the order of their first appearance, and for each element which of them it is."""
    def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None) -> Any:
        """One element (or slice along `dim`) for each run of equal ones; if asked, the run of each element and the lengths."""
    def unique_with_pad(self, pad_num) -> tuple[Tensor, Tensor]:
        """The different elements in the order they first occur, filled up with `pad_num`, and for each its place there."""
    def unsorted_segment_max(self, segment_ids, num_segments) -> Tensor:
        """Maximum of the rows of `x` that have the same number in `segment_ids`, in any order."""
    def unsorted_segment_min(self, segment_ids, num_segments) -> Tensor:
        """Minimum of the rows of `x` that have the same number in `segment_ids`, in any order."""
    def unsorted_segment_prod(self, segment_ids, num_segments) -> Tensor:
        """Product of the rows of `x` that have the same number in `segment_ids`, in any order."""
    def unsqueeze(self, axis: builtins.int, **second_names) -> Tensor:
        """Insert an axis of size 1 at `axis`, counted in the result."""
    def unstack(self, axis: builtins.int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis, which is dropped."""
    def untyped_storage(self) -> Any:
        """The bytes that hold the elements."""
    def value(self) -> Tensor:
        """This tensor."""
    def var(self, axis=None, ddof=0, keepdims=False, *, dim=None, correction=None, keepdim=False) -> Tensor:
        """Variance over `axis`: ``sum((x - mean)**2) / (n - ddof)``, in two passes."""
    def view(self, *shape, **second_names) -> Tensor:
        """The same elements under another shape, or (one dtype) the same bytes as elements of that dtype."""
    def view_as(self, other) -> Tensor:
        """`input` under the shape of `other`."""
    virtual_flag: builtins.bool
    def vsplit(self, indices_or_sections) -> Any:
        """`tensor_split` along the first axis."""
    def wait_pipeline(self, *args, **kwargs) -> None:
        """Nothing: values are there when a call returns."""
    def where(self, condition, y, **second_names) -> Tensor:
        """This tensor where `condition` is true, `y` elsewhere."""
    def xdivy(self, y: TensorLike) -> Tensor:
        """``x / y``, and 0 where `x` is 0, whatever `y` is (NaN excepted)."""
    def xlogy(self, other: TensorLike) -> Tensor:
        """``input * log(other)``, and 0 where `input` is 0, whatever `other` is (NaN excepted)."""
    def zero_(self) -> Tensor:
        """0 everywhere. In place; returns this tensor."""
