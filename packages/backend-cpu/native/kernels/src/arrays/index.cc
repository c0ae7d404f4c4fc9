// Kernels that read by position or condition: gather and its kin, where, masked_fill, one_hot, triangles, diagonals.
// Any dtype by element size.  Cost: bytes of the result read and written, plus the indices.
#include "arrays/index_common.h"
#include "arrays/shape_copy.h"
#include "mycelia/kernels.h"

namespace mycelia::MYC_ISA {

// ---- gather ----

// y[b, o, i] = x[b, o, index[b, i]], rows of `bytes` bytes.
template <class I>
static int32_t gather_rows(const myc_call* call, const char* x, const I* index, char* y, int64_t batch, int64_t outer,
                           int64_t n, int64_t picks, int64_t bytes, int axis) {
  const int32_t rc = check_indices(call, index, batch * picks, n, axis);
  if (rc != MYC_OK) return rc;
  const int64_t group = outer * picks;
  parallel_for(call, batch * group, kMinParallelWork / (2 * bytes + 8) + 1, [&](int64_t begin, int64_t end) {
    int64_t b = begin / group, o = begin % group / picks, i = begin % picks;
    for (int64_t r = begin; r < end; ++r) {
      copy_bytes(y + r * bytes, x + ((b * outer + o) * n + wrap(index[b * picks + i], n)) * bytes, bytes);
      if (++i == picks) {
        i = 0;
        if (++o == outer) o = 0, ++b;
      }
    }
  });
  return MYC_OK;
}

KERNEL_FN(gather, any) {
  const auto& a = attrs<myc_gather_attrs>(call);
  const myc_tensor &x = input(call), &index = input(call, 1), &y = output(call);
  if (y.size == 0) return MYC_OK;
  const int axis = positive_axis(a.axis, x.rank), batch = positive_axis(a.batch_dims, index.rank + 1);
  return with_indices(index, [&](auto* places) {
    return gather_rows(call, in<char>(call), places, out<char>(call), extent(x, 0, batch), extent(x, batch, axis),
                       x.shape[axis], extent(index, batch, index.rank),
                       extent(x, axis + 1, x.rank) * item_size(x.dtype), axis);
  });
}

KERNEL_FN(embedding, any) {
  const myc_tensor &ids = input(call), &table = input(call, 1);
  if (output(call).size == 0) return MYC_OK;
  return with_indices(ids, [&](auto* places) {
    return gather_rows(call, in<char>(call, 1), places, out<char>(call), 1, 1, table.shape[0], ids.size,
                       table.shape[1] * item_size(table.dtype), 0);
  });
}

KERNEL_FN(gather_nd, any) {
  const myc_tensor &x = input(call), &index = input(call, 1), &y = output(call);
  const int depth = static_cast<int>(index.shape[index.rank - 1]);
  const int64_t rows = index.size / depth, bytes = extent(x, depth, x.rank) * item_size(x.dtype);
  if (y.size == 0) return MYC_OK;
  return with_indices(index, [&](auto* places) -> int32_t {
    for (int d = 0; d < depth; ++d) {
      const int32_t rc = check_indices(call, places + d, rows, x.shape[d], d, depth);
      if (rc != MYC_OK) return rc;
    }
    parallel_rows(call, rows, 2 * bytes + 8 * depth, [&](int64_t r) {
      int64_t at = 0;
      for (int d = 0; d < depth; ++d) at = at * x.shape[d] + wrap(places[r * depth + d], x.shape[d]);
      copy_bytes(out<char>(call) + r * bytes, in<char>(call) + at * bytes, bytes);
    });
    return MYC_OK;
  });
}

template <class T, class I>
__attribute__((noinline)) void pick_row(const T* x, const I* places, T* y, int64_t length, int64_t n, int64_t along,
                                        int64_t pick) {
  for (int64_t j = 0; j < length; ++j) y[j] = x[j * along + wrap(places[j], n) * pick];
}

// y[.., j] = x[the same place, but index[.., j] along `dim`].
KERNEL_FN(gather_d, any) {
  const auto& a = attrs<myc_gather_d_attrs>(call);
  const myc_tensor &x = input(call), &index = input(call, 1);
  const int dim = positive_axis(a.dim, x.rank), last = x.rank - 1;
  if (index.size == 0) return MYC_OK;
  int64_t stride[MYC_MAX_RANK];
  contiguous_strides(x.shape, x.rank, stride);
  const int64_t n = x.shape[dim], length = index.shape[last], along = dim == last ? 0 : 1, pick = stride[dim];
  stride[dim] = 0;
  return with_item(item_size(x.dtype), [&](auto zero) {
    typedef decltype(zero) T;
    return with_indices(index, [&](auto* places) -> int32_t {
      const int32_t rc = check_indices(call, places, index.size, n, dim);
      if (rc != MYC_OK) return rc;
      CopyPlan rows;
      for (int d = 0; d < last; ++d) rows.axis(index.shape[d], stride[d], extent(index, d + 1, index.rank));
      for_each_outer(call, rows, last, length * 16, [&](int64_t from, int64_t to, int64_t) {
        pick_row(in<T>(call) + from, places + to, out<T>(call) + to, length, n, along, pick);
      });
      return MYC_OK;
    });
  });
}

// Positions in row-major order: linear = ((i0 * n1) + i1) * n2 + ..., each index tensor broadcast to the result.
KERNEL_FN(linear_index, any) {
  const auto& a = attrs<myc_linear_index_attrs>(call);
  const myc_tensor& y = output(call);
  int64_t* linear = out<int64_t>(call);
  memset(linear, 0, y.size * sizeof(int64_t));
  for (int32_t k = 0; k < call->n_in; ++k) {
    const myc_tensor& index = input(call, k);
    const int64_t n = a.dims.v[k];
    const int32_t rc = with_indices(index, [&](auto* places) -> int32_t {
      const int32_t found = check_indices(call, places, index.size, n, k);
      if (found != MYC_OK || y.size == 0) return found;
      const myc_tensor* const operands[] = {&index};
      const auto plan = broadcast(y, operands);
      const int64_t step = plan.inner_stride(0);
      for_each_row(call, plan, 24, [&](int64_t at, const int64_t* offset, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          linear[at + i] = linear[at + i] * n + wrap(places[offset[0] + i * step], n);
        }
      });
      return MYC_OK;
    });
    if (rc != MYC_OK) return rc;
  }
  return MYC_OK;
}

// ---- conditions ----

template <class T, int A, int B>
MYC_INLINE void select_row(const uint8_t* condition, const T* a, const T* b, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T u = a[i * A], v = b[i * B];  // read both: the loop has no branch and becomes vector code
    y[i] = condition[i] ? u : v;
  }
}

// y = condition ? a : b, all broadcast.
static int32_t select_broadcast(const myc_call* call, const myc_tensor& condition, const myc_tensor& a,
                                const myc_tensor& b) {
  const myc_tensor& result = output(call);
  if (condition.dtype != MYC_BOOL) return MYC_E_UNSUPPORTED;
  if (result.size == 0) return MYC_OK;
  return with_item(item_size(a.dtype), [&](auto zero) -> int32_t {
    typedef decltype(zero) T;
    const myc_tensor* const operands[] = {&condition, &a, &b};
    const auto plan = broadcast(result, operands);
    const int64_t sc = plan.inner_stride(0), sa = plan.inner_stride(1), sb = plan.inner_stride(2);
    const uint8_t* c = static_cast<const uint8_t*>(condition.data);
    const T *x = static_cast<const T*>(a.data), *z = static_cast<const T*>(b.data);
    T* y = static_cast<T*>(result.data);
    for_each_row(call, plan, 3 * sizeof(T) + 1, [&](int64_t at, const int64_t* offset, int64_t n) {
      const uint8_t* chosen = c + offset[0];
      const T *u = x + offset[1], *v = z + offset[2];
      if (sc == 0) {
        *chosen ? copy_row(u, sa, y + at, 1, n) : copy_row(v, sb, y + at, 1, n);
      } else if (sa && sb) {
        select_row<T, 1, 1>(chosen, u, v, y + at, n);
      } else if (sa) {
        select_row<T, 1, 0>(chosen, u, v, y + at, n);
      } else if (sb) {
        select_row<T, 0, 1>(chosen, u, v, y + at, n);
      } else {
        select_row<T, 0, 0>(chosen, u, v, y + at, n);
      }
    });
    return MYC_OK;
  });
}

KERNEL_FN(where, any) { return select_broadcast(call, input(call), input(call, 1), input(call, 2)); }
KERNEL_FN(masked_fill, any) { return select_broadcast(call, input(call, 1), input(call, 2), input(call)); }

// ---- one-hot ----

KERNEL_FN(one_hot, any) {
  const auto& a = attrs<myc_one_hot_attrs>(call);
  const myc_tensor &index = input(call), &on = input(call, 1), &off = input(call, 2), &y = output(call);
  if (y.size == 0) return MYC_OK;
  const int axis = positive_axis(a.axis, y.rank);
  const int64_t inner = extent(y, axis + 1, y.rank), outer = extent(y, 0, axis), depth = a.depth;
  CopyPlan fill;
  fill.axis(y.size, 0, 1);
  const int32_t rc = copy(call, off.data, y.data, item_size(y.dtype), fill);
  if (rc != MYC_OK) return rc;
  return with_item(item_size(y.dtype), [&](auto zero) {
    typedef decltype(zero) T;
    return with_indices(index, [&](auto* places) -> int32_t {
      const T value = *static_cast<const T*>(on.data);
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          const int64_t k = places[o * inner + i];
          if (k >= 0 && k < depth) out<T>(call)[(o * depth + k) * inner + i] = value;
        }
      }
      return MYC_OK;
    });
  });
}

// ---- triangles and diagonals ----

// Each row keeps its elements [first, last) and is zero elsewhere.
template <class Range>
static int32_t keep_of_rows(const myc_call* call, const Range& range) {
  const myc_tensor& x = input(call);
  if (x.size == 0) return MYC_OK;
  const int64_t m = x.shape[x.rank - 2], n = x.shape[x.rank - 1], item = item_size(x.dtype);
  parallel_rows(call, x.size / n, 2 * n * item, [&](int64_t r) {
    int64_t first = 0, last = n;
    range(r % m, n, &first, &last);
    const char* source = in<char>(call) + r * n * item;
    char* y = out<char>(call) + r * n * item;
    memset(y, 0, first * item);
    memcpy(y + first * item, source + first * item, (last - first) * item);
    memset(y + last * item, 0, (n - last) * item);
  });
  return MYC_OK;
}

// Diagonal k of a matrix; of those beyond its corners the nearest, which keeps as much.
static int64_t diagonal_of(const myc_tensor& x, int64_t k) { return clamp(k, -x.shape[x.rank - 2], x.shape[x.rank - 1]); }

KERNEL_FN(tril, any) {
  const int64_t k = diagonal_of(input(call), attrs<myc_tril_attrs>(call).diagonal);
  return keep_of_rows(call, [k](int64_t i, int64_t n, int64_t*, int64_t* last) {
    *last = clamp(i + k + 1, int64_t{0}, n);
  });
}

KERNEL_FN(triu, any) {
  const int64_t k = diagonal_of(input(call), attrs<myc_triu_attrs>(call).diagonal);
  return keep_of_rows(call, [k](int64_t i, int64_t n, int64_t* first, int64_t*) {
    *first = clamp(i + k, int64_t{0}, n);
  });
}

// Strides of the diagonal of `t` as the last axis behind its other axes; returns the first element.
static int64_t diagonal_view(const myc_tensor& t, int64_t offset, int64_t dim1, int64_t dim2, int64_t* stride) {
  int64_t all[MYC_MAX_RANK];
  contiguous_strides(t.shape, t.rank, all);
  const int i = positive_axis(dim1, t.rank), j = positive_axis(dim2, t.rank);
  int r = 0;
  for (int d = 0; d < t.rank; ++d) {
    if (d != i && d != j) stride[r++] = all[d];
  }
  stride[r] = all[i] + all[j];
  return offset >= 0 ? offset * all[j] : -offset * all[i];
}

KERNEL_FN(diagonal, any) {
  const auto& a = attrs<myc_diagonal_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  if (y.size == 0) return MYC_OK;
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK];
  const int64_t start = diagonal_view(x, a.offset, a.dim1, a.dim2, from);
  contiguous_strides(y.shape, y.rank, to);
  CopyPlan plan;
  for (int d = 0; d < y.rank; ++d) plan.axis(y.shape[d], from[d], to[d]);
  const int64_t item = item_size(x.dtype);
  return copy(call, in<char>(call) + start * item, y.data, item, plan);
}

KERNEL_FN(diagonal_place, any) {
  const auto& a = attrs<myc_diagonal_place_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  const int64_t item = item_size(x.dtype);
  memset(y.data, 0, y.size * item);
  if (x.size == 0) return MYC_OK;
  int64_t from[MYC_MAX_RANK], to[MYC_MAX_RANK];
  contiguous_strides(x.shape, x.rank, from);
  const int64_t start = diagonal_view(y, a.offset, a.dim1, a.dim2, to);
  CopyPlan plan;
  for (int d = 0; d < x.rank; ++d) plan.axis(x.shape[d], from[d], to[d]);
  return copy(call, x.data, out<char>(call) + start * item, item, plan);
}

}  // namespace mycelia::MYC_ISA
