// Kernels that write by position.  Replacing: any dtype by element size; adding: f32, f64, i32, i64; the rest: f32, f64, i64.
// 16-bit floats are combined in float32.
// Positions may repeat, so rows are written in order; threads share the work across independent outer axes or columns.
#include "arrays/index_common.h"
#include "arrays/shape_copy.h"
#include "mycelia/kernels.h"
#include "narrow/narrow.h"

namespace mycelia::MYC_ISA {

// The order of the attribute `reduction`.
enum { kUpdate, kAdd, kSub, kMul, kDiv, kMax, kMin };

// Integers wrap around, which only unsigned ones may do in C++.
template <class T>
struct Wrapping {
  using type = T;
};
template <>
struct Wrapping<int32_t> {
  using type = uint32_t;
};
template <>
struct Wrapping<int64_t> {
  using type = uint64_t;
};

template <class T, int R>
MYC_INLINE T combine(T old, T value) {
  using W = typename Wrapping<T>::type;
  if (R == kAdd) return static_cast<T>(static_cast<W>(old) + static_cast<W>(value));
  if (R == kSub) return static_cast<T>(static_cast<W>(old) - static_cast<W>(value));
  if (R == kMul) return static_cast<T>(static_cast<W>(old) * static_cast<W>(value));
  if (R == kDiv) return old / value;
  if (R == kMax) return old > value || old != old ? old : value;  // NaN stays, as in np.maximum
  if (R == kMin) return old < value || old != old ? old : value;
  return value;
}

template <class T, int R>
MYC_INLINE void combine_row(T* y, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = combine<T, R>(y[i], x[i]);
}

template <int R>
struct Reduction {
  static constexpr int value = R;
};

// body(T(), Reduction<R>()) for the common cases; others are left to the reference body.
template <class Body>
static int32_t with_reduction(int32_t dtype, int64_t reduction, const Body& body) {
  if (reduction == kUpdate) {
    return with_item(item_size(dtype), [&](auto zero) { return body(zero, Reduction<kUpdate>()); });
  }
  if (reduction == kAdd) return with_number(dtype, [&](auto zero) { return body(zero, Reduction<kAdd>()); });
  const auto arithmetic = [&](auto zero) -> int32_t {
    typedef decltype(zero) T;
    switch (reduction) {
      case kSub: return body(zero, Reduction<kSub>());
      case kMul: return body(zero, Reduction<kMul>());
      case kDiv:  // of integers: left to the reference body, which rounds down and knows what division by 0 is
        if constexpr (T(1) / T(2) != T(0)) return body(zero, Reduction<kDiv>());
        else return MYC_E_UNSUPPORTED;
      case kMax: return body(zero, Reduction<kMax>());
      default: return body(zero, Reduction<kMin>());
    }
  };
  switch (dtype) {
    case MYC_F32: return arithmetic(float());
    case MYC_F64: return arithmetic(double());
    case MYC_I64: return arithmetic(int64_t());
    default: return MYC_E_UNSUPPORTED;
  }
}

static void start_with(const myc_call* call, const myc_tensor* x) {
  const myc_tensor& y = output(call);
  char* data = out<char>(call);
  parallel_for(call, y.size * item_size(y.dtype), kMinParallelWork, [&](int64_t begin, int64_t end) {
    if (x == nullptr) {
      memset(data + begin, 0, end - begin);
    } else if (x->data != y.data) {
      memcpy(data + begin, static_cast<const char*>(x->data) + begin, end - begin);
    }
  });
}

// y[b, o, index[b, i]] (+)= x[b, o, i], rows of `inner` elements.
template <class T, int R, class I>
static int32_t scatter_rows(const myc_call* call, const T* x, const I* index, T* y, int64_t batch, int64_t outer,
                            int64_t n, int64_t picks, int64_t inner, int axis) {
  const int32_t rc = check_indices(call, index, batch * picks, n, axis);
  if (rc != MYC_OK) return rc;
  const auto write = [&](int64_t group, int64_t first, int64_t count) {
    const I* places = index + group / outer * picks;
    T* target = y + group * n * inner + first;
    const T* source = x + group * picks * inner + first;
    for (int64_t i = 0; i < picks; ++i) {
      combine_row<T, R>(target + wrap(places[i], n) * inner, source + i * inner, count);
    }
  };
  const int64_t work = 3 * static_cast<int64_t>(sizeof(T)) * picks;
  if (batch * outer > 1) {
    parallel_rows(call, batch * outer, work * inner, [&](int64_t group) { write(group, 0, inner); });
  } else {  // columns: at least one cache line each
    parallel_for(call, inner, max(kMinParallelWork / (work + 1) + 1, int64_t{16}),
                 [&](int64_t begin, int64_t end) { write(0, begin, end - begin); });
  }
  return MYC_OK;
}

KERNEL_FN(gather_grad, any) {
  if (is_16_bits(output(call).dtype)) return run_whole(call, MYC_KERNEL_NAME(gather_grad, any));  // sums in float32
  const auto& a = attrs<myc_gather_grad_attrs>(call);
  const myc_tensor &ct = input(call), &index = input(call, 1), &y = output(call);
  const int axis = positive_axis(a.axis, y.rank), batch = positive_axis(a.batch_dims, index.rank + 1);
  return with_number(y.dtype, [&](auto zero) {
    typedef decltype(zero) T;
    return with_indices(index, [&](auto* places) -> int32_t {
      start_with(call, nullptr);
      if (ct.size == 0) return MYC_OK;
      return scatter_rows<T, kAdd>(call, in<T>(call), places, out<T>(call), extent(y, 0, batch),
                                   extent(y, batch, axis), y.shape[axis], extent(index, batch, index.rank),
                                   extent(y, axis + 1, y.rank), axis);
    });
  });
}

// Rows of y along `axis` at the positions input 1, combined with the rows of input 2.
template <int R, class T>
static int32_t write_rows(const myc_call* call, int64_t axis) {
  const myc_tensor &x = input(call), &index = input(call, 1), &rows = input(call, 2);
  const int at = positive_axis(axis, x.rank);
  const AxisView v = around_axis(x, at);
  return with_indices(index, [&](auto* places) -> int32_t {
    start_with(call, &x);
    if (rows.size == 0) return MYC_OK;
    return scatter_rows<T, R>(call, in<T>(call, 2), places, out<T>(call), 1, v.outer, v.n, index.size, v.inner, at);
  });
}

KERNEL_FN(index_add, any) {
  if (is_16_bits(output(call).dtype)) return run_whole(call, MYC_KERNEL_NAME(index_add, any));  // sums in float32
  const int64_t axis = attrs<myc_index_add_attrs>(call).axis;
  return with_number(input(call).dtype, [&](auto zero) { return write_rows<kAdd, decltype(zero)>(call, axis); });
}
KERNEL_FN(index_copy, any) {
  const int64_t axis = attrs<myc_index_copy_attrs>(call).axis;
  return with_item(item_size(input(call).dtype),
                   [&](auto zero) { return write_rows<kUpdate, decltype(zero)>(call, axis); });
}

// Slices of y named by the rows of `index`, combined with the rows of `updates`.
template <int R, class T>
static int32_t write_nd(const myc_call* call, const myc_tensor* x, const myc_tensor& index, const myc_tensor& updates) {
  const myc_tensor& y = output(call);
  const int depth = static_cast<int>(index.shape[index.rank - 1]);
  const int64_t rows = index.size / depth, inner = extent(y, depth, y.rank);
  return with_indices(index, [&](auto* places) -> int32_t {
    for (int d = 0; d < depth; ++d) {
      const int32_t rc = check_indices(call, places + d, rows, y.shape[d], d, depth);
      if (rc != MYC_OK) return rc;
    }
    start_with(call, x);
    for (int64_t r = 0; r < rows; ++r) {
      int64_t at = 0;
      for (int d = 0; d < depth; ++d) at = at * y.shape[d] + wrap(places[r * depth + d], y.shape[d]);
      combine_row<T, R>(out<T>(call) + at * inner, static_cast<const T*>(updates.data) + r * inner, inner);
    }
    return MYC_OK;
  });
}

KERNEL_FN(tensor_scatter, any) {
  if (is_16_bits(output(call).dtype) && attrs<myc_tensor_scatter_attrs>(call).reduction != kUpdate) {
    return run_whole(call, MYC_KERNEL_NAME(tensor_scatter, any));
  }
  const myc_tensor& x = input(call);
  return with_reduction(x.dtype, attrs<myc_tensor_scatter_attrs>(call).reduction, [&](auto zero, auto how) {
    return write_nd<decltype(how)::value, decltype(zero)>(call, &x, input(call, 1), input(call, 2));
  });
}
KERNEL_FN(scatter_nd, any) {
  if (is_16_bits(output(call).dtype)) return run_whole(call, MYC_KERNEL_NAME(scatter_nd, any));  // sums in float32
  return with_number(output(call).dtype, [&](auto zero) {
    return write_nd<kAdd, decltype(zero)>(call, nullptr, input(call), input(call, 1));
  });
}

// ---- elements along an axis ----

struct Elements {
  int axis, last;
  int64_t n, pick;                  // extent and stride of y along the axis
  int64_t stride[MYC_MAX_RANK];     // of y; 0 along the axis
  const int64_t* shape;             // of the index and the source
  int64_t part;                     // elements of the source from `axis` on
};

// y[the same place, but where[.., j] along the axis] (+)= src[.., j], from the axis on.
template <class T, int R, class I>
__attribute__((noinline)) void scatter_part(const Elements& e, const I* where, const T* src, T* y) {
  const int64_t length = e.shape[e.last], along = e.axis == e.last ? 0 : 1;
  int64_t step[MYC_MAX_RANK] = {};
  for (int64_t r = 0; r < e.part; r += length) {
    for (int64_t j = 0; j < length; ++j) {
      T& target = y[j * along + wrap(where[r + j], e.n) * e.pick];
      target = combine<T, R>(target, src[r + j]);
    }
    for (int d = e.last - 1; d >= e.axis; --d) {  // odometer
      y += e.stride[d];
      if (++step[d] < e.shape[d]) break;
      y -= e.shape[d] * e.stride[d], step[d] = 0;
    }
  }
}

KERNEL_FN(scatter_elements, any) {
  if (is_16_bits(output(call).dtype) && attrs<myc_scatter_elements_attrs>(call).reduction != kUpdate) {
    return run_whole(call, MYC_KERNEL_NAME(scatter_elements, any));
  }
  const auto& a = attrs<myc_scatter_elements_attrs>(call);
  const myc_tensor &x = input(call), &index = input(call, 1);
  Elements e;
  e.axis = positive_axis(a.axis, x.rank), e.last = x.rank - 1;
  contiguous_strides(x.shape, x.rank, e.stride);
  e.n = x.shape[e.axis], e.pick = e.stride[e.axis], e.stride[e.axis] = 0;
  e.shape = index.shape, e.part = extent(index, e.axis, index.rank);
  return with_reduction(x.dtype, a.reduction, [&](auto zero, auto how) {
    typedef decltype(zero) T;
    return with_indices(index, [&](auto* places) -> int32_t {
      const int32_t rc = check_indices(call, places, index.size, e.n, e.axis);
      if (rc != MYC_OK) return rc;
      start_with(call, &x);
      if (index.size == 0) return MYC_OK;
      CopyPlan outer;  // axes before `axis` are independent of each other: they may run on several threads
      for (int d = 0; d < e.axis; ++d) outer.axis(index.shape[d], e.stride[d], extent(index, d + 1, index.rank));
      for_each_outer(call, outer, e.axis, e.part * 16, [&](int64_t to, int64_t from, int64_t) {
        scatter_part<T, decltype(how)::value>(e, places + from, in<T>(call, 2) + from, out<T>(call) + to);
      });
      return MYC_OK;
    });
  });
}

}  // namespace mycelia::MYC_ISA
