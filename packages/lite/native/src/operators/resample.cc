// Images of other sizes, and regions of images.
#include <algorithm>
#include <cmath>

#include "../own/own.h"
#include "common.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostPixels = int64_t{1} << 24;  // along a side

// Which elements of an axis make each of the result, and by what weights.
struct Taps {
  int64_t each = 1;
  std::vector<int32_t> places;
  std::vector<float> weights;
};

// Where an element of the result lies among the `from` elements of the axis.
float coordinate(int8_t mode, int64_t at, int64_t from, int64_t to) {
  switch (mode) {
    case kCoordinateTransformMode_ALIGN_CORNERS:
      return to > 1 && from > 1 ? static_cast<float>(at) / (static_cast<float>(to - 1) / static_cast<float>(from - 1)) : 0.0f;
    case kCoordinateTransformMode_HALF_PIXEL:
      return std::max((static_cast<float>(at) + 0.5f) / (static_cast<float>(to) / static_cast<float>(from)) - 0.5f, 0.0f);
    default: return static_cast<float>(at) / (static_cast<float>(to) / static_cast<float>(from));
  }
}

int32_t within(float place, int64_t count) { return static_cast<int32_t>(std::clamp(place, 0.0f, static_cast<float>(count - 1))); }

float nearest(int8_t rule, int8_t mode, float at) {
  switch (rule) {
    case kNearestMode_ROUND_HALF_DOWN: return std::ceil(at - 0.5f);
    case kNearestMode_ROUND_HALF_UP: return std::floor(at + 0.5f);
    case kNearestMode_FLOOR: return std::floor(at);
    case kNearestMode_CEIL: return std::ceil(at);
    default: return mode == kCoordinateTransformMode_ALIGN_CORNERS ? std::round(at) : std::floor(at);
  }
}

float cubic(float a, float x) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x <= 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

Taps taps_of(int8_t method, int8_t mode, int8_t rule, float coefficient, int64_t from, int64_t to) {
  Taps taps;
  taps.each = method == kResizeMethod_NEAREST ? 1 : method == kResizeMethod_LINEAR ? 2 : 4;
  for (int64_t i = 0; i < to; ++i) {
    const float at = coordinate(mode, i, from, to), below = std::floor(at), rest = at - below;
    if (taps.each == 1) {
      taps.places.push_back(within(nearest(rule, mode, at), from));
      taps.weights.push_back(1);
    } else if (taps.each == 2) {
      for (const int k : {0, 1}) taps.places.push_back(within(below + static_cast<float>(k), from));
      taps.weights.insert(taps.weights.end(), {1 - rest, rest});
    } else {
      for (int k = -1; k <= 2; ++k) {
        taps.places.push_back(within(below + static_cast<float>(k), from));
        taps.weights.push_back(cubic(coefficient, static_cast<float>(k) - rest));
      }
    }
  }
  return taps;
}

int resampled(Planner& p, int x, int axis, const Taps& taps) {
  Type out = p.type(x);
  const int64_t n = static_cast<int64_t>(taps.places.size()) / taps.each;
  out.shape[axis] = n;
  if (taps.each == 1) {
    const int index = p.made_constant({MYC_I32, {n}}, taps.places.data());
    return p.emit("gather", {x, index}, myc_gather_attrs{axis, 0}, out);
  }
  const int places = p.made_constant({MYC_I32, {n, taps.each}}, taps.places.data());
  const int weights = p.made_constant({MYC_F32, {n, taps.each}}, taps.weights.data());
  return p.emit("resample", {x, places, weights}, TakeAttributes{axis}, out);
}

// Sides [height, width] that the second input of Resize names: sizes or scales of two axes or four, or the factor of Caffe.
std::vector<int64_t> sides_of(Planner& p, int given, const Type& image) {
  const Type type = p.type(given);
  const int64_t count = type.rank() == 1 ? type.shape[0] : 0;
  const bool scales = type.dtype == MYC_F32 || type.dtype == MYC_F16;
  if (!p.ok() || (count != 2 && count != 4 && (count != 1 || scales))) {
    p.fail(kOperatorAttribute, "sizes " + text_of(type));
    return {};
  }
  if (scales) {  // sizes are products, rounded
    const int wide = type.dtype == MYC_F32 ? given : p.emit("cast", {given}, myc_cast_attrs{MYC_F32}, Type{MYC_F32, type.shape});
    const float sides[2] = {static_cast<float>(image.shape[1]), static_cast<float>(image.shape[2])};
    const int both = sliced_along(p, wide, 0, count == 4 ? 1 : 0, 2), old = p.made_constant({MYC_F32, {2}}, sides);
    const Type two{MYC_F32, {2}};
    const int half = p.emit("add", {p.emit("mul", {both, old}, two), p.scalar(MYC_F32, 0.5)}, two);
    const int rounded = p.emit("cast", {p.emit("floor", {half}, two)}, myc_cast_attrs{MYC_I64}, Type{MYC_I64, {2}});
    return p.integers(rounded, "the sizes");
  }
  const std::vector<int64_t> sizes = p.integers(given, "the sizes");
  if (!p.ok()) return {};
  if (count == 4) return {sizes[1], sizes[2]};
  if (count == 2) return sizes;
  if (sizes[0] < 1 || sizes[0] > kMostPixels) p.fail(kOperatorAttribute, "a factor of " + std::to_string(sizes[0]));
  if (!p.ok()) return {};
  return {image.shape[1] + (image.shape[1] - 1) * (sizes[0] - 1), image.shape[2] + (image.shape[2] - 1) * (sizes[0] - 1)};
}

}  // namespace

OPERATOR(Resize) {
  const Table& a = p.node().attributes;
  const int x = p.input(0), given = p.optional_input(1);
  const Type image = p.type(x);
  const int8_t method = a.get<int8_t>(kResize_method), mode = a.get<int8_t>(kResize_coordinate_transform_mode);
  const int8_t rule = a.get<int8_t>(kResize_nearest_mode);
  const float coefficient = a.get<float>(kResize_cubic_coeff);
  if (p.ok() && image.rank() != 4) p.fail(kInferFailed, "images must be [N, H, W, C], but are " + text_of(image));
  if (method < kResizeMethod_LINEAR || method > kResizeMethod_CUBIC) p.fail(kNotSupported, "method " + std::to_string(method) + " is unknown");
  if (mode < 0 || mode > kCoordinateTransformMode_HALF_PIXEL) p.fail(kNotSupported, "coordinate_transform_mode " + std::to_string(mode) + " is unknown");
  if (rule < 0 || rule > kNearestMode_CEIL) p.fail(kNotSupported, "nearest_mode " + std::to_string(rule) + " is unknown");
  if (a.get<uint8_t>(kResize_preserve_aspect_ratio)) p.fail(kNotSupported, "preserve_aspect_ratio");
  if (a.get<int64_t>(kResize_exclude_outside)) p.fail(kNotSupported, "exclude_outside");
  std::vector<int64_t> sides{a.get<int64_t>(kResize_new_height), a.get<int64_t>(kResize_new_width)};
  if (p.ok() && given >= 0) sides = sides_of(p, given, image);
  if (!p.ok()) return;
  for (const int d : {0, 1})
    if (sides[d] < 1 || sides[d] > kMostPixels || image.shape[d + 1] < 1 || image.shape[d + 1] > kMostPixels) {
      p.fail(kOperatorAttribute, text_of(image) + " in a size of " + std::to_string(sides[0]) + " x " + std::to_string(sides[1]));
      return;
    }
  int y = x;
  for (const int axis : {2, 1})
    if (p.ok() && (sides[axis - 1] != image.shape[axis] || method == kResizeMethod_CUBIC))
      y = resampled(p, y, axis, taps_of(method, mode, rule, coefficient, image.shape[axis], sides[axis - 1]));
  p.set_output(0, y);
}

OPERATOR(CropAndResize) {  // x, regions [n, 4] as parts of the sides (top, left, bottom, right), the image of each, [height, width]
  const Table& a = p.node().attributes;
  const int x = p.input(0), boxes = p.input(1), images = p.input(2);
  const Type type = p.type(x), regions = p.type(boxes);
  const std::vector<int64_t> size = p.integers(p.input(3), "the size");
  if (!p.ok()) return;
  const bool fits = type.rank() == 4 && regions.rank() == 2 && regions.shape[1] == 4 && p.type(images).shape == std::vector<int64_t>{regions.shape[0]};
  if (!fits || type.shape[1] < 1 || type.shape[2] < 1) p.fail(kInferFailed, "regions " + text_of(regions) + " of " + text_of(type));
  if (size.size() != 2 || std::min(size[0], size[1]) < 1 || std::max(size[0], size[1]) > kMostPixels) p.fail(kOperatorAttribute, "the size does not fit");
  if (a.get<int8_t>(kCropAndResize_method) != kResizeMethod_LINEAR) p.fail(kNotSupported, "a method other than LINEAR");
  if (!p.ok()) return;
  const CropAttributes attributes{a.get<float>(kCropAndResize_extrapolation_value)};
  p.set_output(0, p.emit("crop_and_resize", {x, boxes, images}, attributes, Type{type.dtype, {regions.shape[0], size[0], size[1], type.shape[3]}}));
}

OPERATOR(ROIPooling) {  // x and regions [n, 5]: the image, top, left, bottom, right
  const Table& a = p.node().attributes;
  const int x = p.input(0), boxes = p.input(1);
  const Type type = p.type(x), regions = p.type(boxes);
  const int64_t high = a.get<int64_t>(kROIPooling_pooled_h), wide = a.get<int64_t>(kROIPooling_pooled_w);
  if (p.ok() && (type.rank() != 4 || regions.rank() != 2 || regions.shape[1] != 5)) p.fail(kInferFailed, "regions " + text_of(regions) + " of " + text_of(type));
  if (std::min(high, wide) < 1 || std::max(high, wide) > kMostPixels) p.fail(kOperatorAttribute, "pooled_h and pooled_w are out of range");
  if (!p.ok()) return;
  const CropAttributes attributes{a.get<float>(kROIPooling_scale)};
  p.set_output(0, p.emit("roi_pool", {x, boxes}, attributes, Type{type.dtype, {regions.shape[0], high, wide, type.shape[3]}}));
}

}  // namespace mycelia::lite
