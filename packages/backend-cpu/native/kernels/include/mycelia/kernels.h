// What a kernel source includes: naming per instruction set, access to tensors and attributes, loops over rows,
// axes and broadcast shapes, threads and scratch memory.  Header only; no heap, no exceptions, no C++ library.
//
// Every source is compiled once per instruction set (MYC_ISA = generic, avx2, avx512, neon) into namespace
// mycelia::MYC_ISA, so that no inline function of one variant can be linked into another:
//
//   #include "mycelia/kernels.h"
//   namespace mycelia::MYC_ISA {
//   KERNEL_FN(relu, f32) { ...; return MYC_OK; }
//   }
#ifndef MYCELIA_KERNELS_H_
#define MYCELIA_KERNELS_H_

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mycelia/abi.h"
#include "mycelia/op_attrs.h"

// The build sets both; without them (Micro, one-off builds) a source compiles for the compiler's own target under
// the plain names myc_cpu_<op>_<dtype>.
#ifndef MYC_ISA
#define MYC_ISA generic
#define MYC_ISA_SUFFIX
#endif

#define MYC_PASTE_(a, b, c, d, e) a##b##c##d##e
#define MYC_PASTE(a, b, c, d, e) MYC_PASTE_(a, b, c, d, e)
#define MYC_KERNEL_NAME(op, dtypes) MYC_PASTE(myc_cpu_, op, _, dtypes, MYC_ISA_SUFFIX)
// KERNEL_FN(softmax, f32) { ... } defines the kernel that KERNEL(softmax, f32) lists in defs/<family>.def.
#define KERNEL_FN(op, dtypes) extern "C" int32_t MYC_KERNEL_NAME(op, dtypes)(const myc_call* call)

#define MYC_INLINE inline __attribute__((always_inline))

namespace mycelia::MYC_ISA {

// ---- small arithmetic (std:: versions would be shared between instruction sets by the linker) ----

template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
constexpr T clamp(T x, T low, T high) {
  return x < low ? low : high < x ? high : x;
}
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// ---- access to a call ----

template <class T>
const T& attrs(const myc_call* call) {
  return *static_cast<const T*>(call->attrs);
}

inline bool has_input(const myc_call* call, int i) { return i < call->n_in && call->in[i] != nullptr; }
inline const myc_tensor& input(const myc_call* call, int i = 0) { return *call->in[i]; }
inline const myc_tensor& output(const myc_call* call, int i = 0) { return *call->out[i]; }

// Data of an input; null for an optional input that was not given.
template <class T>
const T* in(const myc_call* call, int i = 0) {
  return has_input(call, i) ? static_cast<const T*>(call->in[i]->data) : nullptr;
}
template <class T>
T* out(const myc_call* call, int i = 0) {
  return static_cast<T*>(call->out[i]->data);
}

// The axis counted from the front; axes may be negative as in NumPy.
inline int positive_axis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

// Product of the extents of axes [begin, end).
inline int64_t extent(const myc_tensor& t, int begin, int end) {
  int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= t.shape[d];
  return n;
}

// Bytes of one element of a dtype of abi.h.
inline int64_t item_size(int32_t dtype) {
  constexpr int8_t sizes[MYC_DTYPE_COUNT] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[dtype];
}

// Leaves a text in ctx->error and returns MYC_E_ARGUMENT: `return fail(call, "gather: index %lld is not in ...", ...)`.
template <class... Args>
int32_t fail(const myc_call* call, const char* format, Args... args) {
  snprintf(call->ctx->error, sizeof(call->ctx->error), format, args...);
  return MYC_E_ARGUMENT;
}

// ---- threads ----

// Work below this many bytes moved or 4 x flops is not worth a second thread (about 10 us of one core).
constexpr int64_t kMinParallelWork = 1 << 17;

// Runs body(begin, end, worker) over ranges that cover [0, n), each at least `grain` long when possible, on several
// threads.  worker < max_workers(ctx) tells concurrent bodies apart.
template <class Body>
MYC_INLINE void parallel_for_worker(myc_context* ctx, int64_t n, int64_t grain, const Body& body) {
  if (n <= 0) return;
  if (n <= grain || ctx->threads <= 1) return body(int64_t{0}, n, int32_t{0});
  ctx->parallel_for(
      ctx, n, grain < 1 ? 1 : grain,
      [](void* arg, int64_t begin, int64_t end, int32_t worker) {
        (*static_cast<const Body*>(arg))(begin, end, worker);
      },
      const_cast<Body*>(&body));
}
template <class Body>
MYC_INLINE void parallel_for_worker(const myc_call* call, int64_t n, int64_t grain, const Body& body) {
  parallel_for_worker(call->ctx, n, grain, body);
}

// The same with body(begin, end).
template <class Body>
MYC_INLINE void parallel_for(myc_context* ctx, int64_t n, int64_t grain, const Body& body) {
  parallel_for_worker(ctx, n, grain, [&](int64_t begin, int64_t end, int32_t) { body(begin, end); });
}
template <class Body>
MYC_INLINE void parallel_for(const myc_call* call, int64_t n, int64_t grain, const Body& body) {
  parallel_for(call->ctx, n, grain, body);
}

// body(row) for each row; `row_work` is the cost of a row in bytes moved (or 4 x flops) and decides the split.
template <class Body>
MYC_INLINE void parallel_rows(const myc_call* call, int64_t rows, int64_t row_work, const Body& body) {
  parallel_for(call, rows, kMinParallelWork / (row_work + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

inline int32_t max_workers(const myc_context* ctx) { return max(ctx->threads, int32_t{1}); }
inline int32_t max_workers(const myc_call* call) { return max_workers(call->ctx); }

// ---- scratch memory ----

// Scratch memory of one kernel, given back when this object goes.  `take` returns null when memory is exhausted:
// return MYC_E_MEMORY then.  Only on the calling thread: give each worker its slice of one block.
class Scratch {
 public:
  explicit Scratch(const myc_call* call) : Scratch(call->ctx) {}
  explicit Scratch(myc_context* ctx) : ctx_(ctx), used_(ctx->scratch_used) {}
  ~Scratch() { ctx_->scratch_used = used_; }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T>
  T* take(int64_t count) {
    return static_cast<T*>(ctx_->scratch(ctx_, count * static_cast<int64_t>(sizeof(T))));
  }

 private:
  myc_context* ctx_;
  int64_t used_;
};

// ---- rows and axes ----

// The input as rows along its innermost axis: kernels that normalize or reduce the last axis.
template <class T>
struct Rows {
  int64_t count, length;
  const T* x;
  T* y;
  const T* in(int64_t r) const { return x + r * length; }
  T* out(int64_t r) const { return y + r * length; }
};

template <class T>
Rows<T> innermost_rows(const myc_call* call, int i = 0) {
  const myc_tensor& t = input(call, i);
  const int64_t length = t.rank > 0 ? t.shape[t.rank - 1] : 1;
  return {length > 0 ? t.size / length : 0, length, in<T>(call, i), out<T>(call)};
}

// A tensor seen as [outer, n, inner] around one axis.
struct AxisView {
  int64_t outer, n, inner;
};

inline AxisView around_axis(const myc_tensor& t, int64_t axis) {
  if (t.rank == 0) return {1, 1, 1};
  const int a = positive_axis(axis, t.rank);
  return {extent(t, 0, a), t.shape[a], extent(t, a + 1, t.rank)};
}

// ---- broadcasting ----

// Iteration of K contiguous tensors broadcast to one shape.  Neighbouring axes on which all operands agree are merged,
// so that equal shapes and scalars become one long loop.  Element strides are 0 along broadcast axes.
template <int K>
struct Broadcast {
  int rank;                      // at least 1
  int64_t shape[MYC_MAX_RANK];   // merged result shape
  int64_t stride[K][MYC_MAX_RANK];

  int64_t inner() const { return shape[rank - 1]; }
  int64_t inner_stride(int k) const { return stride[k][rank - 1]; }  // 1 or 0
  int64_t rows() const {
    int64_t n = 1;
    for (int d = 0; d < rank - 1; ++d) n *= shape[d];
    return n;
  }
};

template <int K>
Broadcast<K> broadcast(const myc_tensor& result, const myc_tensor* const (&operands)[K]) {
  Broadcast<K> b;
  b.rank = 0;
  int64_t running[K];  // elements of operand k inside the axes seen so far
  for (int k = 0; k < K; ++k) running[k] = 1;
  // From the innermost axis outwards; collected in reverse order.
  for (int d = result.rank - 1; d >= 0; --d) {
    const int64_t n = result.shape[d];
    int64_t stride[K];
    for (int k = 0; k < K; ++k) {
      const int axis = d - (result.rank - operands[k]->rank);
      const int64_t own = axis >= 0 ? operands[k]->shape[axis] : 1;
      stride[k] = own == 1 ? 0 : running[k];
      running[k] *= own;
    }
    if (n == 1) continue;
    bool merged = b.rank > 0;
    for (int k = 0; merged && k < K; ++k) merged = stride[k] == b.stride[k][b.rank - 1] * b.shape[b.rank - 1];
    if (merged) {
      b.shape[b.rank - 1] *= n;
      continue;
    }
    for (int k = 0; k < K; ++k) b.stride[k][b.rank] = stride[k];
    b.shape[b.rank++] = n;
  }
  if (b.rank == 0) {
    b.shape[0] = 1;
    for (int k = 0; k < K; ++k) b.stride[k][0] = 1;
    b.rank = 1;
  }
  for (int i = 0, j = b.rank - 1; i < j; ++i, --j) {
    const int64_t n = b.shape[i];
    b.shape[i] = b.shape[j], b.shape[j] = n;
    for (int k = 0; k < K; ++k) {
      const int64_t s = b.stride[k][i];
      b.stride[k][i] = b.stride[k][j], b.stride[k][j] = s;
    }
  }
  return b;
}

// row(at, offset, n) for every innermost run: the result's elements [at, at + n) are computed from
// operand k's elements offset[k] + i * plan.inner_stride(k), i < n.  A single long run is cut for the threads.
template <int K, class Row>
MYC_INLINE void for_each_row(const myc_call* call, const Broadcast<K>& plan, int64_t item_work, const Row& row) {
  const int64_t n = plan.inner(), rows = plan.rows();
  const int64_t grain = kMinParallelWork / (item_work + 1) + 1;  // elements
  if (rows == 1) {
    return parallel_for(call, n, grain, [&](int64_t begin, int64_t end) {
      int64_t offset[K];
      for (int k = 0; k < K; ++k) offset[k] = begin * plan.inner_stride(k);
      row(begin, offset, end - begin);
    });
  }
  parallel_for(call, rows, grain / (n + 1) + 1, [&](int64_t begin, int64_t end) {
    int64_t index[MYC_MAX_RANK], offset[K];
    for (int k = 0; k < K; ++k) offset[k] = 0;
    int64_t rest = begin;
    for (int d = plan.rank - 2; d >= 0; --d) {
      index[d] = rest % plan.shape[d];
      rest /= plan.shape[d];
      for (int k = 0; k < K; ++k) offset[k] += index[d] * plan.stride[k][d];
    }
    for (int64_t r = begin; r < end; ++r) {
      row(r * n, offset, n);
      for (int d = plan.rank - 2; d >= 0; --d) {  // odometer
        for (int k = 0; k < K; ++k) offset[k] += plan.stride[k][d];
        if (++index[d] < plan.shape[d]) break;
        for (int k = 0; k < K; ++k) offset[k] -= plan.shape[d] * plan.stride[k][d];
        index[d] = 0;
      }
    }
  });
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_KERNELS_H_
