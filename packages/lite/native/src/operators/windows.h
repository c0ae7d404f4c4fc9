// Windows of convolutions and pools on images [N, H, W, C].
#ifndef MYCELIA_LITE_OPERATORS_WINDOWS_H_
#define MYCELIA_LITE_OPERATORS_WINDOWS_H_

#include "common.h"

namespace mycelia::lite {

struct Windows {
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  int64_t pad[4] = {0, 0, 0, 0};  // top, left, bottom, right
  bool ceil = false;
  int64_t size[2] = {0, 0};  // of the result
};

// Two numbers of an attribute, `absent` where it is not given; fails for another number of them or one below `least`.
void read_pair(Planner& p, const Span<int64_t>& given, const char* name, int64_t least, int64_t absent, int64_t* out);

// Pads of the file (top, bottom, left, right; none: 0) as top, left, bottom, right.
void read_pads(Planner& p, const Span<int64_t>& given, int64_t* pad);

// Sets pads by the pad mode of the schema (0 explicit, 1 same, 2 valid), and the size of the result.
void place_windows(Planner& p, const Type& image, int8_t pad_mode, const Span<int64_t>& pads, Windows* w);

// Those of the MaxPoolFusion or AvgPoolFusion at work, and its activation.
Windows pool_windows(Planner& p, const Type& image, int8_t* activation);

// Those of the Conv2DFusion at work, with weights [O, kh, kw, I / group].
Windows convolution_windows(Planner& p, const Type& image, const std::vector<int64_t>& weights);

}  // namespace mycelia::lite

#endif
