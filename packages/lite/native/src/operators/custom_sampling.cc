// Custom nodes that read images at places between elements, and what makes or moves such places.
#include <algorithm>

#include "../own/own.h"
#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostWindow = int64_t{1} << 24;

// Sizes from a value that may be data; fails unless there are `count`, none below 0.
std::vector<int64_t> sizes(Planner& p, int value, size_t count, const char* what) {
  std::vector<int64_t> found = p.integers(value, what);
  if (!p.ok()) return {};
  const bool fine = found.size() == count && std::all_of(found.begin(), found.end(), [](int64_t n) { return n >= 0 && n < kMostSize; });
  if (!fine) p.fail(kOperatorAttribute, std::string(what) + " does not fit: expected " + std::to_string(count) + " numbers of 0 or more");
  return found;
}

}  // namespace

CUSTOM(grid_sample) {
  const int x = p.input(0), grid = p.input(1);
  const Type type = p.type(x), at = p.type(grid);
  const GridSampleAttributes attributes{custom_int(p, "mode", 0, 2), custom_int(p, "padding", 0, 2), custom_int(p, "corners", 0, 1)};
  const int rank = type.rank() - 2;
  const bool fits = rank >= 1 && rank <= 3 && at.rank() == type.rank() && at.shape.back() == rank && at.shape[0] == type.shape[0] && at.dtype == type.dtype;
  if (p.ok() && !fits) p.fail(kInferFailed, "a grid " + text_of(at) + " for " + text_of(type));
  if (p.ok() && std::count(type.shape.begin() + 2, type.shape.end(), 0)) p.fail(kInferFailed, "places in images without elements " + text_of(type));
  if (!p.ok()) return;
  Type out{type.dtype, {type.shape[0], type.shape[1]}};
  out.shape.insert(out.shape.end(), at.shape.begin() + 1, at.shape.end() - 1);
  p.set_output(0, p.emit("grid_sample", {x, grid}, attributes, out));
}

CUSTOM(roi_align) {
  const int x = p.input(0), boxes = p.input(1), images = p.input(2);
  const Type type = p.type(x), regions = p.type(boxes);
  const RoiAlignAttributes attributes{custom_int(p, "largest", 0, 1), custom_int(p, "half_pixel", 0, 1), custom_int(p, "samples", 0, 4096),
                                      custom_real(p, "scale")};
  const std::vector<int64_t> pooled = custom_ints(p, "pooled", 2, 1, kMostWindow);
  const bool fits = type.rank() == 4 && regions.rank() == 2 && regions.shape[1] == 4 && p.type(images).shape == std::vector<int64_t>{regions.shape[0]} &&
                    regions.dtype == type.dtype;
  if (p.ok() && (!fits || type.shape[2] < 1 || type.shape[3] < 1)) p.fail(kInferFailed, "regions " + text_of(regions) + " of " + text_of(type));
  if (!p.ok()) return;
  const Type out{type.dtype, {regions.shape[0], type.shape[1], pooled[0], pooled[1]}};
  p.set_output(0, p.emit("roi_align", {x, boxes, images}, attributes, out));
}

CUSTOM(deform_conv) {  // x, weights, offsets, then bias and mask as `with` says
  const int x = p.input(0), weight = p.input(1), offset = p.input(2);
  const std::vector<int64_t> with = custom_ints(p, "with", 2, 0, 1), stride = custom_ints(p, "stride", 2, 1, kMostWindow);
  const std::vector<int64_t> pad = custom_ints(p, "pad", 4, 0, kMostWindow), dilation = custom_ints(p, "dilation", 2, 1, kMostWindow);
  const int64_t group = custom_int(p, "group", 1, kMostWindow), offset_group = custom_int(p, "offset_group", 1, kMostWindow);
  if (!p.ok()) return;
  const int bias = with[0] ? p.input(3) : -1, mask = with[1] ? p.input(3 + with[0]) : -1;
  const Type type = p.type(x), w = p.type(weight), o = p.type(offset);
  bool fits = type.rank() == 4 && w.rank() == 4 && o.rank() == 4;
  fits = fits && type.shape[1] == w.shape[1] * group && w.shape[0] % group == 0 && type.shape[1] % offset_group == 0 && o.shape[0] == type.shape[0];
  Type out{type.dtype, {}};
  if (fits) out.shape = {type.shape[0], w.shape[0]};
  for (int d = 0; d < 2 && fits; ++d) {
    const int64_t free = type.shape[d + 2] + pad[d] + pad[d + 2] - ((w.shape[d + 2] - 1) * dilation[d] + 1);
    fits = free >= 0 && w.shape[d + 2] >= 1 && w.shape[d + 2] <= kMostWindow && o.shape[d + 2] == free / stride[d] + 1;
    if (fits) out.shape.push_back(o.shape[d + 2]);
  }
  fits = fits && o.shape[1] == offset_group * w.shape[2] * w.shape[3] * 2;
  if (fits && mask >= 0) fits = p.type(mask).shape == std::vector<int64_t>{o.shape[0], o.shape[1] / 2, o.shape[2], o.shape[3]};
  if (p.ok() && !fits) p.fail(kInferFailed, "weights " + text_of(w) + " and offsets " + text_of(o) + " for " + text_of(type));
  check_bias(p, bias, fits ? w.shape[0] : 0);
  if (!p.ok()) return;
  const DeformConvAttributes attributes{{w.shape[2], w.shape[3]}, {stride[0], stride[1]}, {pad[0], pad[1]}, {dilation[0], dilation[1]}, group, offset_group};
  p.set_output(0, p.emit("deform_conv", {x, weight, offset, bias, mask}, attributes, out));
}

CUSTOM(affine_grid) {  // places of an image of a size [N, C, sizes...] under a matrix [N, rank, rank + 1]
  const int theta = p.input(0);
  const Type type = p.type(theta);
  const int64_t corners = custom_int(p, "corners", 0, 1);
  const int rank = type.rank() == 3 ? static_cast<int>(std::min<int64_t>(type.shape[1], 4)) : 0;
  if (p.ok() && (rank < 2 || rank > 3 || type.shape[2] != rank + 1 || type.dtype != MYC_F32)) p.fail(kInferFailed, "matrices " + text_of(type));
  if (!p.ok()) return;
  const std::vector<int64_t> size = sizes(p, p.input(1), static_cast<size_t>(rank + 2), "the size");
  if (p.ok() && size[0] != type.shape[0]) p.fail(kInferFailed, "a size of " + std::to_string(size[0]) + " images for " + text_of(type));
  if (!p.ok()) return;
  const int64_t places = element_count({size.begin() + 2, size.end()});
  if (places < 0 || places > kMostSize / 64) p.fail(kNotSupported, "a grid of that size");
  if (!p.ok()) return;
  std::vector<float> grid(static_cast<size_t>(places * (rank + 1)), 1.0f);
  for (int64_t i = 0; i < places; ++i) {
    int64_t rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      const double n = static_cast<double>(size[d + 2]), at = static_cast<double>(rest % size[d + 2]);
      const double place = corners ? (n > 1 ? 2 * at / (n - 1) - 1 : -1) : (2 * at + 1) / n - 1;
      grid[i * (rank + 1) + rank - 1 - d] = static_cast<float>(place);
      rest /= size[d + 2];
    }
  }
  const int base = p.made_constant({MYC_F32, {1, places, rank + 1}}, grid.data());
  const int product = p.emit("batch_matmul", {base, theta}, myc_mat_mul_attrs{0, 1}, Type{MYC_F32, {size[0], places, rank}});
  std::vector<int64_t> shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(rank);
  if (p.ok()) p.set_output(0, p.view(product, shape));
}

CUSTOM(center_crop_pad) {  // x cut off or filled up with zeros at both ends of axes
  const int x = p.input(0);
  const Type type = p.type(x);
  const std::vector<int64_t> axes = custom_ints(p, "axes");
  if (!p.ok()) return;
  const std::vector<int64_t> size = sizes(p, p.input(1), axes.size(), "the shape");
  if (!p.ok()) return;
  Type out = type;
  myc_pad_constant_attrs moved{};
  moved.pads.n = 2 * type.rank();
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = axis_of(p, axes[i], type.rank());
    if (!p.ok()) return;
    const int64_t more = size[i] - type.shape[axis];
    // Of an odd number the one more is at the end, for what is cut off as for what is added.
    const int64_t before = more < 0 ? -(-more / 2) : more / 2;
    moved.pads.v[2 * axis] = before, moved.pads.v[2 * axis + 1] = more - before;
    out.shape[axis] = size[i];
  }
  p.set_output(0, p.emit("pad_constant", {x}, moved, out));
}

CUSTOM(pad_to) {  // x in the first places of a tensor of that shape, which is 0 elsewhere
  const int x = p.input(0);
  const Type type = p.type(x);
  const std::vector<int64_t> size = p.ok() ? sizes(p, p.input(1), type.shape.size(), "the shape") : std::vector<int64_t>();
  if (!p.ok()) return;
  myc_pad_constant_attrs moved{};
  moved.pads.n = 2 * type.rank();
  for (int d = 0; d < type.rank(); ++d) {
    moved.pads.v[2 * d + 1] = size[d] - type.shape[d];
    if (size[d] < type.shape[d]) p.fail(kInferFailed, text_of(type) + " does not fit a smaller shape");
  }
  p.set_output(0, p.emit("pad_constant", {x}, moved, Type{type.dtype, size}));
}

CUSTOM(col2im) {  // windows [N, C * elements, windows] added up in images: a transposed convolution by unit matrices
  const int x = p.input(0);
  const Type type = p.type(x);
  if (p.ok() && type.rank() != 3) p.fail(kInferFailed, "windows " + text_of(type));
  const size_t rank = p.ok() ? custom_ints(p, "stride").size() : 1;
  if (p.ok() && (rank < 1 || rank > 3)) p.fail(kNotSupported, "windows over " + std::to_string(rank) + " axes");
  const std::vector<int64_t> stride = custom_ints(p, "stride", rank, 1, kMostWindow), dilation = custom_ints(p, "dilation", rank, 1, kMostWindow);
  const std::vector<int64_t> pad = custom_ints(p, "pad", 2 * rank, 0, kMostWindow);
  if (!p.ok()) return;
  const std::vector<int64_t> size = sizes(p, p.input(1), rank, "the image's shape");
  if (!p.ok()) return;
  const std::vector<int64_t> kernel = sizes(p, p.input(2), rank, "the window's shape");
  if (!p.ok()) return;
  const int64_t elements = element_count(kernel);
  bool fits = elements >= 1 && elements <= 1 << 16 && type.shape[1] % elements == 0;
  const int64_t channels = fits ? type.shape[1] / elements : 0;
  std::vector<int64_t> blocks{type.shape[0], type.shape[1]}, shape{elements * channels, 1}, result{type.shape[0], channels};
  int64_t windows = 1;
  for (size_t d = 0; d < rank && fits; ++d) {
    const int64_t free = size[d] + pad[d] + pad[d + rank] - ((kernel[d] - 1) * dilation[d] + 1);
    fits = free >= 0;
    blocks.push_back(fits ? free / stride[d] + 1 : 0), shape.push_back(kernel[d]), result.push_back(size[d]);
    windows *= blocks.back();
  }
  fits = fits && windows == type.shape[2] && channels <= kMostWindow / elements / elements;
  if (!fits) {
    p.fail(kInferFailed, "windows " + text_of(type) + " do not fit the image");
    return;
  }
  std::vector<float> unit(static_cast<size_t>(channels * elements * elements));
  for (int64_t i = 0; i < channels * elements; ++i) unit[i * elements + i % elements] = 1;
  const int weight = p.made_constant({MYC_F32, shape}, unit.data());
  const int cast = type.dtype == MYC_F32 ? weight : p.emit("cast", {weight}, myc_cast_attrs{type.dtype}, Type{type.dtype, shape});
  const myc_conv_input_grad_attrs attributes{ints(p, size), ints(p, stride), ints(p, pad), ints(p, dilation), channels};
  p.set_output(0, p.emit("conv_input_grad", {p.view(x, blocks), cast}, attributes, Type{type.dtype, result}));
}

}  // namespace mycelia::lite
