// What the runtime's own kernels share.
#ifndef MYCELIA_LITE_OWN_H_
#define MYCELIA_LITE_OWN_H_

#include <cstdint>

#include "mycelia/abi.h"
#include "mycelia/op_attrs.h"

namespace mycelia::lite {

#define LITE_OWN(op, suffix, dtypes) int32_t own_##op##_##suffix(const myc_call* call);
#include "own.def"
#undef LITE_OWN

// Attributes of kernels that have no op in the framework.
struct GridSampleAttributes {
  int64_t mode;  // 0 nearest, 1 linear, 2 cubic
  int64_t padding;  // 0 zeros, 1 border, 2 reflection
  int64_t corners;  // -1 and 1 are the centers of the outermost elements, not their edges
};
struct RoiAlignAttributes {
  int64_t largest;  // the largest of the weighted elements of all samples, not the mean of the samples
  int64_t half_pixel, samples;  // 0 samples: as many as a cell has elements
  double scale;
};
struct DeformConvAttributes {
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  int64_t group, offset_group;
};
struct DetectionAttributes {
  double scale[4];  // of height, width, x, y
  double overlap, score;
  int64_t most, most_of_class, classes_of_box, classes;
  int64_t regular;  // classes one by one, not the best class of a box
};
struct NmsAttributes {
  int64_t center;  // boxes are center and size, not two corners
  int64_t most;  // of a class
  double overlap, score;
  int64_t with_score;
};
struct CropAttributes {
  double number;  // elements outside of the image, or the scale of regions
};
struct ReverseAttributes {
  int64_t along, batch;
};
struct RandomAttributes {
  int64_t seed, seed2;
  double mean, scale;
  int64_t normal;
};
struct LookupAttributes {
  int64_t first;  // the byte of the integer that the first element is for
};
struct RescaleAttributes {
  int64_t multiplier, left, right;  // x * 2^left * multiplier / 2^31 / 2^right
  int64_t up;  // where halves go: up, or away from zero
  int64_t zero, low, high;
};
struct RescaleColumnsAttributes {
  int64_t grows;  // whether a column has a left shift
  int64_t together;  // elements that are rounded at once; those behind the last of them away from zero. 0: each by its column
  int64_t zero, low, high;
};
struct PairAttributes {
  int64_t first;  // as in LookupAttributes
  int64_t how;  // 0 the sum of what the tables have, 1 the difference, 2 the product
  RescaleAttributes scale;
};
struct QuantizeAttributes {  // between numbers and (q - zero) * scale
  double scale;
  int64_t zero, low, high;
};
struct DynamicQuantizeAttributes {
  int64_t together;  // one scale for all rows
};
struct CombineAttributes {
  int64_t how;  // 0 the sum, 1 the difference, 2 the product of (x - x_zero) * x_scale and (y - y_zero) * y_scale
  int64_t x_zero, y_zero;
  double x_scale, y_scale;
  int64_t zero, low, high;
};
struct IntegerPoolAttributes {
  int64_t kernel[2], stride[2], pad[2];  // pad: top, left
  int64_t largest;  // else the mean of what lies in the image
  int64_t x_zero;
  double scale;  // a step of x in steps of y
  int64_t zero, low, high;
};
struct IntegerDepthwiseAttributes {
  myc_ints kernel, stride, pad, dilation;
  int64_t x_zero, zero, low, high;
};
struct TreesAttributes {
  int64_t how;  // 0 sums, 1 means, 2 the least, 3 the largest of all trees
};
struct TakeAttributes {
  int64_t axis;
};
struct UnpackBitsAttributes {
  int64_t bits;
};

template <class T>
const T* in(const myc_call* call, int i) {
  return call->in[i] ? static_cast<const T*>(call->in[i]->data) : nullptr;
}
template <class T>
T* out(const myc_call* call, int i = 0) {
  return static_cast<T*>(call->out[i]->data);
}
template <class A>
const A& attrs(const myc_call* call) {
  return *static_cast<const A*>(call->attrs);
}

// body(i) for i in [0, n), by several threads.
template <class Body>
void for_each(const myc_call* call, int64_t n, int64_t grain, const Body& body) {
  call->ctx->parallel_for(
      call->ctx, n, grain < 1 ? 1 : grain,
      [](void* arg, int64_t begin, int64_t end, int32_t) {
        for (int64_t i = begin; i < end; ++i) (*static_cast<const Body*>(arg))(i);
      },
      const_cast<Body*>(&body));
}

}  // namespace mycelia::lite

#endif
