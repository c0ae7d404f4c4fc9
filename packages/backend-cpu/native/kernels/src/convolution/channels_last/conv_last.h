// Channels-last convolution as its algorithms see it, and the list of them; conv_last_plan.cc unpacks calls and
// chooses. What plans is compiled once, what computes once per instruction set.
#ifndef MYCELIA_CONV_LAST_H_
#define MYCELIA_CONV_LAST_H_

#include "gemm/row_types.h"
#include "part.h"

namespace mycelia {

// Sizes of y [n, out_h, out_w, o] = conv(x [n, in_h, in_w, c], w); index 0 is the height, 1 the width.  For
// an input gradient these are still the sizes of the convolution itself.
struct ConvLast {
  int64_t n, c, o, group;  // channels of all groups together
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2];
  int64_t pad[2];  // at the begin; `out` implies the end
  int64_t y_pixel;  // floats between pixels of y, and of the residual: o, or more where y is a part of wider pixels

  MYC_INLINE int64_t group_c() const { return c / group; }
  MYC_INLINE int64_t group_o() const { return o / group; }
  MYC_INLINE int64_t taps() const { return kernel[0] * kernel[1]; }
};

// A list attribute of one entry holds for both dimensions.
MYC_INLINE int64_t entry(const myc_ints& list, int i) { return list.v[list.n == 1 ? 0 : i]; }

// What follows the sums: activation(sum + bias + residual).  Absent parts are null.
struct ConvEpilogue {
  const float* bias;      // [o]
  const float* residual;  // as y
  Activation activation;
};

// Values of the attribute `algorithm`.
enum class ConvAlgorithm : int64_t { direct, winograd4, winograd6, depthwise, winograd2, planes };

// m of F(m x m, 3 x 3); 0 of what is not Winograd's.
constexpr int winograd_size(ConvAlgorithm a) {
  return a == ConvAlgorithm::winograd2 ? 2 : a == ConvAlgorithm::winograd4 ? 4 : a == ConvAlgorithm::winograd6 ? 6 : 0;
}

// All algorithms add the terms that exist alone: zeros around an image are never multiplied by what is not finite.

// Any geometry: rows of x against packed panels, pixel by pixel in groups that see the same taps.  direct.cc
// Packed weights: [group][panel][tap][c of the group][16].
int32_t conv_last_direct(const myc_call* call, const TileLoops& loops, const ConvLast& s, const float* x, const float* packed,
                         const ConvEpilogue& e, float* y);
// The same for x [n, c, in_h, in_w] of one group, and packed weights [panel][c][tap][16].
int32_t conv_last_planes(const myc_call* call, const TileLoops& loops, const ConvLast& s, const float* x, const float* packed,
                         const ConvEpilogue& e, float* y);
// Of conv_last_direct a rectangle of y.
struct ConvPart {
  int64_t image, begin[2], size[2];
};
int32_t conv_last_direct_part(const myc_call* call, const TileLoops& loops, const ConvLast& s, const ConvPart& part, const float* x,
                              const float* packed, const ConvEpilogue& e, float* y);
// `packed` is the transposed pack.
int32_t conv_last_direct_input_grad(const myc_call* call, const TileLoops& loops, const ConvLast& s, const float* dy,
                                    const float* packed, float* dx);

// One channel in, one out in every group.  depthwise_plan.cc
// Packed weights: [panel][tap][16]; for the gradient the taps are flipped.
struct DepthwiseLoops;
int32_t conv_last_depthwise(const myc_call* call, const DepthwiseLoops& loops, const ConvLast& s, const float* x,
                            const float* packed, const ConvEpilogue& e, float* y);

// The algorithms of an instruction set.
struct ConvLoops {
  const TileLoops* tiles;
  const DepthwiseLoops* depthwise;
  int32_t (*winograd)(const myc_call* call, const ConvLast& s, int size, const float* x, const float* packed,
                      const myc_tensor* direct, const ConvEpilogue& e, float* y);
  int32_t (*stem)(const myc_call* call, const ConvLast& s, const float* x, const float* packed, const ConvEpilogue& e,
                  float* y);
};

// Sizes of a call whose convolution has the input x and the result y, whichever of its tensors a kernel computes.
template <class Attrs>
MYC_INLINE ConvLast conv_last_shape(const myc_tensor& x, const myc_tensor& y, const Attrs& a) {
  const bool first = static_cast<ConvAlgorithm>(a.algorithm) == ConvAlgorithm::planes;  // are x's channels
  ConvLast s = {};
  s.n = x.shape[0], s.c = x.shape[first ? 1 : 3], s.o = s.y_pixel = y.shape[3], s.group = a.group;
  for (int d = 0; d < 2; ++d) {
    s.in[d] = x.shape[first + 1 + d], s.out[d] = y.shape[1 + d], s.kernel[d] = entry(a.kernel, d);
    s.stride[d] = entry(a.stride, d), s.dilation[d] = entry(a.dilation, d), s.pad[d] = entry(a.pad, d);
  }
  return s;
}

// The ops conv_last and conv_last_separable.  conv_last_plan.cc, separable_plan.cc
int32_t conv_last(const myc_call* call, const ConvLoops& loops);
int32_t conv_last_separable(const myc_call* call, const ConvLoops& loops);

}  // namespace mycelia

namespace mycelia::MYC_ISA {

// conv_last_planes where rows of planes are read in place by tiles of pixels; MYC_E_UNSUPPORTED where it has none for the instruction
// set, the geometry or weights that are not finite.  stem.cc, a part
KERNEL_PART(conv_stem)(const myc_call* call, const ConvLast& s, const float* x, const float* packed, const ConvEpilogue& e,
                       float* y);

// conv_last_direct_input_grad where phases of the stride are few columns each.  phases.cc
bool conv_last_phases_fit(const ConvLast& s);
int32_t conv_last_phases_input_grad(const myc_call* call, const ConvLast& s, const float* dy, const float* packed,
                                    float* dx);

// 3x3, stride and dilation 1, one group: F(size x size, 3 x 3) for size 2, 4 or 6.  winograd.cc, a part
// Packed weights: [tap of the transform][panel][c][16], the direct form's pack unless `direct` is given, that pack or the
// weights [o, 9 * c], and 16 times the largest magnitude of a pixel with which no sum overflows; -1 where weights are not
// finite.
KERNEL_PART(conv_winograd)(const myc_call* call, const ConvLast& s, int size, const float* x, const float* packed,
                           const myc_tensor* direct, const ConvEpilogue& e, float* y);
// A panel [9][c][16] of the direct form's pack in each of the planes [c][16] of the transform, `plane` floats apart.
KERNEL_PART(winograd_taps)(int size, const float* direct, int64_t depth, float* to, int64_t plane);

// Gradients of a convolution with one channel in and out in every group; the pack has flipped taps.  depthwise_grad.cc,
// depthwise_weight.cc
int32_t conv_last_depthwise_input_grad(const myc_call* call, const ConvLast& s, const float* dy,
                                       const float* packed, float* dx);
int32_t conv_last_depthwise_weight_grad(const myc_call* call, const ConvLast& s, const float* x,
                                        const float* dy, float* dw);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_LAST_H_
