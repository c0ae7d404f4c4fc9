#include "windows.h"

#include <algorithm>

namespace mycelia::lite {

namespace {
constexpr int64_t kLargest = (int64_t{1} << 31) - 1;  // sums and products of positions stay far from overflow
}

void read_pair(Planner& p, const Span<int64_t>& given, const char* name, int64_t least, int64_t absent, int64_t* out) {
  if (given.size != 0 && given.size != 2) {
    p.fail(kOperatorAttribute, message({name, " has ", given.size, " numbers, expected 2"}));
    return;
  }
  for (uint32_t i = 0; i < 2; ++i) {
    out[i] = given.size ? given[i] : absent;
    if (out[i] < least || out[i] > kLargest) p.fail(kOperatorAttribute, message({name, " has ", out[i], ", out of range"}));
  }
}

void read_pads(Planner& p, const Span<int64_t>& given, int64_t* pad) {
  if (given.size != 0 && given.size != 4) {
    p.fail(kOperatorAttribute, message({"pad_list has ", given.size, " numbers, expected 4"}));
    return;
  }
  const int order[] = {0, 2, 1, 3};
  for (int i = 0; i < 4 && given.size; ++i) {
    pad[i] = given[order[i]];
    if (pad[i] < 0 || pad[i] > kLargest) p.fail(kOperatorAttribute, message({"pad_list has ", pad[i], ", out of range"}));
  }
}

void place_windows(Planner& p, const Type& image, int8_t pad_mode, const Span<int64_t>& pads, Windows* w) {
  if (image.rank() != 4) {
    p.fail(kInferFailed, message({"images must be [N, H, W, C], but are ", text_of(image)}));
    return;
  }
  if (pad_mode == 0) {
    read_pads(p, pads, w->pad);
  } else if (pad_mode < 0 || pad_mode > 2) {
    p.fail(kOperatorAttribute, message({"pad_mode ", pad_mode, " is unknown"}));
  }
  for (int d = 0; d < 2 && p.ok(); ++d) {
    const int64_t n = image.shape[1 + d], span = (w->kernel[d] - 1) * w->dilation[d] + 1;
    if (pad_mode == 1) {
      w->size[d] = (n + w->stride[d] - 1) / w->stride[d];
      const int64_t total = std::max<int64_t>((w->size[d] - 1) * w->stride[d] + span - n, 0);
      w->pad[d] = total / 2;
      w->pad[2 + d] = total - total / 2;
      continue;
    }
    const int64_t free = n + w->pad[d] + w->pad[2 + d] - span;
    if (free < 0) {
      p.fail(kInferFailed, message({"a window of ", span, " does not fit the padded size ", free + span}));
      return;
    }
    w->size[d] = free / w->stride[d] + 1;
    // A last window that is not full counts if it starts inside the image or the padding in front of it.
    if (w->ceil && free % w->stride[d] && w->size[d] * w->stride[d] < n + w->pad[d]) ++w->size[d];
  }
}

Windows convolution_windows(Planner& p, const Type& image, const std::vector<int64_t>& weights) {
  using namespace schema;
  const Table& a = p.node().attributes;
  Windows windows;
  windows.kernel[0] = weights[1], windows.kernel[1] = weights[2];
  read_pair(p, a.span<int64_t>(kConv2DFusion_stride), "stride", 1, 1, windows.stride);
  read_pair(p, a.span<int64_t>(kConv2DFusion_dilation), "dilation", 1, 1, windows.dilation);
  if (p.ok()) place_windows(p, image, a.get<int8_t>(kConv2DFusion_pad_mode), a.span<int64_t>(kConv2DFusion_pad_list), &windows);
  return windows;
}

}  // namespace mycelia::lite
