// Kernels that rearrange elements: any dtype, by element size.  Each only describes a copy between strided views
// (shape_copy.h); none reads an element.
#include "arrays/shape_copy.h"
#include "mycelia/kernels.h"
#include "narrow/narrow.h"

namespace mycelia::MYC_ISA {

static char* at(const myc_tensor& t, int64_t element) {
  return static_cast<char*>(t.data) + element * item_size(t.dtype);
}

KERNEL_FN(transpose, any) {
  const auto& a = attrs<myc_transpose_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK];
  contiguous_strides(x.shape, x.rank, from);
  contiguous_strides(y.shape, y.rank, to);
  CopyPlan plan;
  for (int d = 0; d < y.rank; ++d) plan.axis(y.shape[d], from[positive_axis(a.dims.v[d], x.rank)], to[d]);
  return copy(call, x.data, y.data, item_size(x.dtype), plan);
}

KERNEL_FN(flip, any) {
  const auto& a = attrs<myc_flip_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK], start = 0;
  contiguous_strides(x.shape, x.rank, from);
  contiguous_strides(x.shape, x.rank, to);
  for (int64_t i = 0; i < a.dims.n; ++i) {
    const int d = positive_axis(a.dims.v[i], x.rank);
    start += (x.shape[d] - 1) * from[d];
    from[d] = -from[d];
  }
  if (x.size == 0) return MYC_OK;
  CopyPlan plan;
  for (int d = 0; d < x.rank; ++d) plan.axis(x.shape[d], from[d], to[d]);
  return copy(call, at(x, start), y.data, item_size(x.dtype), plan);
}

// Each rolled axis falls into two parts that change places: 2^k block copies for k axes.
KERNEL_FN(roll, any) {
  const auto& a = attrs<myc_roll_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  if (x.size == 0) return MYC_OK;
  int64_t stride[MYC_MAX_RANK], shift[MYC_MAX_RANK] = {};
  contiguous_strides(x.shape, x.rank, stride);
  for (int64_t i = 0; i < a.dims.n; ++i) {
    const int d = positive_axis(a.dims.v[i], x.rank);
    shift[d] = (shift[d] + a.shifts.v[i] % x.shape[d] + x.shape[d]) % x.shape[d];
  }
  for (int block = 0; block < 1 << x.rank; ++block) {
    CopyPlan plan;
    int64_t from = 0, to = 0;
    for (int d = 0; d < x.rank; ++d) {
      const int64_t n = x.shape[d];
      const bool moves_around = block >> d & 1;  // the last `shift` elements come first
      plan.axis(moves_around ? shift[d] : n - shift[d], stride[d], stride[d]);
      from += moves_around ? (n - shift[d]) * stride[d] : 0;
      to += moves_around ? 0 : shift[d] * stride[d];
    }
    const int32_t rc = copy(call, at(x, from), at(y, to), item_size(x.dtype), plan);
    if (rc != MYC_OK) return rc;
  }
  return MYC_OK;
}

KERNEL_FN(broadcast_to, any) {
  const myc_tensor &x = input(call), &y = output(call);
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK];
  contiguous_strides(x.shape, x.rank, from);
  contiguous_strides(y.shape, y.rank, to);
  const int lead = y.rank - x.rank;
  CopyPlan plan;
  for (int d = 0; d < y.rank; ++d) {
    const bool repeats = d < lead || x.shape[d - lead] == 1;
    plan.axis(y.shape[d], repeats ? 0 : from[d - lead], to[d]);
  }
  return copy(call, x.data, y.data, item_size(x.dtype), plan);
}

KERNEL_FN(tile, any) {
  const auto& a = attrs<myc_tile_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK];
  contiguous_strides(x.shape, x.rank, from);
  contiguous_strides(y.shape, y.rank, to);
  CopyPlan plan;
  for (int d = 0; d < y.rank; ++d) {
    const int64_t i = d - (y.rank - x.rank), j = d - (y.rank - a.dims.n);
    const int64_t n = i >= 0 ? x.shape[i] : 1, times = j >= 0 ? a.dims.v[j] : 1;
    plan.axis(times, 0, n * to[d]);
    plan.axis(n, i >= 0 ? from[i] : 0, to[d]);
  }
  return copy(call, x.data, y.data, item_size(x.dtype), plan);
}

// ---- joining and splitting along an axis: rows of the part, inside rows of the whole ----

static int32_t copy_part(const myc_call* call, char* part, char* whole, const AxisView& v, int64_t n, int64_t item,
                         bool join) {
  CopyPlan plan;
  const int64_t own = n * v.inner, all = v.n * v.inner;
  plan.axis(v.outer, join ? own : all, join ? all : own);
  plan.axis(own, 1, 1);
  return join ? copy(call, part, whole, item, plan) : copy(call, whole, part, item, plan);
}

// `axis` counts in the whole; parts lack it when `stacked`.
static int32_t join_or_split(const myc_call* call, int64_t axis, bool join, bool stacked) {
  const myc_tensor& whole = join ? output(call) : input(call);
  const int32_t count = join ? call->n_in : call->n_out;
  const int64_t item = item_size(whole.dtype);
  const int a = positive_axis(axis, whole.rank);
  const AxisView v = around_axis(whole, a);
  int64_t done = 0;
  for (int32_t i = 0; i < count; ++i) {
    const myc_tensor& part = join ? input(call, i) : output(call, i);
    const int64_t n = stacked ? 1 : part.shape[a];
    const int32_t rc = copy_part(call, at(part, 0), at(whole, done * v.inner), v, n, item, join);
    if (rc != MYC_OK) return rc;
    done += n;
  }
  return MYC_OK;
}

KERNEL_FN(concat, any) { return join_or_split(call, attrs<myc_concat_attrs>(call).axis, true, false); }
KERNEL_FN(stack, any) { return join_or_split(call, attrs<myc_stack_attrs>(call).axis, true, true); }
KERNEL_FN(split, any) { return join_or_split(call, attrs<myc_split_attrs>(call).axis, false, false); }
KERNEL_FN(unstack, any) { return join_or_split(call, attrs<myc_unstack_attrs>(call).axis, false, true); }

// ---- slices with steps ----

static int32_t zero_fill(const myc_call* call, const myc_tensor& y) {
  char* data = static_cast<char*>(y.data);
  parallel_for(call, y.size * item_size(y.dtype), kMinParallelWork,
               [&](int64_t begin, int64_t end) { memset(data + begin, 0, end - begin); });
  return MYC_OK;
}

static int32_t copy_all(const myc_call* call, const myc_tensor& x, const myc_tensor& y) {
  CopyPlan plan;
  plan.axis(x.size, 1, 1);
  return copy(call, x.data, y.data, item_size(x.dtype), plan);
}

// Strides of every `step`-th element of a tensor, and the first element.
static int64_t strided_view(const myc_tensor& t, const myc_ints& begin, const myc_ints& step, int64_t* stride) {
  contiguous_strides(t.shape, t.rank, stride);
  int64_t start = 0;
  for (int d = 0; d < t.rank; ++d) {
    start += begin.v[d] * stride[d];
    stride[d] *= step.v[d];
  }
  return start;
}

KERNEL_FN(strided_slice, any) {
  const auto& a = attrs<myc_strided_slice_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK];
  const int64_t start = strided_view(x, a.begin, a.stride, from);
  contiguous_strides(a.size.v, x.rank, to);
  CopyPlan plan;
  for (int d = 0; d < x.rank; ++d) plan.axis(a.size.v[d], from[d], to[d]);
  return copy(call, at(x, start), y.data, item_size(x.dtype), plan);
}

KERNEL_FN(strided_place, any) {
  const auto& a = attrs<myc_strided_place_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  if (x.size != y.size) zero_fill(call, y);
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK];
  contiguous_strides(x.shape, x.rank, from);
  const int64_t start = strided_view(y, a.begin, a.stride, to);
  CopyPlan plan;
  for (int d = 0; d < x.rank; ++d) plan.axis(x.shape[d], from[d], to[d]);
  return copy(call, x.data, at(y, start), item_size(x.dtype), plan);
}

// `value` broadcast into the selected places of the output, which holds the rest already.
static int32_t write_selection(const myc_call* call, const myc_ints& begin, const myc_ints& size, const myc_ints& step) {
  const myc_tensor &value = input(call, 1), &y = output(call);
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK];
  contiguous_strides(value.shape, value.rank, from);
  const int64_t start = strided_view(y, begin, step, to);
  const int lead = y.rank - value.rank;
  CopyPlan plan;
  for (int d = 0; d < y.rank; ++d) {
    const bool repeats = d < lead || value.shape[d - lead] == 1;
    plan.axis(size.v[d], repeats ? 0 : from[d - lead], to[d]);
  }
  return copy(call, value.data, at(y, start), item_size(y.dtype), plan);
}

KERNEL_FN(strided_assign, any) {
  const auto& a = attrs<myc_strided_assign_attrs>(call);
  const int32_t rc = copy_all(call, input(call), output(call));
  return rc == MYC_OK ? write_selection(call, a.begin, a.size, a.stride) : rc;
}

// The same in place: the output is the input's memory unless another tensor shares it.
KERNEL_FN(strided_write, any) {
  const auto& a = attrs<myc_strided_write_attrs>(call);
  if (input(call).data != output(call).data) {
    const int32_t rc = copy_all(call, input(call), output(call));
    if (rc != MYC_OK) return rc;
  }
  return write_selection(call, a.begin, a.size, a.stride);
}

KERNEL_FN(shape_of, any) {
  memcpy(output(call).data, input(call).shape, input(call).rank * sizeof(int64_t));
  return MYC_OK;
}

// ---- padding ----

// The bits of `value` in a dtype; false if the dtype needs a conversion that this file does not have.
static bool bits_of(double value, int32_t dtype, void* bits) {
  switch (dtype) {
    case MYC_BOOL: *static_cast<uint8_t*>(bits) = value != 0; return true;
    case MYC_I8: *static_cast<int8_t*>(bits) = static_cast<int8_t>(value); return true;
    case MYC_U8: *static_cast<uint8_t*>(bits) = static_cast<uint8_t>(value); return true;
    case MYC_I16: *static_cast<int16_t*>(bits) = static_cast<int16_t>(value); return true;
    case MYC_U16: *static_cast<uint16_t*>(bits) = static_cast<uint16_t>(value); return true;
    case MYC_I32: *static_cast<int32_t*>(bits) = static_cast<int32_t>(value); return true;
    case MYC_U32: *static_cast<uint32_t*>(bits) = static_cast<uint32_t>(value); return true;
    case MYC_I64: *static_cast<int64_t*>(bits) = static_cast<int64_t>(value); return true;
    case MYC_U64: *static_cast<uint64_t*>(bits) = static_cast<uint64_t>(value); return true;
    case MYC_F32: *static_cast<float*>(bits) = static_cast<float>(value); return true;
    case MYC_F16:
    case MYC_BF16: {
      const float wide = to_odd(value);
      narrow_any(dtype, &wide, bits, 1);
      return true;
    }
    case MYC_F64: *static_cast<double*>(bits) = value; return true;
    default: memset(bits, 0, 16); return value == 0;
  }
}

KERNEL_FN(pad_constant, any) {
  const auto& a = attrs<myc_pad_constant_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  const int64_t item = item_size(x.dtype);
  alignas(16) char fill[16];
  if (!bits_of(a.value, x.dtype, fill)) return MYC_E_UNSUPPORTED;
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK];
  contiguous_strides(x.shape, x.rank, from);
  contiguous_strides(y.shape, y.rank, to);
  CopyPlan inside;
  int64_t read = 0, write = 0;
  bool all_inside = true;
  for (int d = 0; d < x.rank; ++d) {
    const int64_t before = a.pads.v[2 * d], after = a.pads.v[2 * d + 1];
    read += max(-before, int64_t{0}) * from[d];
    write += max(before, int64_t{0}) * to[d];
    const int64_t n = x.shape[d] - max(-before, int64_t{0}) - max(-after, int64_t{0});
    inside.axis(max(n, int64_t{0}), from[d], to[d]);
    all_inside = all_inside && before <= 0 && after <= 0;
  }
  if (!all_inside) {
    CopyPlan border;
    border.axis(y.size, 0, 1);
    const int32_t rc = copy(call, fill, y.data, item, border);
    if (rc != MYC_OK) return rc;
  }
  return copy(call, at(x, read), at(y, write), item, inside);
}

}  // namespace mycelia::MYC_ISA
