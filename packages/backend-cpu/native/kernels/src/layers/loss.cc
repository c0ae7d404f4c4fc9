// Cross entropies of softmax and sigmoid, squared error, float32.  The softmax forms make loss and gradient in one call:
// three passes over a row in L1, 8 bytes an element of compulsory traffic.
#include "elementwise/elementwise.h"
#include "reductions/softmax_row.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kRowWork = 40;  // bytes and flops of an element

// y = softmax(x) * scale; returns log(sum(exp(x))).
float scaled_softmax_row(const float* x, float* y, int64_t n, float scale) {
  const float peak = row_max(x, n), total = row_exp_sum<true>(x, y, n, peak, n);
  const float factor = scale / total;
  map(y, y, n, [=](f32v v) { return v * factor; });
  return peak + logf(total);
}

double sum_of_losses(const float* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

// reduction: 0 mean, 1 sum, 2 none
template <class Label>
int32_t sparse_cross_entropy(const myc_call* call) {
  const auto& a = attrs<myc_sparse_softmax_cross_entropy_with_logits_attrs>(call);
  const int64_t rows = input(call).shape[0], n = input(call).shape[1];
  const float* x = in<float>(call);
  const Label* labels = in<Label>(call, 1);
  float *loss = out<float>(call), *gradient = out<float>(call, 1);
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
  if (!each) return MYC_E_MEMORY;
  parallel_rows(call, rows, n * kRowWork, [&](int64_t r) {
    float* g = gradient + r * n;
    if (labels[r] == a.ignore_index) {
      each[r] = 0;
      memset(g, 0, sizeof(float) * n);
      return;
    }
    each[r] = scaled_softmax_row(x + r * n, g, n, scale) - x[r * n + labels[r]];
    g[labels[r]] -= scale;
  });
  if (a.reduction != 2) loss[0] = static_cast<float>(sum_of_losses(each, rows) * scale);
  return MYC_OK;
}

KERNEL_FN(sparse_softmax_cross_entropy_with_logits, f32_i32) { return sparse_cross_entropy<int32_t>(call); }
KERNEL_FN(sparse_softmax_cross_entropy_with_logits, f32_i64) { return sparse_cross_entropy<int64_t>(call); }

// loss = -sum(labels log_p), gradient = p sum(labels) - labels
KERNEL_FN(softmax_cross_entropy_with_logits, f32) {
  const int64_t rows = input(call).shape[0], n = input(call).shape[1];
  const float *x = in<float>(call), *labels = in<float>(call, 1);
  float *loss = out<float>(call), *gradient = out<float>(call, 1);
  parallel_rows(call, rows, n * kRowWork, [&](int64_t r) {
    const float *xr = x + r * n, *t = labels + r * n;
    float* g = gradient + r * n;
    const f32v log_sum = splat(scaled_softmax_row(xr, g, n, 1.0f));
    f32v sum = {}, mass = {};
    for_vectors(xr, n, 0.0f, [&](f32v v, int64_t i, int64_t lanes) {
      const f32v target = load_lanes(t + i, lanes);
      sum += target * (log_sum - v);
      mass += target;
    });
    loss[r] = horizontal_sum(sum);
    const f32v total = splat(horizontal_sum(mass));
    map(g, t, g, n, [=](f32v p, f32v target) { return p * total - target; });
  });
  return MYC_OK;
}

KERNEL_FN(sigmoid_cross_entropy_with_logits, f32) {
  const float *x = in<float>(call), *label = in<float>(call, 1);
  float* y = out<float>(call);
  parallel_for(call, output(call).size, grain_of(64), [&](int64_t begin, int64_t end) {
    map(x + begin, label + begin, y + begin, end - begin, [](f32v v, f32v t) {
      return (max_or_second(f32v{}, v) - v * t) + log1p(exp(-abs(v)));
    });
  });
  return MYC_OK;
}

// ---- squared error ----

double sum_of_squared_differences(const float* x, const float* y, int64_t n) {
  return sum_terms(n, [=](int64_t i, int64_t lanes) {
    const f32v d = load_lanes(x + i, lanes) - load_lanes(y + i, lanes);
    return d * d;
  });
}

KERNEL_FN(squared_error, f32) {
  const auto& a = attrs<myc_squared_error_attrs>(call);
  const int64_t n = input(call).size;
  const float *x = in<float>(call), *y = in<float>(call, 1);
  float* result = out<float>(call);
  if (a.reduction == 2) {
    parallel_for(call, n, grain_of(12), [&](int64_t begin, int64_t end) {
      map(x + begin, y + begin, result + begin, end - begin, [](f32v p, f32v q) { return (p - q) * (p - q); });
    });
    return MYC_OK;
  }
  // Blocks of fixed size: the sum does not depend on the number of threads.
  constexpr int64_t kBlock = 1 << 14;
  const int64_t blocks = ceil_div(n, kBlock);
  Scratch scratch(call);
  double* sums = scratch.take<double>(max(blocks, int64_t{1}));
  if (!sums) return MYC_E_MEMORY;
  parallel_rows(call, blocks, kBlock * 8, [&](int64_t b) {
    sums[b] = sum_of_squared_differences(x + b * kBlock, y + b * kBlock, min(kBlock, n - b * kBlock));
  });
  double total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += sums[b];
  result[0] = static_cast<float>(a.reduction == 0 ? total / static_cast<double>(max(n, int64_t{1})) : total);
  return MYC_OK;
}

KERNEL_FN(squared_error_grad, f32) {
  const auto& a = attrs<myc_squared_error_grad_attrs>(call);
  const int64_t n = output(call).size;
  const float *dy = in<float>(call), *x = in<float>(call, 1), *y = in<float>(call, 2);
  float* dx = out<float>(call);
  const float scale = a.reduction == 0 ? 2.0f / static_cast<float>(max(n, int64_t{1})) : 2.0f;
  const bool each = a.reduction == 2;
  parallel_for(call, n, grain_of(12), [&](int64_t begin, int64_t end) {
    const f32v factor = splat(each ? scale : dy[0] * scale);
    map(x + begin, y + begin, dx + begin, end - begin, [=](f32v p, f32v q) { return (p - q) * factor; });
    if (each) map(dx + begin, dy + begin, dx + begin, end - begin, [](f32v d, f32v g) { return d * g; });
  });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
