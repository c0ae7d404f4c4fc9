// MaxPoolFusion and AvgPoolFusion on images [N, H, W, C]; means leave the padding out.
#include "windows.h"

namespace mycelia::lite {

using namespace schema;

namespace {

struct Fields {
  uint16_t kernel, strides, pad, pad_mode, round_mode, global, activation;
};

Windows windows_of(Planner& p, const Type& image, const Fields& f) {
  const Table& a = p.node().attributes;
  Windows w;
  if (image.rank() != 4) {
    p.fail(kInferFailed, "images must be [N, H, W, C], but are " + text_of(image));
  } else if (!image.shape[1] || !image.shape[2]) {
    p.fail(kInferFailed, "images without elements: " + text_of(image));
  } else if (a.get<uint8_t>(f.global)) {
    w.kernel[0] = image.shape[1], w.kernel[1] = image.shape[2];
    w.size[0] = w.size[1] = 1;
  } else {
    read_pair(p, a.span<int64_t>(f.kernel), "kernel_size", 1, 1, w.kernel);
    read_pair(p, a.span<int64_t>(f.strides), "strides", 1, 1, w.stride);
    w.ceil = a.get<int8_t>(f.round_mode) == 1;
    if (p.ok()) place_windows(p, image, a.get<int8_t>(f.pad_mode), a.span<int64_t>(f.pad), &w);
  }
  return w;
}

constexpr Fields kLargest{kMaxPoolFusion_kernel_size, kMaxPoolFusion_strides, kMaxPoolFusion_pad, kMaxPoolFusion_pad_mode, kMaxPoolFusion_round_mode,
                          kMaxPoolFusion_global, kMaxPoolFusion_activation_type};
constexpr Fields kMean{kAvgPoolFusion_kernel_size, kAvgPoolFusion_strides, kAvgPoolFusion_pad, kAvgPoolFusion_pad_mode, kAvgPoolFusion_round_mode,
                       kAvgPoolFusion_global, kAvgPoolFusion_activation_type};

template <class Attributes>
void pool(Planner& p, const char* op, Attributes (*attributes)(const Windows&, int64_t last)) {
  const int x = p.input(0);
  const Type image = p.type(x);
  int8_t activation;
  const Windows w = pool_windows(p, image, &activation);
  if (!p.ok()) return;
  if (const int first = p.first_of(x); first >= 0) {
    const Type out{image.dtype, {image.shape[0], image.shape[3], w.size[0], w.size[1]}};
    p.set_output(0, p.channels_last(activated(p, p.emit(op, {first}, attributes(w, 0), out), activation)));
    return;
  }
  const Type out{image.dtype, {image.shape[0], w.size[0], w.size[1], image.shape[3]}};
  p.set_output(0, activated(p, p.emit(op, {x}, attributes(w, 1), out), activation));
}

myc_ints kernel(const Windows& w) { return ints({w.kernel[0], w.kernel[1]}); }
myc_ints stride(const Windows& w) { return ints({w.stride[0], w.stride[1]}); }
myc_ints pads(const Windows& w) { return ints({w.pad[0], w.pad[1], w.pad[2], w.pad[3]}); }

}  // namespace

Windows pool_windows(Planner& p, const Type& image, int8_t* activation) {
  const Fields& f = p.node().kind == kOp_MaxPoolFusion ? kLargest : kMean;
  *activation = p.node().attributes.get<int8_t>(f.activation);
  return windows_of(p, image, f);
}

OPERATOR(MaxPoolFusion) {
  pool<myc_max_pool_attrs>(p, "max_pool", [](const Windows& w, int64_t last) {
    return myc_max_pool_attrs{kernel(w), stride(w), pads(w), ints({1, 1}), w.ceil, last};
  });
}

OPERATOR(AvgPoolFusion) {
  pool<myc_avg_pool_attrs>(p, "avg_pool", [](const Windows& w, int64_t last) {
    return myc_avg_pool_attrs{kernel(w), stride(w), pads(w), w.ceil, /*count_include_pad=*/0, /*divisor=*/0, last};
  });
}

}  // namespace mycelia::lite
