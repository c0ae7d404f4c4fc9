// Optimizer steps: one pass over the parameter, its state and the gradient, in place when the host gives the same
// memory as input and output.  Each array has float32 or 16-bit floats, T where all have one type; the arithmetic is
// float32.  Bound by memory: 4 or 2 bytes for each array read and each written, an element.
#include "elementwise/elementwise.h"
#include "reductions/sums.h"
#include "simd/math.h"

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

// ---- gradient descent ----

template <class T>
int32_t apply_gradient_descent_step(const myc_call* call) {
  const Array<T> var = array_in<T>(call, 0), g = array_in<T>(call, 2);
  const Array<T> new_var = array_out<T>(call, 0);
  const f32v rate = splat(number(call, 1));
  return for_vectors_of(call, output(call).size, 12, [=](int64_t i, int64_t lanes) {
    new_var.store(i, var.load(i, lanes) - rate * g.load(i, lanes), lanes);
  });
}

template <class T>
int32_t sgd_step(const myc_call* call) {
  const auto& a = attrs<myc_sgd_attrs>(call);
  const Array<T> var = array_in<T>(call, 0), accum = array_in<T>(call, 1), stat = array_in<T>(call, 2);
  const Array<T> g = array_in<T>(call, 3);
  const Array<T> new_var = array_out<T>(call, 0), new_accum = array_out<T>(call, 1), new_stat = array_out<T>(call, 2);
  const float mu = number(call, 5);
  const int64_t n = output(call).size;
  const f32v rate = splat(number(call, 4)), momentum = splat(mu), kept = splat(static_cast<float>(1 - a.dampening));
  const Decayed decayed(1, a.weight_decay);
  if (!(mu > 0)) {
    if (new_accum.data() != accum.data()) memcpy(new_accum.data(), accum.data(), accum.item_size() * n);
    if (new_stat.data() != stat.data()) memcpy(new_stat.data(), stat.data(), stat.item_size() * n);
    return for_vectors_of(call, n, 12, [=](int64_t i, int64_t lanes) {
      const f32v w = var.load(i, lanes);
      new_var.store(i, w - rate * decayed(g.load(i, lanes), w), lanes);
    });
  }
  const bool nesterov = a.nesterov;
  return for_vectors_of(call, n, 28, [=](int64_t i, int64_t lanes) {
    const f32v w = var.load(i, lanes), d = decayed(g.load(i, lanes), w);
    const f32v moved = accum.load(i, lanes) * momentum + d * kept;
    const f32v next = select(stat.load(i, lanes) > 0.0f, d, moved);  // the first step starts from the gradient
    new_accum.store(i, next, lanes);
    new_stat.store(i, f32v{}, lanes);
    new_var.store(i, w - rate * (nesterov ? d + next * momentum : next), lanes);
  });
}

template <class T>
int32_t apply_momentum_step(const myc_call* call) {
  const auto& a = attrs<myc_apply_momentum_attrs>(call);
  const Array<T> var = array_in<T>(call, 0), accum = array_in<T>(call, 1), g = array_in<T>(call, 3);
  const Array<T> new_var = array_out<T>(call, 0), new_accum = array_out<T>(call, 1);
  const f32v rate = splat(number(call, 2)), momentum = splat(number(call, 4));
  const Decayed decayed(a.gradient_scale, a.weight_decay);
  const bool nesterov = a.use_nesterov;
  return for_vectors_of(call, output(call).size, 20, [=](int64_t i, int64_t lanes) {
    const f32v w = var.load(i, lanes), d = decayed(g.load(i, lanes), w);
    const f32v next = accum.load(i, lanes) * momentum + d;
    new_accum.store(i, next, lanes);
    new_var.store(i, w - rate * (nesterov ? d + next * momentum : next), lanes);
  });
}

// ---- Adam and relatives ----

// The three arrays of a parameter and both their places, and the moments' step.
template <class T>
struct AdamState {
  Array<T> var, m, v;
  Array<T> new_var, new_m, new_v;
  f32v gain1, gain2;  // 1 - beta1, 1 - beta2

  AdamState(const myc_call* call, float beta1, float beta2)
      : var(array_in<T>(call, 0)), m(array_in<T>(call, 1)), v(array_in<T>(call, 2)), new_var(array_out<T>(call, 0)),
        new_m(array_out<T>(call, 1)), new_v(array_out<T>(call, 2)), gain1(splat(1 - beta1)), gain2(splat(1 - beta2)) {}

  struct Moments {
    f32v m, v;
  };
  // m + (g - m)(1 - beta1) and v + (g^2 - v)(1 - beta2), stored and returned.
  MYC_INLINE Moments advance(f32v g, int64_t i, int64_t lanes) const {
    const f32v old_m = m.load(i, lanes), old_v = v.load(i, lanes);
    const Moments next = {old_m + (g - old_m) * gain1, old_v + (g * g - old_v) * gain2};
    new_m.store(i, next.m, lanes);
    new_v.store(i, next.v, lanes);
    return next;
  }
};

template <class T>
int32_t adam_step(const myc_call* call) {
  const auto& a = attrs<myc_adam_attrs>(call);
  const float beta1 = number(call, 6), beta2 = number(call, 7);
  const AdamState<T> s(call, beta1, beta2);
  const Array<T> g = array_in<T>(call, 9);
  const float step = number(call, 5) * sqrtf(1 - number(call, 4)) / (1 - number(call, 3));
  const f32v rate = splat(step), epsilon = splat(number(call, 8)), b1 = splat(beta1);
  const Decayed decayed(a.gradient_scale, a.weight_decay);
  const bool nesterov = a.use_nesterov;
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v w = s.var.load(i, lanes), d = decayed(g.load(i, lanes), w);
    const auto next = s.advance(d, i, lanes);
    const f32v direction = nesterov ? next.m * b1 + s.gain1 * d : next.m;
    s.new_var.store(i, w - rate * direction / (sqrt(next.v) + epsilon), lanes);
  });
}

template <class T>
int32_t adam_amsgrad_step(const myc_call* call) {
  const AdamState<T> s(call, number(call, 7), number(call, 8));
  const Array<T> vhat = array_in<T>(call, 3), g = array_in<T>(call, 10);
  const Array<T> new_vhat = array_out<T>(call, 3);
  const f32v rate = splat(number(call, 6) * sqrtf(1 - number(call, 5)) / (1 - number(call, 4)));
  const f32v epsilon = splat(number(call, 9));
  return for_vectors_of(call, output(call).size, 40, [=](int64_t i, int64_t lanes) {
    const auto next = s.advance(g.load(i, lanes), i, lanes);
    const f32v largest = maximum(vhat.load(i, lanes), next.v);
    new_vhat.store(i, largest, lanes);
    s.new_var.store(i, s.var.load(i, lanes) - rate * next.m / (sqrt(largest) + epsilon), lanes);
  });
}

template <class T>
int32_t adam_weight_decay_step(const myc_call* call) {
  const AdamState<T> s(call, number(call, 4), number(call, 5));
  const Array<T> g = array_in<T>(call, 8);
  const f32v rate = splat(number(call, 3)), epsilon = splat(number(call, 6)), decay = splat(number(call, 7));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v w = s.var.load(i, lanes);
    const auto next = s.advance(g.load(i, lanes), i, lanes);
    s.new_var.store(i, w - rate * (next.m / (sqrt(next.v) + epsilon) + decay * w), lanes);
  });
}

template <class T>
int32_t adamw_step(const myc_call* call) {
  const float step = number(call, 3), lr = number(call, 4), beta1 = number(call, 5), beta2 = number(call, 6);
  const AdamState<T> s(call, beta1, beta2);
  const Array<T> g = array_in<T>(call, 9);
  const f32v rate = splat(lr / (1 - powf(beta1, step))), unbias = splat(1 / sqrtf(1 - powf(beta2, step)));
  const f32v epsilon = splat(number(call, 7)), kept = splat(1 - lr * number(call, 8));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v w = s.var.load(i, lanes);
    const auto next = s.advance(g.load(i, lanes), i, lanes);
    s.new_var.store(i, w * kept - rate * next.m / (sqrt(next.v) * unbias + epsilon), lanes);
  });
}

template <class T>
int32_t apply_ada_max_step(const myc_call* call) {
  const Array<T> var = array_in<T>(call, 0), m = array_in<T>(call, 1), v = array_in<T>(call, 2), g = array_in<T>(call, 8);
  const Array<T> new_var = array_out<T>(call, 0), new_m = array_out<T>(call, 1), new_v = array_out<T>(call, 2);
  const f32v rate = splat(number(call, 4) / (1 - number(call, 3))), gain = splat(1 - number(call, 5));
  const f32v beta2 = splat(number(call, 6)), epsilon = splat(number(call, 7));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes), old = m.load(i, lanes);
    const f32v next_m = old + (d - old) * gain, next_v = maximum(beta2 * v.load(i, lanes), abs(d));
    new_m.store(i, next_m, lanes);
    new_v.store(i, next_v, lanes);
    new_var.store(i, var.load(i, lanes) - rate * next_m / (next_v + epsilon), lanes);
  });
}

// Two passes: moments, direction (kept in scratch memory) and both norms, then the step scaled by their ratio.
template <class T>
int32_t lamb_step(const myc_call* call) {
  const float beta1 = number(call, 4), beta2 = number(call, 5), step = number(call, 8);
  const AdamState<T> s(call, beta1, beta2);
  const Array<T> g = array_in<T>(call, 9);
  const int64_t n = output(call).size;
  Scratch scratch(call);
  float* kept = scratch.take<float>(max(n, int64_t{1}));
  if (!kept) return MYC_E_MEMORY;
  const Array<float> direction(kept);
  const f32v unbias1 = splat(1 / (1 - powf(beta1, step))), unbias2 = splat(1 / (1 - powf(beta2, step)));
  const f32v epsilon = splat(number(call, 6)), decay = splat(number(call, 7));
  for_vectors_of(call, n, 32, [=](int64_t i, int64_t lanes) {
    const auto next = s.advance(g.load(i, lanes), i, lanes);
    const f32v adam = next.m * unbias1 / (sqrt(next.v * unbias2) + epsilon);
    direction.store(i, adam + decay * s.var.load(i, lanes), lanes);
  });
  const double var_norm = norm_of(s.var, n), norm = norm_of(direction, n);
  const double trust = var_norm > 0 && norm > 0 ? var_norm / norm : 1;
  const f32v rate = splat(static_cast<float>(number(call, 3) * trust));
  return for_vectors_of(call, n, 12, [=](int64_t i, int64_t lanes) {
    s.new_var.store(i, s.var.load(i, lanes) - rate * direction.load(i, lanes), lanes);
  });
}

// ---- mean squares ----

template <class T>
int32_t apply_rms_prop_step(const myc_call* call) {
  const Array<T> var = array_in<T>(call, 0), square = array_in<T>(call, 1), moment = array_in<T>(call, 2);
  const Array<T> g = array_in<T>(call, 4);
  const Array<T> new_var = array_out<T>(call, 0), new_square = array_out<T>(call, 1), new_moment = array_out<T>(call, 2);
  const f32v rate = splat(number(call, 3)), gain = splat(1 - number(call, 5)), momentum = splat(number(call, 6));
  const f32v epsilon = splat(number(call, 7));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes), old = square.load(i, lanes);
    const f32v next = old + (d * d - old) * gain;
    const f32v step = moment.load(i, lanes) * momentum + rate * d / sqrt(next + epsilon);
    new_square.store(i, next, lanes);
    new_moment.store(i, step, lanes);
    new_var.store(i, var.load(i, lanes) - step, lanes);
  });
}

template <class T>
int32_t apply_centered_rms_prop_step(const myc_call* call) {
  const Array<T> var = array_in<T>(call, 0), mean = array_in<T>(call, 1), square = array_in<T>(call, 2);
  const Array<T> moment = array_in<T>(call, 3), g = array_in<T>(call, 4);
  const Array<T> new_var = array_out<T>(call, 0), new_mean = array_out<T>(call, 1), new_square = array_out<T>(call, 2);
  const Array<T> new_moment = array_out<T>(call, 3);
  const f32v rate = splat(number(call, 5)), gain = splat(1 - number(call, 6)), momentum = splat(number(call, 7));
  const f32v epsilon = splat(number(call, 8));
  return for_vectors_of(call, output(call).size, 40, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes);
    const f32v old_square = square.load(i, lanes), old_mean = mean.load(i, lanes);
    const f32v next_square = old_square + (d * d - old_square) * gain, next_mean = old_mean + (d - old_mean) * gain;
    const f32v root = sqrt(next_square - next_mean * next_mean + epsilon);
    const f32v step = moment.load(i, lanes) * momentum + rate * d / root;
    new_square.store(i, next_square, lanes);
    new_mean.store(i, next_mean, lanes);
    new_moment.store(i, step, lanes);
    new_var.store(i, var.load(i, lanes) - step, lanes);
  });
}

// var -= lr g / (sqrt(accum) + epsilon)
template <class T>
int32_t adagrad(const myc_call* call, bool update_slots, float epsilon) {
  const Array<T> var = array_in<T>(call, 0), accum = array_in<T>(call, 1), g = array_in<T>(call, 3);
  const Array<T> new_var = array_out<T>(call, 0), new_accum = array_out<T>(call, 1);
  const f32v rate = splat(number(call, 2)), small = splat(epsilon);
  return for_vectors_of(call, output(call).size, 20, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes), old = accum.load(i, lanes);
    const f32v next = update_slots ? old + d * d : old;
    new_accum.store(i, next, lanes);
    new_var.store(i, var.load(i, lanes) - rate * d / (sqrt(next) + small), lanes);
  });
}

template <class T>
int32_t apply_adagrad_step(const myc_call* call) {
  return adagrad<T>(call, attrs<myc_apply_adagrad_attrs>(call).update_slots, 0.0f);
}

template <class T>
int32_t apply_adagrad_v2_step(const myc_call* call) {
  const auto& a = attrs<myc_apply_adagrad_v2_attrs>(call);
  return adagrad<T>(call, a.update_slots, static_cast<float>(a.epsilon));
}

template <class T>
int32_t apply_adadelta_step(const myc_call* call) {
  const Array<T> var = array_in<T>(call, 0), accum = array_in<T>(call, 1), updates = array_in<T>(call, 2);
  const Array<T> g = array_in<T>(call, 6);
  const Array<T> new_var = array_out<T>(call, 0), new_accum = array_out<T>(call, 1), new_updates = array_out<T>(call, 2);
  const f32v rate = splat(number(call, 3)), rho = splat(number(call, 4)), gain = splat(1 - number(call, 4));
  const f32v epsilon = splat(number(call, 5));
  return for_vectors_of(call, output(call).size, 40, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes), old_update = updates.load(i, lanes);
    const f32v next = rho * accum.load(i, lanes) + gain * d * d;
    const f32v step = sqrt((old_update + epsilon) / (next + epsilon)) * d;
    new_accum.store(i, next, lanes);
    new_updates.store(i, rho * old_update + gain * step * step, lanes);
    new_var.store(i, var.load(i, lanes) - rate * step, lanes);
  });
}

// ---- signs ----

// -1, 0 or 1; NaN stays.
MYC_INLINE f32v sign_of(f32v x) { return select((x < 0.0f) | (x > 0.0f), copysign(splat(1.0f), x), x); }

// var -= lr factor(sign(g) sign(m)) g, m = beta m + (1 - beta) g
template <class T, class Factor>
MYC_INLINE int32_t step_by_signs(const myc_call* call, const Factor& factor) {
  const Array<T> var = array_in<T>(call, 0), m = array_in<T>(call, 1), g = array_in<T>(call, 6);
  const Array<T> new_var = array_out<T>(call, 0), new_m = array_out<T>(call, 1);
  const f32v rate = splat(number(call, 2)), beta = splat(number(call, 5)), gain = splat(1 - number(call, 5));
  return for_vectors_of(call, output(call).size, 20, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes), next = beta * m.load(i, lanes) + gain * d;
    new_m.store(i, next, lanes);
    new_var.store(i, var.load(i, lanes) - rate * factor(sign_of(d) * sign_of(next)) * d, lanes);
  });
}

template <class T>
int32_t apply_add_sign_step(const myc_call* call) {
  const f32v alpha = splat(number(call, 3)), decay = splat(number(call, 4));
  return step_by_signs<T>(call, [=](f32v agreement) { return alpha + decay * agreement; });
}

template <class T>
int32_t apply_power_sign_step(const myc_call* call) {
  const f32v power = splat(number(call, 3) * number(call, 4));
  return step_by_signs<T>(call, [=](f32v agreement) { return exp(power * agreement); });
}

template <class T>
int32_t rprop_step(const myc_call* call) {
  const auto& a = attrs<myc_rprop_attrs>(call);
  const Array<T> var = array_in<T>(call, 0), prev = array_in<T>(call, 1), size = array_in<T>(call, 2);
  const Array<T> g = array_in<T>(call, 3);
  const Array<T> new_var = array_out<T>(call, 0), new_prev = array_out<T>(call, 1), new_size = array_out<T>(call, 2);
  const f32v shrink = splat(static_cast<float>(a.eta_minus)), grow = splat(static_cast<float>(a.eta_plus));
  const f32v least = splat(static_cast<float>(a.step_min)), most = splat(static_cast<float>(a.step_max));
  return for_vectors_of(call, output(call).size, 28, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes), agreement = d * prev.load(i, lanes);
    const i32v flips = agreement < 0.0f;
    const f32v factor = select(agreement > 0.0f, grow, select(flips, shrink, splat(1.0f)));
    const f32v next = minimum(maximum(size.load(i, lanes) * factor, least), most), used = select(flips, f32v{}, d);
    new_size.store(i, next, lanes);
    new_prev.store(i, used, lanes);
    new_var.store(i, var.load(i, lanes) - sign_of(used) * next, lanes);
  });
}

// ---- penalties of the norms ----

// x shrunk towards 0 by rate l1, over 1 + rate l2.
struct Proximal {
  f32v l1, l2;
  Proximal(float l1, float l2) : l1(splat(l1)), l2(splat(l2)) {}
  MYC_INLINE f32v operator()(f32v x, f32v rate) const {
    return sign_of(x) * maximum(abs(x) - rate * l1, f32v{}) / (1.0f + rate * l2);
  }
};

template <class T>
int32_t apply_proximal_gradient_descent_step(const myc_call* call) {
  const Array<T> var = array_in<T>(call, 0), g = array_in<T>(call, 4);
  const Array<T> new_var = array_out<T>(call, 0);
  const f32v rate = splat(number(call, 1));
  const Proximal shrunk(number(call, 2), number(call, 3));
  return for_vectors_of(call, output(call).size, 16, [=](int64_t i, int64_t lanes) {
    new_var.store(i, shrunk(var.load(i, lanes) - rate * g.load(i, lanes), rate), lanes);
  });
}

template <class T>
int32_t apply_proximal_adagrad_step(const myc_call* call) {
  const Array<T> var = array_in<T>(call, 0), accum = array_in<T>(call, 1), g = array_in<T>(call, 5);
  const Array<T> new_var = array_out<T>(call, 0), new_accum = array_out<T>(call, 1);
  const f32v lr = splat(number(call, 2));
  const Proximal shrunk(number(call, 3), number(call, 4));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes), next = accum.load(i, lanes) + d * d, rate = lr / sqrt(next);
    new_accum.store(i, next, lanes);
    new_var.store(i, shrunk(var.load(i, lanes) - rate * d, rate), lanes);
  });
}

// var = (sign(linear) l1 - linear) / (root(n) / lr + 2 l2) where |linear| > l1, else 0
template <class T, class Root>
MYC_INLINE int32_t follow_the_leader(const myc_call* call, const Root& root) {
  const Array<T> var = array_in<T>(call, 0), accum = array_in<T>(call, 1), linear = array_in<T>(call, 2);
  const Array<T> g = array_in<T>(call, 3);
  const Array<T> new_var = array_out<T>(call, 0), new_accum = array_out<T>(call, 1), new_linear = array_out<T>(call, 2);
  const f32v lr = splat(number(call, 4)), l1 = splat(number(call, 5)), twice_l2 = splat(2 * number(call, 6));
  return for_vectors_of(call, output(call).size, 40, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes), old = accum.load(i, lanes), next = old + d * d, next_root = root(next);
    const f32v sum = linear.load(i, lanes) + d - (next_root - root(old)) / lr * var.load(i, lanes);
    const f32v moved = (sign_of(sum) * l1 - sum) / (next_root / lr + twice_l2);
    new_accum.store(i, next, lanes);
    new_linear.store(i, sum, lanes);
    new_var.store(i, select(abs(sum) > l1, moved, f32v{}), lanes);
  });
}

template <class T>
int32_t apply_ftrl_step(const myc_call* call) {
  const float power = -number(call, 7);
  if (power == 0.5f) return follow_the_leader<T>(call, [](f32v x) { return sqrt(x); });
  return follow_the_leader<T>(call, [=](f32v x) { return pow(x, splat(power)); });
}

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

STEP(apply_gradient_descent, 2)
STEP(sgd, 3)
STEP(apply_momentum, 3)
STEP(adam, 9)
STEP(adam_amsgrad, 10)
STEP(adam_weight_decay, 8)
STEP(adamw, 9)
STEP(apply_ada_max, 8)
STEP(lamb, 9)
STEP(apply_rms_prop, 4)
STEP(apply_centered_rms_prop, 4)
STEP(apply_adagrad, 3)
STEP(apply_adagrad_v2, 3)
STEP(apply_adadelta, 6)
STEP(apply_add_sign, 6)
STEP(apply_power_sign, 6)
STEP(apply_proximal_gradient_descent, 4)
STEP(apply_proximal_adagrad, 5)
STEP(apply_ftrl, 3)
STEP(rprop, 3)

}  // namespace mycelia::MYC_ISA
