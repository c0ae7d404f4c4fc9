// Sizes of a convolution as every algorithm sees them: three spatial dimensions (depth, height, width;
// missing ones have extent 1), channels first.  And the list of algorithms, which conv.cc chooses from.
#ifndef MYCELIA_CONV_SHAPE_H_
#define MYCELIA_CONV_SHAPE_H_

#include "mycelia/kernels.h"

namespace mycelia::MYC_ISA {

struct ConvShape {
  int64_t n, c, o, group;  // images, input channels, output channels (all groups together)
  int64_t in[3], out[3], kernel[3], stride[3], dilation[3],
      pad[3];  // pad: at the begin; `out` implies the end

  int64_t group_c() const { return c / group; }
  int64_t group_o() const { return o / group; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
};

// General: implicit im2col into packed panels and matrix tiles.  conv_gemm.cc
int32_t conv_gemm(const myc_call* call, const ConvShape& s, const float* x, const float* w, const float* bias,
                  float* y);
int32_t conv_gemm_input_grad(const myc_call* call, const ConvShape& s, const float* dy, const float* w,
                             float* dx);
// General: tiles over kernel elements x output channels, summed over positions.  conv_weight.cc
int32_t conv_tiles_weight_grad(const myc_call* call, const ConvShape& s, const float* x, const float* dy,
                               float* dw);

// Few channels to few: vectors are neighbouring positions.  conv_few.cc
bool conv_few_fits(const ConvShape& s);
int32_t conv_few(const myc_call* call, const ConvShape& s, const float* x, const float* w, const float* bias,
                 float* y);

// Few channels, many images: lanes of a vector are images.  conv_lanes.cc
bool conv_lanes_fits(const ConvShape& s);
int32_t conv_lanes(const myc_call* call, const ConvShape& s, const float* x, const float* w,
                   const float* bias, float* y);
int32_t conv_lanes_input_grad(const myc_call* call, const ConvShape& s, const float* dy, const float* w,
                              float* dx);

// Few channels a group (depthwise): planes, row by row.  conv_planes.cc
bool conv_planes_fits(const ConvShape& s);
int32_t conv_planes(const myc_call* call, const ConvShape& s, const float* x, const float* w,
                    const float* bias, float* y);
int32_t conv_planes_input_grad(const myc_call* call, const ConvShape& s, const float* dy, const float* w,
                               float* dx);
int32_t conv_planes_weight_grad(const myc_call* call, const ConvShape& s, const float* x, const float* dy,
                                float* dw);

// Which of the three tensors of a convolution is computed from the other two.
enum class ConvResult { forward, input_grad, weight_grad };

// Floats between images, channels and places side by side.
struct ConvLayout {
  int64_t image, channel, place;
};

// Behind an algorithm that multiplies zeros around an image: results that are NaN are computed again from the terms
// that exist.  x and y: layouts of the convolution's own input and output; `to` = sums of a * b, where a is x (dy for
// the input gradient) and b is w (dy for the gradient of w).  conv_border.cc
void conv_restore_border(const myc_call* call, ConvResult kind, const ConvShape& s, const ConvLayout& x,
                         const ConvLayout& y, const float* a, const float* b, const float* bias, float* to);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_SHAPE_H_
