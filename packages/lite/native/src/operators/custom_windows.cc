// Custom nodes over windows with the channels first: convolutions of any rank or with weights that are data, pools that
// MindSpore Lite's tables cannot say.
#include <algorithm>

#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostWindow = int64_t{1} << 24;  // of kernels, strides, dilations and padding: sums of products stay far below 2^63

struct AnyWindows {
  std::vector<int64_t> kernel, stride, pad, dilation;
};

// The attributes of windows along `spatial` axes.
AnyWindows windows_of(Planner& p, int spatial, bool with_kernel) {
  AnyWindows w;
  const size_t n = static_cast<size_t>(spatial);
  if (with_kernel) w.kernel = custom_ints(p, "kernel", n, 1, kMostWindow);
  w.stride = custom_ints(p, "stride", n, 1, kMostWindow);
  w.pad = custom_ints(p, "pad", 2 * n, 0, kMostWindow);
  w.dilation = custom_ints(p, "dilation", n, 1, kMostWindow);
  return w;
}

// The number of spatial axes of images with the channels first; 1 after a fault.
int spatial_axes(Planner& p, const Type& type) {
  const int spatial = type.rank() - 2;
  if (spatial >= 1 && spatial <= 3) return spatial;
  p.fail(kNotSupported, "windows over " + text_of(type));
  return 1;
}

// How many windows there are along an axis; with `ceil` also one that is cut off, unless it begins in the padding.
int64_t count_of(Planner& p, const AnyWindows& w, int d, int64_t size, bool ceil) {
  const int64_t n = static_cast<int64_t>(w.stride.size()), span = (w.kernel[d] - 1) * w.dilation[d] + 1;
  const int64_t free = size + w.pad[d] + w.pad[d + n] - span;
  if (free < 0) {
    p.fail(kInferFailed, "a window of " + std::to_string(span) + " is larger than an axis of " + std::to_string(size) + " with its padding");
    return 0;
  }
  int64_t count = free / w.stride[d] + 1;
  if (ceil && free % w.stride[d] && count * w.stride[d] < size + w.pad[d]) ++count;
  return count;
}

}  // namespace

CUSTOM(conv) {
  const int x = p.input(0), weight = p.input(1), bias = p.optional_input(2);
  const Type type = p.type(x), filter = p.type(weight);
  const int spatial = spatial_axes(p, type);
  AnyWindows w = windows_of(p, spatial, false);
  const int64_t group = custom_int(p, "group", 1, kMostWindow);
  if (!p.ok()) return;
  if (filter.rank() != type.rank() || type.shape[1] % group || filter.shape[0] % group || filter.shape[1] != type.shape[1] / group) {
    p.fail(kInferFailed, "weights " + text_of(filter) + " do not fit " + text_of(type));
    return;
  }
  w.kernel.assign(filter.shape.begin() + 2, filter.shape.end());
  for (const int64_t n : w.kernel)
    if (n < 1 || n > kMostWindow) p.fail(kInferFailed, "a kernel " + text_of(filter));
  check_bias(p, bias, filter.shape[0]);
  if (!p.ok()) return;
  Type out{type.dtype, {type.shape[0], filter.shape[0]}};
  for (int d = 0; d < spatial; ++d) out.shape.push_back(count_of(p, w, d, type.shape[d + 2], false));
  const myc_conv_attrs attributes{ints(p, w.stride), ints(p, w.pad), ints(p, w.dilation), group};
  p.set_output(0, p.emit("conv", {x, weight, bias}, attributes, out));
}

CUSTOM(conv_input_grad) {  // a transposed convolution: inputs y and weights [channels of y, of the result / group, kernel...]
  const int y = p.input(0), weight = p.input(1);
  const Type type = p.type(y), filter = p.type(weight);
  const int spatial = spatial_axes(p, type);
  const AnyWindows given = windows_of(p, spatial, false);
  const int64_t group = custom_int(p, "group", 1, kMostWindow);
  const std::vector<int64_t> more = custom_ints(p, "more", static_cast<size_t>(spatial), 0, kMostWindow);
  if (!p.ok()) return;
  if (filter.rank() != type.rank() || filter.shape[0] != type.shape[1] || type.shape[1] % group) {
    p.fail(kInferFailed, "weights " + text_of(filter) + " do not fit " + text_of(type));
    return;
  }
  Type out{type.dtype, {type.shape[0], filter.shape[1] * group}};
  for (int d = 0; d < spatial; ++d) {
    const int64_t span = (filter.shape[d + 2] - 1) * given.dilation[d] + 1;
    const int64_t size = (type.shape[d + 2] - 1) * given.stride[d] + span - given.pad[d] - given.pad[d + spatial] + more[d];
    if (type.shape[d + 2] < 1 || filter.shape[d + 2] < 1 || filter.shape[d + 2] > kMostWindow || size < 1 ||
        (size + given.pad[d] + given.pad[d + spatial] - span) / given.stride[d] + 1 != type.shape[d + 2]) {
      p.fail(kInferFailed, "a transposed convolution of " + text_of(type) + " by " + text_of(filter) + " does not fit its padding");
      return;
    }
    out.shape.push_back(size);
  }
  const std::vector<int64_t> size(out.shape.begin() + 2, out.shape.end());
  const myc_conv_input_grad_attrs attributes{ints(p, size), ints(p, given.stride), ints(p, given.pad), ints(p, given.dilation), group};
  p.set_output(0, p.emit("conv_input_grad", {y, weight}, attributes, out));
}

namespace {

Type pooled(Planner& p, const Type& type, const AnyWindows& w, bool ceil) {
  Type out{type.dtype, {type.shape[0], type.shape[1]}};
  for (size_t d = 0; d < w.kernel.size() && p.ok(); ++d) {
    if (w.pad[d] >= (w.kernel[d] - 1) * w.dilation[d] + 1) p.fail(kOperatorAttribute, "windows that lie in the padding alone");
    out.shape.push_back(count_of(p, w, static_cast<int>(d), type.shape[d + 2], ceil));
  }
  return out;
}

}  // namespace

CUSTOM(avg_pool) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int spatial = spatial_axes(p, type);
  AnyWindows w;
  w.kernel = custom_ints(p, "kernel", static_cast<size_t>(spatial), 1, kMostWindow);
  w.stride = custom_ints(p, "stride", static_cast<size_t>(spatial), 1, kMostWindow);
  w.pad = custom_ints(p, "pad", static_cast<size_t>(2 * spatial), 0, kMostWindow);
  w.dilation.assign(static_cast<size_t>(spatial), 1);
  const int64_t ceil = custom_int(p, "ceil", 0, 1), count = custom_int(p, "count_include_pad", 0, 1);
  const int64_t divisor = custom_int(p, "divisor", 0, kMostSize);
  if (!p.ok()) return;
  const Type out = pooled(p, type, w, ceil);
  const myc_avg_pool_attrs attributes{ints(p, w.kernel), ints(p, w.stride), ints(p, w.pad), ceil, count, divisor, 0};
  p.set_output(0, p.emit("avg_pool", {x}, attributes, out));
}

CUSTOM(max_pool) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const AnyWindows w = windows_of(p, spatial_axes(p, type), true);
  const int64_t ceil = custom_int(p, "ceil", 0, 1);
  if (!p.ok()) return;
  const Type out = pooled(p, type, w, ceil);
  const myc_max_pool_attrs attributes{ints(p, w.kernel), ints(p, w.stride), ints(p, w.pad), ints(p, w.dilation), ceil, 0};
  p.set_output(0, p.emit("max_pool", {x}, attributes, out));
}

CUSTOM(max_pool_index) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const AnyWindows w = windows_of(p, spatial_axes(p, type), true);
  const int64_t ceil = custom_int(p, "ceil", 0, 1);
  if (!p.ok()) return;
  Type out = pooled(p, type, w, ceil);
  out.dtype = MYC_I64;
  const myc_max_pool_index_attrs attributes{ints(p, w.kernel), ints(p, w.stride), ints(p, w.pad), ints(p, w.dilation), ceil};
  p.set_output(0, p.emit("max_pool_index", {x}, attributes, out));
}

}  // namespace mycelia::lite
