// Cross entropies of softmax and sigmoid, squared error.  Logits, and what has their shape, have T: float or a float of 16
// bits.  The softmax forms make loss and gradient in one call: three passes over a row in L1, 8 bytes an element of
// compulsory traffic, half of that for 16 bits.
#include "elementwise/elementwise.h"
#include "reductions/softmax_row.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kRowWork = 40;  // bytes and flops of an element

// exponentials = exp(x - its peak).
struct RowSum {
  float factor;   // of the exponentials, which makes them softmax(x) * scale
  float log_sum;  // log(sum(exp(x)))
};
template <class T>
RowSum exp_row(const T* x, float* exponentials, int64_t n, float scale) {
  const float peak = row_max(x, n), total = row_exp_sum<true>(x, exponentials, n, peak, n);
  return {scale / total, peak + logf(total)};
}

// A row of floats for each worker, where the exponentials wait; those of floats wait where their gradients will be.
template <class T>
class WaitingRows {
 public:
  WaitingRows(Scratch* scratch, const myc_call* call, int64_t n) : stride_(round_up(n, 16)) {
    if constexpr (sizeof(T) != sizeof(float)) rows_ = scratch->take<float>(max_workers(call) * stride_);
  }
  bool ok() const { return sizeof(T) == sizeof(float) || rows_; }
  float* of(int32_t worker, T* gradient) const {
    if constexpr (sizeof(T) == sizeof(float)) return gradient;
    else return rows_ + worker * stride_;
  }

 private:
  int64_t stride_;
  float* rows_ = nullptr;
};

// body(row, worker) for each row of n elements.
template <class Body>
MYC_INLINE void for_rows(const myc_call* call, int64_t rows, int64_t n, const Body& body) {
  parallel_for_worker(call, rows, kMinParallelWork / (n * kRowWork + 1) + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        for (int64_t r = begin; r < end; ++r) body(r, worker);
                      });
}

double sum_of_losses(const float* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

// reduction: 0 mean, 1 sum, 2 none
template <class Label, class T>
int32_t sparse_cross_entropy_of(const myc_call* call) {
  const auto& a = attrs<myc_sparse_softmax_cross_entropy_with_logits_attrs>(call);
  const int64_t rows = input(call).shape[0], n = input(call).shape[1];
  const T* x = in<T>(call);
  const Label* labels = in<Label>(call, 1);
  float* loss = out<float>(call);
  T* gradient = out<T>(call, 1);
  int64_t counted = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = labels[r];
    if (label == a.ignore_index) continue;
    if (label < 0 || label >= n) {
      return fail(call, "sparse_softmax_cross_entropy_with_logits: label %lld is not in [0, %lld)",
                  static_cast<long long>(label), static_cast<long long>(n));
    }
    ++counted;
  }
  const float scale = a.reduction == 0 ? 1.0f / static_cast<float>(max(counted, int64_t{1})) : 1.0f;
  Scratch scratch(call);
  float* each = a.reduction == 2 ? loss : scratch.take<float>(rows);
  const WaitingRows<T> waiting(&scratch, call, n);
  if (!each || !waiting.ok()) return MYC_E_MEMORY;
  for_rows(call, rows, n, [&](int64_t r, int32_t worker) {
    T* g = gradient + r * n;
    const int64_t label = labels[r];
    if (label == a.ignore_index) {
      each[r] = 0;
      memset(g, 0, sizeof(T) * n);
      return;
    }
    float* e = waiting.of(worker, g);
    const RowSum sum = exp_row(x + r * n, e, n, scale);
    each[r] = sum.log_sum - widen_one(x[r * n + label]);
    const float own = e[label] * sum.factor - scale;
    map(e, g, n, [=](f32v v) { return v * sum.factor; });
    store_one(g + label, own);
  });
  if (a.reduction != 2) loss[0] = static_cast<float>(sum_of_losses(each, rows) * scale);
  return MYC_OK;
}

template <class Label>
int32_t sparse_cross_entropy(const myc_call* call) {
  return with_float_type(input(call).dtype, [&](auto type) { return sparse_cross_entropy_of<Label, decltype(type)>(call); });
}

KERNEL_FN(sparse_softmax_cross_entropy_with_logits, f32_i32) { return sparse_cross_entropy<int32_t>(call); }
KERNEL_FN(sparse_softmax_cross_entropy_with_logits, f32_i64) { return sparse_cross_entropy<int64_t>(call); }

// loss = -sum(labels log_p), gradient = p sum(labels) - labels
template <class T>
int32_t cross_entropy_of(const myc_call* call) {
  const int64_t rows = input(call).shape[0], n = input(call).shape[1];
  const T *x = in<T>(call), *labels = in<T>(call, 1);
  float* loss = out<float>(call);
  T* gradient = out<T>(call, 1);
  Scratch scratch(call);
  const WaitingRows<T> waiting(&scratch, call, n);
  if (!waiting.ok()) return MYC_E_MEMORY;
  for_rows(call, rows, n, [&](int64_t r, int32_t worker) {
    const T *xr = x + r * n, *t = labels + r * n;
    T* g = gradient + r * n;
    float* e = waiting.of(worker, g);
    const RowSum row = exp_row(xr, e, n, 1.0f);
    const f32v log_sum = splat(row.log_sum);
    f32v sum = {}, mass = {};
    for_vectors(xr, n, 0.0f, [&](f32v v, int64_t i, int64_t lanes) {
      const f32v target = load_lanes(t + i, lanes);
      sum += target * (log_sum - v);
      mass += target;
    });
    loss[r] = horizontal_sum(sum);
    const f32v factor = splat(row.factor), total = splat(horizontal_sum(mass));
    map(e, t, g, n, [=](f32v v, f32v target) { return v * factor * total - target; });
  });
  return MYC_OK;
}

KERNEL_FN(softmax_cross_entropy_with_logits, f32) {
  return with_float_type(input(call).dtype, [&](auto type) { return cross_entropy_of<decltype(type)>(call); });
}

KERNEL_FN(sigmoid_cross_entropy_with_logits, f32) {
  return map_pairs(call, 64, [](f32v v, f32v t) { return (max_or_second(f32v{}, v) - v * t) + log1p(exp(-abs(v))); });
}

// ---- squared error ----

template <class T>
int32_t squared_error_of(const myc_call* call) {
  const auto& a = attrs<myc_squared_error_attrs>(call);
  const int64_t n = input(call).size;
  const T *x = in<T>(call), *y = in<T>(call, 1);
  T* result = out<T>(call);
  if (a.reduction == 2) return map_pairs(call, 12, [](f32v p, f32v q) { return (p - q) * (p - q); });
  // Blocks of fixed size: the sum does not depend on the number of threads.
  constexpr int64_t kBlock = 1 << 14;
  const int64_t blocks = ceil_div(n, kBlock);
  Scratch scratch(call);
  double* sums = scratch.take<double>(max(blocks, int64_t{1}));
  if (!sums) return MYC_E_MEMORY;
  parallel_rows(call, blocks, kBlock * 8, [&](int64_t b) {
    const T *p = x + b * kBlock, *q = y + b * kBlock;
    sums[b] = sum_terms(min(kBlock, n - b * kBlock), [=](int64_t i, int64_t lanes) {
      const f32v d = load_lanes(p + i, lanes) - load_lanes(q + i, lanes);
      return d * d;
    });
  });
  double total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += sums[b];
  if (a.reduction == 0) total /= static_cast<double>(max(n, int64_t{1}));
  store_one(result, static_cast<float>(total));
  return MYC_OK;
}

KERNEL_FN(squared_error, f32) {
  return with_float_type(input(call).dtype, [&](auto type) { return squared_error_of<decltype(type)>(call); });
}

template <class T>
int32_t squared_error_grad_of(const myc_call* call) {
  const auto& a = attrs<myc_squared_error_grad_attrs>(call);
  const int64_t n = output(call).size;
  const T *dy = in<T>(call), *x = in<T>(call, 1), *y = in<T>(call, 2);
  T* dx = out<T>(call);
  const float scale = a.reduction == 0 ? 2.0f / static_cast<float>(max(n, int64_t{1})) : 2.0f;
  const bool each = a.reduction == 2;
  parallel_for(call, n, grain_of(12), [&](int64_t begin, int64_t end) {
    const f32v factor = splat(each ? scale : widen_one(dy[0]) * scale);
    if (!each) return map(x + begin, y + begin, dx + begin, end - begin, [=](f32v p, f32v q) { return (p - q) * factor; });
    for (int64_t i = begin; i < end; i += kLanes) {
      const int64_t lanes = min(int64_t{kLanes}, end - i);
      const f32v d = (load_lanes(x + i, lanes) - load_lanes(y + i, lanes)) * factor;
      store_lanes(dx + i, d * load_lanes(dy + i, lanes), lanes);
    }
  });
  return MYC_OK;
}

KERNEL_FN(squared_error_grad, f32) {
  return with_float_type(output(call).dtype, [&](auto type) { return squared_error_grad_of<decltype(type)>(call); });
}

}  // namespace mycelia::MYC_ISA
