// What steps of optimizers share: arrays of float32 or 16-bit floats, T where all have one type; the arithmetic is float32.
// A step is one pass over the parameter, its state and the gradient, in place when the host gives the same memory as
// input and output.  Bound by memory: 4 or 2 bytes for each array read and each written, an element.
#ifndef MYCELIA_OPTIM_H_
#define MYCELIA_OPTIM_H_

#include "elementwise/elementwise.h"
#include "reductions/sums.h"

namespace mycelia::MYC_ISA {

// An array of T.
template <class T>
class Array {
 public:
  explicit Array(const myc_tensor& t) : Array(static_cast<T*>(t.data)) {}
  explicit Array(T* data) : data_(data) {}

  MYC_INLINE f32v load(int64_t i, int64_t lanes) const { return load_lanes(data_ + i, lanes); }
  MYC_INLINE void store(int64_t i, f32v x, int64_t lanes) const { store_lanes(data_ + i, x, lanes); }
  void* data() const { return data_; }
  int64_t item_size() const { return sizeof(T); }

 private:
  T* data_;
};

// An array of floats of a type that is known when the kernel runs.
struct Mixed {};
template <>
class Array<Mixed> {
 public:
  explicit Array(const myc_tensor& t) : data_(t.data), dtype_(t.dtype) {}

  MYC_INLINE f32v load(int64_t i, int64_t lanes) const {
    return with_float_type(dtype_, [&](auto type) { return load_lanes(static_cast<decltype(type)*>(data_) + i, lanes); });
  }
  MYC_INLINE void store(int64_t i, f32v x, int64_t lanes) const {
    with_float_type(dtype_, [&](auto type) { store_lanes(static_cast<decltype(type)*>(data_) + i, x, lanes); });
  }
  void* data() const { return data_; }
  int64_t item_size() const { return MYC_ISA::item_size(dtype_); }

 private:
  void* data_;
  int32_t dtype_;
};

template <class T>
Array<T> array_in(const myc_call* call, int i) {
  return Array<T>(input(call, i));
}
template <class T>
Array<T> array_out(const myc_call* call, int i) {
  return Array<T>(output(call, i));
}

// A hyperparameter: a tensor of one element.
inline float number(const myc_call* call, int i) { return array_in<Mixed>(call, i).load(0, 1)[0]; }

// piece(i, lanes) for each vector of [0, n).
template <class Piece>
MYC_INLINE int32_t for_vectors_of(const myc_call* call, int64_t n, int64_t work, const Piece& piece) {
  parallel_for(call, n, grain_of(work), [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) piece(i, int64_t{kLanes});
    if (i < end) piece(i, end - i);
  });
  return MYC_OK;
}

template <class T>
double norm_of(const Array<T>& x, int64_t n) {
  return ::sqrt(sum_terms(n, [=](int64_t i, int64_t lanes) {
    const f32v v = x.load(i, lanes);
    return v * v;
  }));
}

// Gradient times scale plus the weight decay's share.
struct Decayed {
  f32v scale, decay;
  Decayed(double gradient_scale, double weight_decay)
      : scale(splat(static_cast<float>(gradient_scale))), decay(splat(static_cast<float>(weight_decay))) {}
  MYC_INLINE f32v operator()(f32v g, f32v var) const { return g * scale + decay * var; }
};

// -1, 0 or 1; NaN stays.
MYC_INLINE f32v sign_of(f32v x) { return select((x < 0.0f) | (x > 0.0f), copysign(splat(1.0f), x), x); }

// ---- kernels ----

// What is updated leads the inputs.
template <class Body>
MYC_INLINE int32_t with_array_type(const myc_call* call, int gradient, const Body& body) {
  const int32_t dtype = input(call, gradient).dtype;
  for (int i = 0; i < call->n_out; ++i)
    if (input(call, i).dtype != dtype) return body(Mixed{});
  return with_float_type(dtype, body);
}

// `<op>_step<T>`; `gradient` is the number of that input.
#define STEP(op, gradient)                                                                              \
  KERNEL_FN(op, f32) {                                                                                  \
    return with_array_type(call, gradient, [&](auto type) { return op##_step<decltype(type)>(call); }); \
  }

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_OPTIM_H_
