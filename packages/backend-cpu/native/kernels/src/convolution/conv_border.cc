// Results at borders, computed again where padding spoiled them.
//
// A convolution and its gradients are sums over the terms that exist: pairs of a tap and a position that meet inside of
// the image. Algorithms that copy images into planes with zeros around them multiply these zeros too, which changes
// nothing until the other factor is not finite: then the result is NaN, and its own terms are added here one by one.
// Cost: a look at the smaller of the result and what meets zeros (b below); the definition, without vectors, for results that are NaN.
#include "simd/magnitude.h"
#include "convolution/conv_shape.h"

#include <cmath>

namespace mycelia::MYC_ISA {
namespace {

bool all_finite(const float* x, int64_t n) { return magnitude_of(magnitude(x, n)) < INFINITY; }

// Where the other index `u` of an axis leads result `r`: tap and position for a pixel, and so on.
struct Meeting {
  bool exists, inside;
  int64_t at;  // in the axis that both imply
};

template <ConvResult kind>
Meeting meeting(const ConvShape& s, int d, int64_t r, int64_t u) {
  if constexpr (kind == ConvResult::input_grad) {
    const int64_t at = r + s.pad[d] - u * s.dilation[d];
    return {at % s.stride[d] == 0, at >= 0 && at / s.stride[d] < s.out[d], at / s.stride[d]};
  } else {
    const int64_t position = kind == ConvResult::forward ? r : u, tap = kind == ConvResult::forward ? u : r;
    const int64_t at = position * s.stride[d] - s.pad[d] + tap * s.dilation[d];
    return {true, at >= 0 && at < s.in[d], at};
  }
}

// One direction: the result's rows are planes of `result` places; a term is a[..] * b[..].
template <ConvResult kind>
struct Terms {
  const ConvShape& s;
  const ConvLayout &x, &y;
  const float *a, *b, *bias;
  float* to;

  const int64_t* result() const {
    return kind == ConvResult::forward ? s.out : kind == ConvResult::input_grad ? s.in : s.kernel;
  }
  const int64_t* other() const { return kind == ConvResult::weight_grad ? s.out : s.kernel; }

  // Whether result `r` of the axis would read padding.
  bool cut(int d, int64_t r) const {
    for (int64_t u = 0; u < other()[d]; ++u) {
      const Meeting m = meeting<kind>(s, d, r, u);
      if (m.exists && !m.inside) return true;
    }
    return false;
  }

  // The sum over one dimension of channels or images: from a + i * a_step and b + i * b_step.
  struct Row {
    const float *a, *b;
    int64_t count, a_step, a_place, b_step, b_place;  // place: floats between places of a plane
  };

  float sum(const Row& row, const int64_t (&r)[3], float start) const {
    const int64_t* size = kind == ConvResult::input_grad ? s.out : s.in;
    float total = start;
    for (int64_t u0 = 0; u0 < other()[0]; ++u0) {
      const Meeting m0 = meeting<kind>(s, 0, r[0], u0);
      if (!m0.exists || !m0.inside) continue;
      for (int64_t u1 = 0; u1 < other()[1]; ++u1) {
        const Meeting m1 = meeting<kind>(s, 1, r[1], u1);
        if (!m1.exists || !m1.inside) continue;
        for (int64_t u2 = 0; u2 < other()[2]; ++u2) {
          const Meeting m2 = meeting<kind>(s, 2, r[2], u2);
          if (!m2.exists || !m2.inside) continue;
          const float* from = row.a + ((m0.at * size[1] + m1.at) * size[2] + m2.at) * row.a_place;
          const float* by = row.b + ((u0 * other()[1] + u1) * other()[2] + u2) * row.b_place;
          for (int64_t i = 0; i < row.count; ++i) total += from[i * row.a_step] * by[i * row.b_step];
          if (std::isnan(total)) return total;
        }
      }
    }
    return total;
  }

  // Row `i` of the result: an image's channel, or weights of a pair of channels.
  void run(int64_t i) const {
    const int64_t taps = s.taps(), in = s.group_c(), out = s.group_o();
    Row row;
    float* plane;
    int64_t place;
    float start = 0;
    if constexpr (kind == ConvResult::forward) {
      const int64_t image = i / s.o, o = i % s.o;
      row = {a + image * x.image + o / out * in * x.channel, b + o * in * taps, in, x.channel, x.place, taps, 1};
      plane = to + image * y.image + o * y.channel, place = y.place, start = bias ? bias[o] : 0.0f;
    } else if constexpr (kind == ConvResult::input_grad) {
      const int64_t image = i / s.c, c = i % s.c, g = c / in;
      row = {a + image * y.image + g * out * y.channel, b + (g * out * in + c % in) * taps, out, y.channel, y.place,
             in * taps, 1};
      plane = to + image * x.image + c * x.channel, place = x.place;
    } else {
      const int64_t o = i / in, c = o / out * in + i % in;
      row = {a + c * x.channel, b + o * y.channel, s.n, x.image, x.place, y.image, y.place};
      plane = to + i * taps, place = 1;
    }
    const int64_t* size = result();
    int64_t r[3];
    for (r[0] = 0; r[0] < size[0]; ++r[0])
      for (r[1] = 0; r[1] < size[1]; ++r[1])
        for (r[2] = 0; r[2] < size[2]; ++r[2], plane += place)
          if (std::isnan(*plane) && (cut(0, r[0]) || cut(1, r[1]) || cut(2, r[2]))) *plane = sum(row, r, start);
  }
};

template <ConvResult kind>
void restore(const myc_call* call, const ConvShape& s, const ConvLayout& x, const ConvLayout& y, const float* a,
             const float* b, const float* bias, float* to) {
  const bool forward = kind == ConvResult::forward, weight = kind == ConvResult::weight_grad;
  const int64_t rows = weight ? s.o * s.group_c() : s.n * (forward ? s.o : s.c);
  const int64_t results = rows * (weight ? s.taps() : forward ? s.out_plane() : s.in_plane());
  const int64_t factors = weight ? s.n * s.o * s.out_plane() : s.o * s.group_c() * s.taps();
  if (factors < results ? all_finite(b, factors) : all_finite(to, results)) return;
  const Terms<kind> terms = {s, x, y, a, b, bias, to};
  parallel_rows(call, rows, kMinParallelWork, [&](int64_t i) { terms.run(i); });
}

}  // namespace

void conv_restore_border(const myc_call* call, ConvResult kind, const ConvShape& s, const ConvLayout& x,
                         const ConvLayout& y, const float* a, const float* b, const float* bias, float* to) {
  switch (kind) {
    case ConvResult::forward: return restore<ConvResult::forward>(call, s, x, y, a, b, bias, to);
    case ConvResult::input_grad: return restore<ConvResult::input_grad>(call, s, x, y, a, b, bias, to);
    case ConvResult::weight_grad: return restore<ConvResult::weight_grad>(call, s, x, y, a, b, bias, to);
  }
}

}  // namespace mycelia::MYC_ISA
