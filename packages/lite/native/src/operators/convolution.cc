// Conv2DFusion on images [N, H, W, I] with weights [O, kh, kw, I / group], and its transpose, whose weights are
// [I, kh, kw, O / group].
#include <algorithm>
#include <string_view>

#include "kernels.h"
#include "mycelia/cpu.h"
#include "windows.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostPositions = int64_t{1} << 40;

// Elements of Winograd's pack for a pair of channels, and a word about them.
constexpr int64_t kPlanes2 = 16, kPlanes4 = 36, kPlanes6 = 64, kPackEnd = 16;
int64_t planes_of(int64_t algorithm) { return algorithm == MYC_CONV_WINOGRAD2 ? kPlanes2 : algorithm == MYC_CONV_WINOGRAD4 ? kPlanes4 : kPlanes6; }

// Fails unless the weights are a constant [rows, kh, kw, columns] with elements, rows of equal groups, and images have rank 4.
// Then `group` is small enough to count with.
bool check_weights(Planner& p, const Type& image, const Weights& weights, int64_t group) {
  const Type& w = weights.type();
  if (!weights.is_constant()) {
    p.fail(kNotSupported, "the weights must be a constant");
  } else if (w.rank() == 4 && element_count(w.shape) == 0) {
    p.fail(kNotSupported, message({"weights ", text_of(w), " without elements"}));
  } else if (w.rank() != 4 || image.rank() != 4 || group < 1 || w.shape[0] % group) {
    p.fail(kInferFailed, message({"weights ", text_of(w), " do not fit images ", text_of(image), " in ", group, " groups"}));
  }
  return p.ok();
}

// Fails unless images have the `channels` that the weights are for.
bool check_channels(Planner& p, const Type& image, const Type& w, int64_t channels) {
  if (image.shape[3] != channels)
    p.fail(kInferFailed, message({"weights ", text_of(w), " for ", channels, " channels do not fit images ", text_of(image)}));
  return p.ok();
}

int64_t algorithm_of(const Planner& p, const Type& image, int64_t outputs, int64_t group, const Windows& w) {
  const auto all = [](const int64_t (&pair)[2], int64_t n) { return pair[0] == n && pair[1] == n; };
  if (p.is_portable() || !all(w.kernel, 3) || !all(w.stride, 1) || !all(w.dilation, 1) || group != 1 || element_count(image.shape) == 0) return MYC_CONV_DIRECT;
  return myc_cpu_conv_algorithm(image.shape.data(), outputs, w.pad, /*packs=*/0);
}

// Winograd's pack beside the direct form's panels, or the matrix [outputs, 9 * depth], one of which conv_last reads where
// pixels must not be mixed.
int transformed(Planner& p, int direct, int64_t algorithm, int64_t depth, int64_t outputs) {
  return p.once(message({"winograd ", algorithm}), direct, [&] {
    const Type& from = p.type(direct);
    const Type out{from.dtype, {planes_of(algorithm) * depth * padded(outputs) + kPackEnd}};
    const int weights = from.rank() == 2 ? direct : p.view(direct, {padded(outputs) / kPanel, 9 * depth, kPanel});
    return p.emit_pack("conv_pack", weights, myc_conv_pack_attrs{algorithm, 1, 0}, out);
  });
}

// The form for images with the channels first that were turned for this convolution alone, or for others like it: then
// nobody reads the turned ones. Runs along k are a kernel's row, and many short ones cost more than turning the image: 224 x 224
// pixels of 3 channels are turned in 63 us, 3x3 windows by steps of 2 take 120 us longer in runs of 3, 7x7 ones 5 us.
// With AVX-512 rows of planes are read without runs, while k is short (stem.cc of the kernels).
constexpr int64_t kMostFirst = 4, kLeastRun = 5, kMostRead = 256;
bool reads_planes(Planner& p, int x, const Type& image, int64_t group, const Windows& w, int64_t algorithm) {
  const bool fits = !p.is_portable() && algorithm == MYC_CONV_DIRECT && group == 1 && image.shape[3] > 1 && image.shape[3] <= kMostFirst;
  if (!fits || p.first_of(x) < 0) return false;
  const bool steps = w.stride[1] <= 2 && w.dilation[0] == 1 && w.dilation[1] == 1;
  if (kernels().isa() != std::string_view("avx512") || !steps || w.kernel[0] * w.kernel[1] > kMostRead / kMostFirst) return w.kernel[1] >= kLeastRun;
  ask_for_part("stem");
  kernels().entry("linear_pack", {MYC_F32});  // a cropped program takes it with other instruction sets
  return true;
}

// The pack of [O, kh, kw, I / group] for a form that has no panels of all outputs.
int grouped_pack(Planner& p, int weight, int64_t algorithm, int64_t group) {
  if (p.is_portable()) return weight;
  const Type w = p.type(weight);
  const int64_t outputs = w.shape[0], per_group = w.shape[3], taps = w.shape[1] * w.shape[2];
  return p.once(message({"conv ", group, " ", algorithm}), weight, [&] {
    const Type first{w.dtype, {outputs, per_group, w.shape[1], w.shape[2]}};
    const int turned = p.emit("transpose", {weight}, myc_transpose_attrs{ints({0, 3, 1, 2})}, first);
    const int64_t size = algorithm == MYC_CONV_DEPTHWISE ? taps * padded(outputs) : group * taps * per_group * padded(outputs / group);
    return p.emit_pack("conv_pack", turned, myc_conv_pack_attrs{algorithm, group, 0}, Type{w.dtype, {size}});
  });
}

// Whether a convolution takes less time with the channels first, by operations a nanosecond as measured: the panels of the
// other form are filled badly by few outputs, and its inner products are short with few inputs.
bool prefers_first(Planner& p, int x, const Type& image, const Type& out, const Windows& w, int64_t group) {
  if (p.is_portable()) return false;
  const int64_t inputs = image.shape[3] / group, outputs = out.shape[3] / group, terms = inputs * w.kernel[0] * w.kernel[1];
  const double size = static_cast<double>(element_count(out.shape)), work = 2 * size * terms;
  double first = group == 1 ? 62 : 40, last = 72;
  if (inputs < 8) {
    if (outputs <= 16 && group == 1) first = 45;
    last = terms >= 100 ? 72 : terms >= 27 ? 52 : 20;
  }
  const auto turns = [](const Type& t) { return t.shape[3] != 1 && t.shape[1] * t.shape[2] != 1; };
  double moved = turns(out) ? 0.5 * size : 0;  // a pool may make it smaller before
  if (turns(image) && p.first_of(x) < 0) moved += static_cast<double>(element_count(image.shape));
  return work * (static_cast<double>(padded(outputs)) / (outputs * last) - 1 / first) > moved + 0.5 * size;
}

// The parts of depthwise convolutions that `windows` over an image need.
void ask_for_depthwise(const Type& image, const Windows& windows) {
  constexpr int64_t kMostLanes = 16;
  if (image.shape[3] % kMostLanes != 0) ask_for_part("depthwise_rest");
  if (windows.kernel[0] == 5) ask_for_part("depthwise5");
  if (windows.kernel[0] != 3 || windows.stride[1] != 2) return;
  const int64_t behind = (windows.size[1] - 1) * windows.stride[1] - windows.pad[1] + windows.kernel[1] - image.shape[2];
  if (myc_cpu_depthwise_is_narrow(windows.size[1])) {
    ask_for_part("depthwise_narrow");
  } else if (behind > 0) {
    ask_for_part("depthwise_right");
  }
}

}  // namespace

OPERATOR(Conv2DFusion) {
  const Table& a = p.node().attributes;
  const int x = p.input(0), bias = p.optional_input(2);
  Weights weight(p, 1);
  const Type image = p.type(x), w = weight.type();
  const int64_t group = a.get<int64_t>(kConv2DFusion_group, 1);
  if (!check_weights(p, image, weight, group) || !check_channels(p, image, w, w.shape[3] * group)) return;
  check_bias(p, bias, w.shape[0]);
  const Windows windows = convolution_windows(p, image, w.shape);
  if (!p.ok()) return;

  const int64_t outputs = w.shape[0], per_group = w.shape[3];
  const bool depthwise = group > 1 && group == outputs && group == image.shape[3] && per_group == 1;
  const int8_t activation = a.get<int8_t>(kConv2DFusion_activation_type);
  const Type out{image.dtype, {image.shape[0], windows.size[0], windows.size[1], outputs}};
  const int64_t fused = fused_activation(activation);
  if (LowBit low; group == 1 && weight.low_bit(true, &low)) return p.set_output(0, p.low_bit_conv(x, low, bias, windows, activation, out));
  if (!depthwise && prefers_first(p, x, image, out, windows, group)) {
    const int matrix = weight.matrix();
    const int turned = p.once("conv first", matrix, [&] { return p.emit("transpose", {matrix}, myc_transpose_attrs{ints({0, 3, 1, 2})}, Type{w.dtype, {outputs, per_group, w.shape[1], w.shape[2]}}); });
    const myc_conv_attrs attributes{ints({windows.stride[0], windows.stride[1]}), ints({windows.pad[0], windows.pad[1], windows.pad[2], windows.pad[3]}),
                                    ints({windows.dilation[0], windows.dilation[1]}), group};
    const int y = p.emit("conv", {p.channels_first(x), turned, bias}, attributes, Type{out.dtype, {out.shape[0], outputs, out.shape[1], out.shape[2]}});
    p.set_output(0, p.channels_last(activated(p, y, activation)));
    return;
  }
  int64_t algorithm = depthwise ? int64_t{MYC_CONV_DEPTHWISE} : algorithm_of(p, image, outputs, group, windows);
  const bool planes = reads_planes(p, x, image, group, windows, algorithm);
  if (planes) algorithm = MYC_CONV_PLANES;
  const bool grouped = depthwise || group > 1 || planes, winograd = !grouped && algorithm != MYC_CONV_DIRECT;
  if (winograd) ask_for_part("winograd");
  if (depthwise) ask_for_depthwise(image, windows);
  const bool as_rows = winograd && weight.lies_as_rows();
  const int direct = grouped ? -1 : as_rows ? p.view(weight.matrix(), {outputs, 9 * per_group}) : weight.panels(true);
  const int pack = grouped ? grouped_pack(p, weight.matrix(), algorithm, group) : winograd ? transformed(p, direct, algorithm, per_group, outputs) : direct;
  const myc_conv_last_attrs attributes{
      outputs,
      ints({windows.kernel[0], windows.kernel[1]}),
      ints({windows.stride[0], windows.stride[1]}),
      ints({windows.pad[0], windows.pad[1], windows.pad[2], windows.pad[3]}),
      ints({windows.dilation[0], windows.dilation[1]}),
      group,
      algorithm,
      fused < 0 ? 0 : fused};
  const int y = p.emit("conv_last", {planes ? p.first_of(x) : x, pack, bias, -1, winograd ? direct : -1}, attributes, out);
  p.set_output(0, fused < 0 ? activated(p, y, activation) : y);
}

OPERATOR(Conv2dTransposeFusion) {
  const Table& a = p.node().attributes;
  const int x = p.input(0), bias = p.optional_input(2);
  Weights weights(p, 1);
  const int weight = weights.matrix();
  const Type image = p.type(x), w = p.type(weight);
  const int64_t group = a.get<int64_t>(kConv2dTransposeFusion_group, 1);
  if (!check_weights(p, image, weights, group) || !check_channels(p, image, w, w.shape[0])) return;
  const int64_t per_group = w.shape[3], taps = w.shape[1] * w.shape[2];
  if (!image.shape[1] || !image.shape[2]) {
    p.fail(kNotSupported, message({"images ", text_of(image), " without elements"}));
    return;
  }
  const int64_t outputs = per_group * group;
  check_bias(p, bias, outputs);
  int64_t stride[2], dilation[2], more[2], pad[4] = {0, 0, 0, 0}, size[2];  // pad: top, left, bottom, right
  read_pair(p, a.span<int64_t>(kConv2dTransposeFusion_stride), "stride", 1, 1, stride);
  read_pair(p, a.span<int64_t>(kConv2dTransposeFusion_dilation), "dilation", 1, 1, dilation);
  read_pair(p, a.span<int64_t>(kConv2dTransposeFusion_output_paddings), "output_paddings", 0, 0, more);
  const int8_t mode = a.get<int8_t>(kConv2dTransposeFusion_pad_mode);
  if (mode < 0 || mode > 2) p.fail(kOperatorAttribute, message({"pad_mode ", mode, " is unknown"}));
  if (mode == 0) read_pads(p, a.span<int64_t>(kConv2dTransposeFusion_pad_list), pad);
  for (int d = 0; d < 2 && p.ok(); ++d) {
    const int64_t n = image.shape[1 + d], span = (w.shape[1 + d] - 1) * dilation[d] + 1;
    if (n > kMostPositions / stride[d]) {
      p.fail(kInferFailed, message({"the result of ", text_of(image), " is too large"}));
      return;
    }
    const int64_t whole = (n - 1) * stride[d] + span;  // what all windows cover
    if (mode == 1) {
      const int64_t total = std::max<int64_t>(whole - n * stride[d], 0);
      pad[d] = total / 2, pad[2 + d] = total - total / 2;
      size[d] = whole - total + std::max<int64_t>(n * stride[d] - whole, 0);
    } else {
      size[d] = whole - pad[d] - pad[2 + d] + more[d];
    }
    if (size[d] < 1 || (size[d] + pad[d] + pad[2 + d] - span) / stride[d] + 1 != n)
      p.fail(kInferFailed, message({"a result of ", size[d], " positions is not what ", n, " windows cover"}));
  }
  if (!p.ok()) return;
  const bool depthwise = group > 1 && group == outputs && per_group == 1 && w.shape[0] == group;
  const int64_t algorithm = depthwise ? MYC_CONV_DEPTHWISE : MYC_CONV_DIRECT;
  const int pack = p.is_portable() ? weight : p.once(message({"transposed conv ", group}), weight, [&] {
    const Type first{w.dtype, {w.shape[0], per_group, w.shape[1], w.shape[2]}};
    const int turned = p.emit("transpose", {weight}, myc_transpose_attrs{ints({0, 3, 1, 2})}, first);
    const int64_t count = depthwise ? taps * padded(outputs) : taps * w.shape[0] * padded(per_group);
    return p.emit_pack("conv_pack", turned, myc_conv_pack_attrs{algorithm, group, 1}, Type{w.dtype, {count}});
  });
  const myc_conv_last_input_grad_attrs attributes{
      outputs,
      ints({size[0], size[1]}),
      ints({w.shape[1], w.shape[2]}),
      ints({stride[0], stride[1]}),
      ints({pad[0], pad[1], pad[2], pad[3]}),
      ints({dilation[0], dilation[1]}),
      group,
      algorithm};
  const Type out{image.dtype, {image.shape[0], size[0], size[1], outputs}};
  int y = p.emit("conv_last_input_grad", {x, pack}, attributes, out);
  if (bias >= 0) y = p.emit("add", {y, bias}, out);
  p.set_output(0, activated(p, y, a.get<int8_t>(kConv2dTransposeFusion_activation_type)));
}

}  // namespace mycelia::lite
