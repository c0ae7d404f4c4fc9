// Means of windows, regular and adaptive, with the channels first, their gradients, and elements by index.
// All of them are bound by memory: 4 bytes read an input element, 4 written an output element.
#include "nn_ops/pool.h"

namespace mycelia::MYC_ISA {
namespace {

// to[e] (+)= sum of row[k] over window e.
void sum_row(const Axis& a, const float* row, float* to) {
  if (a.kernel == 0) {
    for (int64_t e = 0; e < a.out; ++e)
      for (int64_t k = a.first(e), end = a.last(e); k < end; ++k) to[e] += row[k];
    return;
  }
  for (int64_t t = 0; t < a.kernel; ++t) {
    const int64_t shift = t - a.before;
    const int64_t begin = min(a.out, shift < 0 ? ceil_div(-shift, a.stride) : 0);
    const int64_t end = a.in > shift ? min(a.out, ceil_div(a.in - shift, a.stride)) : 0;
    const float* from = row + shift;
    if (a.stride == 2) {
      for (int64_t e = begin; e < end; ++e) to[e] += from[2 * e];
    } else {
      for (int64_t e = begin; e < end; ++e) to[e] += from[e * a.stride];
    }
  }
}

// row[k] += sum of from[e] over the windows e that hold k.
void spread_row(const Axis& a, const float* from, float* row) {
  if (a.kernel == 0) {
    for (int64_t e = 0; e < a.out; ++e)
      for (int64_t k = a.first(e), end = a.last(e); k < end; ++k) row[k] += from[e];
    return;
  }
  for (int64_t t = 0; t < a.kernel; ++t) {
    const int64_t shift = t - a.before;
    const int64_t begin = min(a.out, shift < 0 ? ceil_div(-shift, a.stride) : 0);
    const int64_t end = a.in > shift ? min(a.out, ceil_div(a.in - shift, a.stride)) : 0;
    float* to = row + shift;
    for (int64_t e = begin; e < end; ++e) to[e * a.stride] += from[e];
  }
}

// One window that covers everything: global pooling.
bool is_whole_plane(const Pool& p) {
  for (const Axis& a : p.axis)
    if (a.out != 1 || a.begin(0) > 0 || a.end(0) < a.in) return false;
  return true;
}

// Scales of all windows of a plane; null when memory is exhausted.
const float* window_scales(const Pool& p, const Scale& scale, Scratch* scratch) {
  float* all = scratch->take<float>(p.out_plane());
  if (all == nullptr) return nullptr;
  for_each_window(p, 0, 1, [&](int64_t, int64_t window, int64_t z, int64_t y, int64_t e) {
    all[window] = scale.of(p, z, y, e);
  });
  return all;
}

int32_t run_mean(const myc_call* call, const Pool& p, const Scale& scale) {
  const float* x = in<float>(call);
  float* y = out<float>(call);
  if (p.planes() == 0 || p.out_plane() == 0) return MYC_OK;
  if (is_whole_plane(p)) {
    const float factor = scale.of(p, 0, 0, 0);
    const int64_t n = p.in_plane();
    parallel_rows(call, p.planes(), n * 4, [&](int64_t plane) {
      const float* from = x + plane * n;
      f32v sum[4] = {};
      int64_t i = 0;
      for (; i + 4 * kLanes <= n; i += 4 * kLanes)
        for (int v = 0; v < 4; ++v) sum[v] += load(from + i + v * kLanes);
      for (; i < n; i += kLanes) sum[0] += load_partial(from + i, min<int64_t>(kLanes, n - i));
      y[plane] = horizontal_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) * factor;
    });
    return MYC_OK;
  }
  Scratch scratch(call);
  const float* scales = window_scales(p, scale, &scratch);
  if (!scales) return MYC_E_MEMORY;
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  parallel_for(call, p.planes(), plane_grain(p), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float *from = x + plane * p.in_plane(), *factor = scales;
      float* to = y + plane * p.out_plane();
      for (int64_t z = 0; z < az.out; ++z)
        for (int64_t r = 0; r < ay.out; ++r, to += ae.out, factor += ae.out) {
          for (int64_t e = 0; e < ae.out; ++e) to[e] = 0;
          for (int64_t i = az.first(z), iz = az.last(z); i < iz; ++i)
            for (int64_t j = ay.first(r), jy = ay.last(r); j < jy; ++j)
              sum_row(ae, from + (i * ay.in + j) * ae.in, to);
          for (int64_t e = 0; e < ae.out; ++e) to[e] *= factor[e];
        }
    }
  });
  return MYC_OK;
}

int32_t run_mean_grad(const myc_call* call, const Pool& p, const Scale& scale) {
  const float* dy = in<float>(call);
  float* dx = out<float>(call);
  if (p.planes() == 0 || p.in_plane() == 0) return MYC_OK;
  if (is_whole_plane(p)) {
    const float factor = scale.of(p, 0, 0, 0);
    const int64_t n = p.in_plane();
    parallel_rows(call, p.planes(), n * 4, [&](int64_t plane) {
      const float v = dy[plane] * factor;
      float* to = dx + plane * n;
      for (int64_t i = 0; i < n; ++i) to[i] = v;
    });
    return MYC_OK;
  }
  Scratch scratch(call);
  const float* scales = window_scales(p, scale, &scratch);
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  const int64_t workers = max_workers(call);
  float* rows = scratch.take<float>(workers * round_up(ae.out, 16));
  if (!scales || !rows) return MYC_E_MEMORY;
  parallel_for_worker(call, p.planes(), plane_grain(p), [&](int64_t begin, int64_t end, int32_t worker) {
    float* scaled = rows + worker * round_up(ae.out, 16);
    for (int64_t plane = begin; plane < end; ++plane) {
      const float *from = dy + plane * p.out_plane(), *factor = scales;
      float* to = dx + plane * p.in_plane();
      memset(to, 0, p.in_plane() * sizeof(float));
      for (int64_t z = 0; z < az.out; ++z)
        for (int64_t r = 0; r < ay.out; ++r, from += ae.out, factor += ae.out) {
          for (int64_t e = 0; e < ae.out; ++e) scaled[e] = from[e] * factor[e];
          for (int64_t i = az.first(z), iz = az.last(z); i < iz; ++i)
            for (int64_t j = ay.first(r), jy = ay.last(r); j < jy; ++j)
              spread_row(ae, scaled, to + (i * ay.in + j) * ae.in);
        }
    }
  });
  return MYC_OK;
}

}  // namespace

KERNEL_FN(avg_pool, f32) {
  const auto& a = attrs<myc_avg_pool_attrs>(call);
  const Pool p = regular_pool(input(call), output(call), a.data_format, a.kernel, a.stride, a.pad, nullptr);
  const Scale scale = {a.count_include_pad != 0, a.divisor};
  return p.last ? avg_pool_last(call, p, scale, in<float>(call), out<float>(call)) : run_mean(call, p, scale);
}

KERNEL_FN(avg_pool_grad, f32) {
  const auto& a = attrs<myc_avg_pool_grad_attrs>(call);
  const Pool p = regular_pool(output(call), input(call), a.data_format, a.kernel, a.stride, a.pad, nullptr);
  const Scale scale = {a.count_include_pad != 0, a.divisor};
  return p.last ? avg_pool_last_grad(call, p, scale, in<float>(call), out<float>(call))
                : run_mean_grad(call, p, scale);
}

KERNEL_FN(adaptive_avg_pool, f32) {
  return run_mean(call, adaptive_pool(input(call), output(call)), {false, 0});
}

KERNEL_FN(adaptive_avg_pool_grad, f32) {
  return run_mean_grad(call, adaptive_pool(output(call), input(call)), {false, 0});
}

KERNEL_FN(pool_take, f32_i64) {
  const float* x = in<float>(call, 0);
  const int64_t* index = in<int64_t>(call, 1);
  float* y = out<float>(call);
  const int64_t planes = input(call, 1).shape[0] * input(call, 1).shape[1];
  if (planes == 0) return MYC_OK;
  const int64_t n = input(call, 1).size / planes, size = input(call, 0).size / planes;
  for (int64_t i = 0; i < planes; ++i, x += size, index += n, y += n)
    for (int64_t j = 0; j < n; ++j) {
      if (index[j] < 0 || index[j] >= size)
        return fail(call, "pool_take: index %lld is outside the plane of %lld elements",
                    static_cast<long long>(index[j]), static_cast<long long>(size));
      y[j] = x[index[j]];
    }
  return MYC_OK;
}

KERNEL_FN(pool_scatter, f32_i64) {
  const float* x = in<float>(call, 0);
  const int64_t* index = in<int64_t>(call, 1);
  float* y = out<float>(call);
  const int64_t planes = output(call).shape[0] * output(call).shape[1];
  memset(y, 0, output(call).size * sizeof(float));
  if (planes == 0) return MYC_OK;
  const int64_t n = input(call, 1).size / planes, size = output(call).size / planes;
  for (int64_t i = 0; i < planes; ++i, x += n, index += n, y += size)
    for (int64_t j = 0; j < n; ++j) {
      if (index[j] < 0 || index[j] >= size)
        return fail(call, "pool_scatter: index %lld is outside the plane of %lld elements",
                    static_cast<long long>(index[j]), static_cast<long long>(size));
      y[index[j]] += x[j];
    }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
