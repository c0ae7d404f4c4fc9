// Images of other sizes, and regions of images; channels are last.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>

#include "own.h"

namespace mycelia::lite {

// Sums of weighted slices along an axis: places and weights [n, each].
int32_t own_resample_f32(const myc_call* call) {
  const myc_tensor &x = *call->in[0], &y = *call->out[0];
  const int64_t axis = attrs<TakeAttributes>(call).axis, from = x.shape[axis], to = y.shape[axis], each = call->in[1]->shape[1];
  int64_t inner = 1;
  for (int d = static_cast<int>(axis) + 1; d < x.rank; ++d) inner *= x.shape[d];
  const int64_t rows = y.size / (inner ? inner : 1);
  const int32_t* places = in<int32_t>(call, 1);
  const float *weights = in<float>(call, 2), *source = in<float>(call, 0);
  float* result = out<float>(call);
  for_each(call, rows, 1 + 16384 / (inner + 1), [&](int64_t row) {
    const int64_t at = row % to;
    const float* image = source + row / to * from * inner;
    float* sums = result + row * inner;
    for (int64_t k = 0; k < each; ++k) {
      const float weight = weights[at * each + k];
      const float* slice = image + places[at * each + k] * inner;
      for (int64_t i = 0; i < inner; ++i) sums[i] = k ? sums[i] + slice[i] * weight : slice[i] * weight;
    }
  });
  return MYC_OK;
}

namespace {

// The two elements of a side around a place, and the share of the second one.
struct Between {
  int64_t low, high;
  float share;
};

Between between(float at, int64_t n) {
  const int64_t low = std::max<int64_t>(static_cast<int64_t>(std::floor(at)), 0);
  return {low, std::min(low + 1, n - 1), at - static_cast<float>(low)};
}

float place(float begin, float end, int64_t i, int64_t count, int64_t n) {
  const float last = static_cast<float>(n - 1);
  if (count == 1) return 0.5f * (begin + end) * last;
  return begin * last + static_cast<float>(i) * (end - begin) * last / static_cast<float>(count - 1);
}

}  // namespace

int32_t own_crop_and_resize_f32(const myc_call* call) {
  const myc_tensor &x = *call->in[0], &y = *call->out[0];
  const int64_t high = y.shape[1], wide = y.shape[2], channels = y.shape[3], h = x.shape[1], w = x.shape[2];
  const float outside = static_cast<float>(attrs<CropAttributes>(call).number);
  for (int64_t b = 0; b < y.shape[0]; ++b) {
    const int64_t image = in<int32_t>(call, 2)[b];
    if (image < 0 || image >= x.shape[0]) {
      std::snprintf(call->ctx->error, sizeof(call->ctx->error), "region %lld is of image %lld, of %lld", static_cast<long long>(b),
                    static_cast<long long>(image), static_cast<long long>(x.shape[0]));
      return MYC_E_ARGUMENT;
    }
  }
  for_each(call, y.shape[0] * high, 1, [&](int64_t row) {
    const int64_t b = row / high;
    const float *box = in<float>(call, 1) + 4 * b, *image = in<float>(call, 0) + in<int32_t>(call, 2)[b] * h * w * channels;
    float* pixel = out<float>(call) + row * wide * channels;
    const float down = place(box[0], box[2], row % high, high, h);
    for (int64_t j = 0; j < wide; ++j, pixel += channels) {
      const float across = place(box[1], box[3], j, wide, w);
      if (!(down >= 0 && down <= static_cast<float>(h - 1) && across >= 0 && across <= static_cast<float>(w - 1))) {
        std::fill(pixel, pixel + channels, outside);
        continue;
      }
      const Between v = between(down, h), u = between(across, w);
      const float *top = image + v.low * w * channels, *bottom = image + v.high * w * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const auto of = [&](const float* line) { return line[u.low * channels + c] * (1 - u.share) + line[u.high * channels + c] * u.share; };
        pixel[c] = of(top) * (1 - v.share) + of(bottom) * v.share;
      }
    }
  });
  return MYC_OK;
}

// The largest elements of the cells of regions.
int32_t own_roi_pool_f32(const myc_call* call) {
  const myc_tensor &x = *call->in[0], &y = *call->out[0];
  const int64_t sides[2] = {x.shape[1], x.shape[2]}, cells[2] = {y.shape[1], y.shape[2]}, channels = x.shape[3];
  const float scale = static_cast<float>(attrs<CropAttributes>(call).number);
  constexpr float kFarthest = 1 << 24;
  for (int64_t r = 0; r < y.shape[0]; ++r) {
    const float* region = in<float>(call, 1) + 5 * r;
    if (!(region[0] >= 0 && region[0] < static_cast<float>(x.shape[0]))) {
      std::snprintf(call->ctx->error, sizeof(call->ctx->error), "region %lld is of image %g, of %lld", static_cast<long long>(r),
                    static_cast<double>(region[0]), static_cast<long long>(x.shape[0]));
      return MYC_E_ARGUMENT;
    }
    const float* image = in<float>(call, 0) + static_cast<int64_t>(region[0]) * sides[0] * sides[1] * channels;
    int64_t begin[2];
    float cell[2];
    for (const int d : {0, 1}) {
      const float first = std::clamp(std::round(region[1 + d] * scale), -kFarthest, kFarthest);
      const float last = std::clamp(std::round(region[3 + d] * scale), -kFarthest, kFarthest);
      const bool is_place = first == first && last == last;  // a region with NaN is empty
      begin[d] = is_place ? static_cast<int64_t>(first) : 0;
      cell[d] = is_place ? std::max(last - first + 1, 1.0f) / static_cast<float>(cells[d]) : 0;
    }
    float* pixel = out<float>(call) + r * cells[0] * cells[1] * channels;
    for (int64_t i = 0; i < cells[0] * cells[1]; ++i, pixel += channels) {
      const int64_t at[2] = {i / cells[1], i % cells[1]};
      int64_t from[2], to[2];
      for (const int d : {0, 1}) {
        from[d] = std::clamp<int64_t>(static_cast<int64_t>(std::floor(static_cast<float>(at[d]) * cell[d])) + begin[d], 0, sides[d]);
        to[d] = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(static_cast<float>(at[d] + 1) * cell[d])) + begin[d], 0, sides[d]);
      }
      std::fill(pixel, pixel + channels, from[0] < to[0] && from[1] < to[1] ? -FLT_MAX : 0.0f);
      for (int64_t h = from[0]; h < to[0]; ++h)
        for (int64_t w = from[1]; w < to[1]; ++w)
          for (int64_t c = 0; c < channels; ++c) pixel[c] = std::max(pixel[c], image[(h * sides[1] + w) * channels + c]);
    }
  }
  return MYC_OK;
}

}  // namespace mycelia::lite
