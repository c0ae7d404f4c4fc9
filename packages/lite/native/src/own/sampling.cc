// Elements of images at places between them: grids, regions, deformed windows.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "own.h"

namespace mycelia::lite {

namespace {

// A coordinate beyond [low, high] reflected at the ends, as often as needed.
float reflected(float x, float low, float high) {
  const float range = high - low;
  if (!(range > 0)) return low;
  if (x >= low && x <= high) return x;
  const float beyond = x < low ? low - x : x - high;
  const float turns = std::floor(beyond / range), rest = beyond - turns * range;
  const bool even = std::fmod(turns, 2.0f) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

struct Grid {
  const GridSampleAttributes& a;
  int rank;
  int64_t size[3];

  float low() const { return a.corners ? 0.0f : -0.5f; }
  float high(int d) const { return static_cast<float>(size[d]) - (a.corners ? 1.0f : 0.5f); }

  // The element at integer places; what lies outside is padding.
  float pixel(const float* x, const int64_t* at) const {
    int64_t place = 0;
    for (int d = 0; d < rank; ++d) {
      int64_t i = at[d];
      if (i < 0 || i >= size[d]) {
        if (a.padding == 0) return 0;
        if (a.padding == 1) i = std::clamp<int64_t>(i, 0, size[d] - 1);
        else i = std::clamp<int64_t>(static_cast<int64_t>(reflected(static_cast<float>(i), low(), high(d))), 0, size[d] - 1);
      }
      place = place * size[d] + i;
    }
    return x[place];
  }

  // The number of elements along each axis that count, and their weights for the fraction t.
  int weights(float t, float* w) const {
    if (a.mode == 1) {
      w[0] = 1 - t, w[1] = t;
      return 2;
    }
    constexpr float c = -0.75f;  // Keys' cubic convolution
    w[0] = ((c * (t + 1) - 5 * c) * (t + 1) + 8 * c) * (t + 1) - 4 * c;
    w[1] = ((c + 2) * t - (c + 3)) * t * t + 1;
    w[2] = ((c + 2) * (1 - t) - (c + 3)) * (1 - t) * (1 - t) + 1;
    w[3] = ((c * (2 - t) - 5 * c) * (2 - t) + 8 * c) * (2 - t) - 4 * c;
    return 4;
  }

  float sample(const float* x, const float* place) const {
    int64_t at[3], first[3];
    float w[3][4];
    int taps = 1;
    for (int d = 0; d < rank; ++d) {
      if (a.mode == 0) {
        at[d] = static_cast<int64_t>(place[d]);
        continue;
      }
      const float whole = std::floor(place[d]);
      taps = weights(place[d] - whole, w[d]);
      first[d] = static_cast<int64_t>(whole) - (taps == 4 ? 1 : 0);
    }
    if (a.mode == 0) return pixel(x, at);
    int count = 1;
    for (int d = 0; d < rank; ++d) count *= taps;
    float sum = 0;
    for (int k = 0; k < count; ++k) {
      float weight = 1;
      for (int d = rank - 1, rest = k; d >= 0; --d, rest /= taps) {
        at[d] = first[d] + rest % taps;
        weight *= w[d][rest % taps];
      }
      sum += weight * pixel(x, at);
    }
    return sum;
  }
};

}  // namespace

// x [N, C, sizes...], grid [N, places..., rank]: the last axis counts from the last axis of x on.
int32_t own_grid_sample_f32(const myc_call* call) {
  const myc_tensor &x = *call->in[0], &y = *call->out[0];
  Grid grid{attrs<GridSampleAttributes>(call), x.rank - 2, {1, 1, 1}};
  int64_t plane = 1, places = 1;
  for (int d = 0; d < grid.rank; ++d) grid.size[d] = x.shape[d + 2], plane *= x.shape[d + 2], places *= y.shape[d + 2];
  const int64_t channels = x.shape[1];
  constexpr float kFar = 1e9f;  // beyond it a place is as far outside as can be
  for_each(call, x.shape[0] * places, 64, [&](int64_t i) {
    const int64_t image = i / places, p = i % places;
    float at[3];
    for (int d = 0; d < grid.rank; ++d) {
      const float n = in<float>(call, 1)[i * grid.rank + grid.rank - 1 - d];
      const float size = static_cast<float>(grid.size[d]);
      at[d] = grid.a.corners ? (n + 1) / 2 * (size - 1) : ((n + 1) * size - 1) / 2;
      if (!(std::fabs(at[d]) < kFar)) at[d] = at[d] > 0 ? kFar : -kFar;
      if (grid.a.mode == 0) at[d] = std::nearbyint(at[d]);
      if (at[d] < grid.low() || at[d] > grid.high(d)) {
        if (grid.a.padding == 1 && grid.a.mode != 2) at[d] = std::clamp(at[d], 0.0f, size - 1);  // a cubic goes on over the border
        if (grid.a.padding == 2) at[d] = reflected(at[d], grid.low(), grid.high(d));
      }
    }
    for (int64_t c = 0; c < channels; ++c)
      out<float>(call)[(image * channels + c) * places + p] = grid.sample(in<float>(call, 0) + (image * channels + c) * plane, at);
  });
  return MYC_OK;
}

namespace {

// The four elements around a place of an image and their weights; none counts outside.
struct Corners {
  int64_t at[4];
  float weight[4];
};

Corners corners_of(float y, float x, int64_t height, int64_t width) {
  Corners c{};
  if (!(y >= -1 && y <= static_cast<float>(height) && x >= -1 && x <= static_cast<float>(width))) return c;
  y = std::max(y, 0.0f), x = std::max(x, 0.0f);
  int64_t top = static_cast<int64_t>(y), left = static_cast<int64_t>(x), bottom = top + 1, right = left + 1;
  if (top >= height - 1) bottom = top = height - 1, y = static_cast<float>(top);
  if (left >= width - 1) right = left = width - 1, x = static_cast<float>(left);
  const float v = y - static_cast<float>(top), h = x - static_cast<float>(left);
  c.at[0] = top * width + left, c.at[1] = top * width + right, c.at[2] = bottom * width + left, c.at[3] = bottom * width + right;
  c.weight[0] = (1 - v) * (1 - h), c.weight[1] = (1 - v) * h, c.weight[2] = v * (1 - h), c.weight[3] = v * h;
  return c;
}

}  // namespace

// x [N, C, H, W], regions [R, 4] as corners x y x y, the image of each [R].
int32_t own_roi_align_f32(const myc_call* call) {
  const auto& a = attrs<RoiAlignAttributes>(call);
  const myc_tensor &x = *call->in[0], &y = *call->out[0];
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3], rows = y.shape[2], columns = y.shape[3];
  for (int64_t r = 0; r < y.shape[0]; ++r) {
    const int64_t image = in<int64_t>(call, 2)[r];
    if (image < 0 || image >= x.shape[0]) {
      std::snprintf(call->ctx->error, sizeof(call->ctx->error), "region %lld is of image %lld, but there are %lld", static_cast<long long>(r),
                    static_cast<long long>(image), static_cast<long long>(x.shape[0]));
      return MYC_E_ARGUMENT;
    }
  }
  for_each(call, y.shape[0], 1, [&](int64_t r) {
    const float* box = in<float>(call, 1) + r * 4;
    const float scale = static_cast<float>(a.scale), offset = a.half_pixel ? 0.5f : 0.0f;
    const float left = box[0] * scale - offset, top = box[1] * scale - offset;
    float w = box[2] * scale - offset - left, h = box[3] * scale - offset - top;
    if (!a.half_pixel) w = std::max(w, 1.0f), h = std::max(h, 1.0f);
    const float cell_h = h / static_cast<float>(rows), cell_w = w / static_cast<float>(columns);
    constexpr float kMostSamples = 4096;
    const auto samples = [&](float cell) {
      if (a.samples > 0) return a.samples;
      return cell > 0 ? static_cast<int64_t>(std::min(std::ceil(cell), kMostSamples)) : 0;  // none of NaN
    };
    const int64_t down = samples(cell_h), across = samples(cell_w);
    const float* source = in<float>(call, 0) + in<int64_t>(call, 2)[r] * channels * height * width;
    float* target = out<float>(call) + r * channels * rows * columns;
    for (int64_t i = 0; i < rows * columns; ++i) {
      for (int64_t c = 0; c < channels; ++c) {
        const float* plane = source + c * height * width;
        float sum = 0;
        bool any = false;
        for (int64_t s = 0; s < down * across; ++s) {
          const float v = top + static_cast<float>(i / columns) * cell_h + (static_cast<float>(s / across) + 0.5f) * cell_h / static_cast<float>(down);
          const float u = left + static_cast<float>(i % columns) * cell_w + (static_cast<float>(s % across) + 0.5f) * cell_w / static_cast<float>(across);
          const Corners at = corners_of(v, u, height, width);
          for (int k = 0; k < 4; ++k) {
            const float part = at.weight[k] * plane[at.at[k]];
            if (!a.largest) sum += part;
            else sum = any ? std::max(sum, part) : part, any = true;
          }
        }
        target[c * rows * columns + i] = a.largest ? sum : sum / static_cast<float>(std::max<int64_t>(down * across, 1));
      }
    }
  });
  return MYC_OK;
}

// x [N, C, H, W], weights [O, C / group, kh, kw], offsets [N, groups * kh * kw * 2, oh, ow], bias [O], mask [N, groups * kh * kw, oh, ow].
int32_t own_deform_conv_f32(const myc_call* call) {
  const auto& a = attrs<DeformConvAttributes>(call);
  const myc_tensor &x = *call->in[0], &w = *call->in[1], &y = *call->out[0];
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3], outputs = y.shape[1], rows = y.shape[2], columns = y.shape[3];
  const int64_t taps = a.kernel[0] * a.kernel[1], per_group = w.shape[1], out_per_group = outputs / a.group;
  const float *offsets = in<float>(call, 2), *bias = in<float>(call, 3), *mask = in<float>(call, 4);
  const int64_t places = rows * columns;
  for_each(call, x.shape[0] * places, 16, [&](int64_t i) {
    const int64_t image = i / places, p = i % places;
    for (int64_t o = 0; o < outputs; ++o) {
      float sum = bias ? bias[o] : 0.0f;
      for (int64_t k = 0; k < per_group; ++k) {
        const int64_t c = o / out_per_group * per_group + k, group = c / (channels / a.offset_group);
        const float* plane = in<float>(call, 0) + (image * channels + c) * height * width;
        for (int64_t t = 0; t < taps; ++t) {
          const float* offset = offsets + ((image * a.offset_group + group) * taps + t) * 2 * places + p;
          const float v = static_cast<float>(p / columns * a.stride[0] - a.pad[0] + t / a.kernel[1] * a.dilation[0]) + offset[0];
          const float u = static_cast<float>(p % columns * a.stride[1] - a.pad[1] + t % a.kernel[1] * a.dilation[1]) + offset[places];
          if (!(v > -1 && v < static_cast<float>(height) && u > -1 && u < static_cast<float>(width))) continue;
          const float top = std::floor(v), left = std::floor(u);
          float value = 0;
          for (int corner = 0; corner < 4; ++corner) {  // elements outside are 0
            const int64_t row = static_cast<int64_t>(top) + corner / 2, column = static_cast<int64_t>(left) + corner % 2;
            if (row < 0 || row >= height || column < 0 || column >= width) continue;
            value += (corner / 2 ? v - top : 1 - (v - top)) * (corner % 2 ? u - left : 1 - (u - left)) * plane[row * width + column];
          }
          const float factor = mask ? mask[((image * a.offset_group + group) * taps + t) * places + p] : 1.0f;
          sum += value * factor * in<float>(call, 1)[(o * per_group + k) * taps + t];
        }
      }
      out<float>(call)[(image * outputs + o) * places + p] = sum;
    }
  });
  return MYC_OK;
}

}  // namespace mycelia::lite
