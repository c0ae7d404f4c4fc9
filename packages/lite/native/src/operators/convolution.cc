// Conv2DFusion on images [N, H, W, I] with weights [O, kh, kw, I / group].
#include "windows.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kPanel = 16;  // packs are padded to a multiple of it (ops/lowered/packed.py of core)
constexpr int64_t kDirect = 0, kDepthwise = 3;

int64_t padded(int64_t n) { return (n + kPanel - 1) / kPanel * kPanel; }

}  // namespace

OPERATOR(Conv2DFusion) {
  const Table& a = p.node().attributes;
  const int x = p.input(0), weight = p.input(1), bias = p.optional_input(2);
  if (!p.constant(weight)) {
    p.fail(kNotSupported, "the weights must be a constant");
    return;
  }
  const Type image = p.type(x), w = p.type(weight);
  const int64_t group = a.get<int64_t>(kConv2DFusion_group, 1);
  if (w.rank() != 4 || image.rank() != 4 || group < 1 || w.shape[0] % group || w.shape[3] * group != image.shape[3]) {
    p.fail(kInferFailed, "weights " + text_of(w) + " do not fit images " + text_of(image) + " in " + std::to_string(group) + " groups");
    return;
  }
  if (element_count(w.shape) == 0) {
    p.fail(kNotSupported, "weights " + text_of(w) + " without elements");
    return;
  }
  check_bias(p, bias, w.shape[0]);
  Windows windows;
  windows.kernel[0] = w.shape[1], windows.kernel[1] = w.shape[2];
  read_pair(p, a.span<int64_t>(kConv2DFusion_stride), "stride", 1, 1, windows.stride);
  read_pair(p, a.span<int64_t>(kConv2DFusion_dilation), "dilation", 1, 1, windows.dilation);
  if (p.ok()) place_windows(p, image, a.get<int8_t>(kConv2DFusion_pad_mode), a.span<int64_t>(kConv2DFusion_pad_list), &windows);
  if (!p.ok()) return;

  const int64_t outputs = w.shape[0], per_group = w.shape[3], taps = w.shape[1] * w.shape[2];
  const bool depthwise = group == outputs && group == image.shape[3] && per_group == 1;
  const int64_t algorithm = depthwise ? kDepthwise : kDirect;
  const int pack = p.once("conv " + std::to_string(reinterpret_cast<uintptr_t>(p.constant(weight))), [&] {
    const Type first{w.dtype, {outputs, per_group, w.shape[1], w.shape[2]}};
    const int turned = p.emit("transpose", {weight}, myc_transpose_attrs{ints({0, 3, 1, 2})}, first);
    const int64_t size = depthwise ? taps * padded(outputs) : group * taps * per_group * padded(outputs / group);
    return p.emit("conv_pack", {turned}, myc_conv_pack_attrs{algorithm, group, 0}, Type{w.dtype, {size}});
  });
  const int8_t activation = a.get<int8_t>(kConv2DFusion_activation_type);
  const int64_t fused = fused_activation(activation);
  const myc_conv_last_attrs attributes{
      outputs,
      ints({windows.kernel[0], windows.kernel[1]}),
      ints({windows.stride[0], windows.stride[1]}),
      ints({windows.pad[0], windows.pad[1], windows.pad[2], windows.pad[3]}),
      ints({windows.dilation[0], windows.dilation[1]}),
      group,
      algorithm,
      fused < 0 ? 0 : fused};
  const Type out{image.dtype, {image.shape[0], windows.size[0], windows.size[1], outputs}};
  const int y = p.emit("conv_last", {x, pack, bias, -1}, attributes, out);
  p.set_output(0, fused < 0 ? activated(p, y, activation) : y);
}

}  // namespace mycelia::lite
