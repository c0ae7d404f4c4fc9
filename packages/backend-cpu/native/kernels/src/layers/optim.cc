// Optimizer steps, float32: one pass over the parameter, its state and the gradient, in place when the host gives the same
// memory as input and output.  Bound by memory: 4 bytes for each array read and each written, an element.
#include "elementwise/elementwise.h"
#include "reductions/sums.h"

namespace mycelia::MYC_ISA {

// A hyperparameter: a tensor of one element.
inline float number(const myc_call* call, int i) { return *in<float>(call, i); }

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

// Gradient times scale plus the weight decay's share.
struct Decayed {
  f32v scale, decay;
  Decayed(double gradient_scale, double weight_decay)
      : scale(splat(static_cast<float>(gradient_scale))), decay(splat(static_cast<float>(weight_decay))) {}
  MYC_INLINE f32v operator()(f32v g, f32v var) const { return g * scale + decay * var; }
};

// ---- gradient descent ----

KERNEL_FN(apply_gradient_descent, f32) {
  const float *var = in<float>(call), *g = in<float>(call, 2);
  float* new_var = out<float>(call);
  const f32v rate = splat(number(call, 1));
  return for_vectors_of(call, output(call).size, 12, [=](int64_t i, int64_t lanes) {
    store_lanes(new_var + i, load_lanes(var + i, lanes) - rate * load_lanes(g + i, lanes), lanes);
  });
}

KERNEL_FN(sgd, f32) {
  const auto& a = attrs<myc_sgd_attrs>(call);
  const float *var = in<float>(call, 0), *accum = in<float>(call, 1), *stat = in<float>(call, 2), *g = in<float>(call, 3);
  float *new_var = out<float>(call, 0), *new_accum = out<float>(call, 1), *new_stat = out<float>(call, 2);
  const float mu = number(call, 5);
  const int64_t n = output(call).size;
  const f32v rate = splat(number(call, 4)), momentum = splat(mu), kept = splat(static_cast<float>(1 - a.dampening));
  const Decayed decayed(1, a.weight_decay);
  if (!(mu > 0)) {
    if (new_accum != accum) memcpy(new_accum, accum, sizeof(float) * n);
    if (new_stat != stat) memcpy(new_stat, stat, sizeof(float) * n);
    return for_vectors_of(call, n, 12, [=](int64_t i, int64_t lanes) {
      const f32v w = load_lanes(var + i, lanes);
      store_lanes(new_var + i, w - rate * decayed(load_lanes(g + i, lanes), w), lanes);
    });
  }
  const bool nesterov = a.nesterov;
  return for_vectors_of(call, n, 28, [=](int64_t i, int64_t lanes) {
    const f32v w = load_lanes(var + i, lanes), d = decayed(load_lanes(g + i, lanes), w);
    const f32v moved = load_lanes(accum + i, lanes) * momentum + d * kept;
    const f32v next = select(load_lanes(stat + i, lanes) > 0.0f, d, moved);  // the first step starts from the gradient
    store_lanes(new_accum + i, next, lanes);
    store_lanes(new_stat + i, f32v{}, lanes);
    store_lanes(new_var + i, w - rate * (nesterov ? d + next * momentum : next), lanes);
  });
}

KERNEL_FN(apply_momentum, f32) {
  const auto& a = attrs<myc_apply_momentum_attrs>(call);
  const float *var = in<float>(call, 0), *accum = in<float>(call, 1), *g = in<float>(call, 3);
  float *new_var = out<float>(call, 0), *new_accum = out<float>(call, 1);
  const f32v rate = splat(number(call, 2)), momentum = splat(number(call, 4));
  const Decayed decayed(a.gradient_scale, a.weight_decay);
  const bool nesterov = a.use_nesterov;
  return for_vectors_of(call, output(call).size, 20, [=](int64_t i, int64_t lanes) {
    const f32v w = load_lanes(var + i, lanes), d = decayed(load_lanes(g + i, lanes), w);
    const f32v next = load_lanes(accum + i, lanes) * momentum + d;
    store_lanes(new_accum + i, next, lanes);
    store_lanes(new_var + i, w - rate * (nesterov ? d + next * momentum : next), lanes);
  });
}

// ---- Adam and relatives ----

// The three arrays of a parameter and both their places, and the moments' step.
struct AdamState {
  const float *var, *m, *v;
  float *new_var, *new_m, *new_v;
  f32v gain1, gain2;  // 1 - beta1, 1 - beta2

  AdamState(const myc_call* call, float beta1, float beta2)
      : var(in<float>(call, 0)), m(in<float>(call, 1)), v(in<float>(call, 2)), new_var(out<float>(call, 0)),
        new_m(out<float>(call, 1)), new_v(out<float>(call, 2)), gain1(splat(1 - beta1)), gain2(splat(1 - beta2)) {}

  struct Moments {
    f32v m, v;
  };
  // m + (g - m)(1 - beta1) and v + (g^2 - v)(1 - beta2), stored and returned.
  MYC_INLINE Moments advance(f32v g, int64_t i, int64_t lanes) const {
    const f32v old_m = load_lanes(m + i, lanes), old_v = load_lanes(v + i, lanes);
    const Moments next = {old_m + (g - old_m) * gain1, old_v + (g * g - old_v) * gain2};
    store_lanes(new_m + i, next.m, lanes);
    store_lanes(new_v + i, next.v, lanes);
    return next;
  }
};

KERNEL_FN(adam, f32) {
  const auto& a = attrs<myc_adam_attrs>(call);
  const float beta1 = number(call, 6), beta2 = number(call, 7);
  const AdamState s(call, beta1, beta2);
  const float* g = in<float>(call, 9);
  const float step = number(call, 5) * sqrtf(1 - number(call, 4)) / (1 - number(call, 3));
  const f32v rate = splat(step), epsilon = splat(number(call, 8)), b1 = splat(beta1);
  const Decayed decayed(a.gradient_scale, a.weight_decay);
  const bool nesterov = a.use_nesterov;
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v w = load_lanes(s.var + i, lanes), d = decayed(load_lanes(g + i, lanes), w);
    const AdamState::Moments next = s.advance(d, i, lanes);
    const f32v direction = nesterov ? next.m * b1 + s.gain1 * d : next.m;
    store_lanes(s.new_var + i, w - rate * direction / (sqrt(next.v) + epsilon), lanes);
  });
}

KERNEL_FN(adam_amsgrad, f32) {
  const AdamState s(call, number(call, 7), number(call, 8));
  const float *vhat = in<float>(call, 3), *g = in<float>(call, 10);
  float* new_vhat = out<float>(call, 3);
  const f32v rate = splat(number(call, 6) * sqrtf(1 - number(call, 5)) / (1 - number(call, 4)));
  const f32v epsilon = splat(number(call, 9));
  return for_vectors_of(call, output(call).size, 40, [=](int64_t i, int64_t lanes) {
    const AdamState::Moments next = s.advance(load_lanes(g + i, lanes), i, lanes);
    const f32v largest = maximum(load_lanes(vhat + i, lanes), next.v);
    store_lanes(new_vhat + i, largest, lanes);
    store_lanes(s.new_var + i, load_lanes(s.var + i, lanes) - rate * next.m / (sqrt(largest) + epsilon), lanes);
  });
}

KERNEL_FN(adam_weight_decay, f32) {
  const AdamState s(call, number(call, 4), number(call, 5));
  const float* g = in<float>(call, 8);
  const f32v rate = splat(number(call, 3)), epsilon = splat(number(call, 6)), decay = splat(number(call, 7));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v w = load_lanes(s.var + i, lanes);
    const AdamState::Moments next = s.advance(load_lanes(g + i, lanes), i, lanes);
    store_lanes(s.new_var + i, w - rate * (next.m / (sqrt(next.v) + epsilon) + decay * w), lanes);
  });
}

KERNEL_FN(adamw, f32) {
  const float step = number(call, 3), lr = number(call, 4), beta1 = number(call, 5), beta2 = number(call, 6);
  const AdamState s(call, beta1, beta2);
  const float* g = in<float>(call, 9);
  const f32v rate = splat(lr / (1 - powf(beta1, step))), unbias = splat(1 / sqrtf(1 - powf(beta2, step)));
  const f32v epsilon = splat(number(call, 7)), kept = splat(1 - lr * number(call, 8));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v w = load_lanes(s.var + i, lanes);
    const AdamState::Moments next = s.advance(load_lanes(g + i, lanes), i, lanes);
    store_lanes(s.new_var + i, w * kept - rate * next.m / (sqrt(next.v) * unbias + epsilon), lanes);
  });
}

KERNEL_FN(apply_ada_max, f32) {
  const float *var = in<float>(call, 0), *m = in<float>(call, 1), *v = in<float>(call, 2), *g = in<float>(call, 8);
  float *new_var = out<float>(call, 0), *new_m = out<float>(call, 1), *new_v = out<float>(call, 2);
  const f32v rate = splat(number(call, 4) / (1 - number(call, 3))), gain = splat(1 - number(call, 5));
  const f32v beta2 = splat(number(call, 6)), epsilon = splat(number(call, 7));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v d = load_lanes(g + i, lanes), old = load_lanes(m + i, lanes);
    const f32v next_m = old + (d - old) * gain, next_v = maximum(beta2 * load_lanes(v + i, lanes), abs(d));
    store_lanes(new_m + i, next_m, lanes);
    store_lanes(new_v + i, next_v, lanes);
    store_lanes(new_var + i, load_lanes(var + i, lanes) - rate * next_m / (next_v + epsilon), lanes);
  });
}

// Two passes: moments, direction (kept in scratch memory) and both norms, then the step scaled by their ratio.
KERNEL_FN(lamb, f32) {
  const float beta1 = number(call, 4), beta2 = number(call, 5), step = number(call, 8);
  const AdamState s(call, beta1, beta2);
  const float* g = in<float>(call, 9);
  const int64_t n = output(call).size;
  Scratch scratch(call);
  float* direction = scratch.take<float>(max(n, int64_t{1}));
  if (!direction) return MYC_E_MEMORY;
  const f32v unbias1 = splat(1 / (1 - powf(beta1, step))), unbias2 = splat(1 / (1 - powf(beta2, step)));
  const f32v epsilon = splat(number(call, 6)), decay = splat(number(call, 7));
  for_vectors_of(call, n, 32, [=](int64_t i, int64_t lanes) {
    const AdamState::Moments next = s.advance(load_lanes(g + i, lanes), i, lanes);
    const f32v adam = next.m * unbias1 / (sqrt(next.v * unbias2) + epsilon);
    store_lanes(direction + i, adam + decay * load_lanes(s.var + i, lanes), lanes);
  });
  const double var_norm = ::sqrt(sum_of_squares(s.var, n)), norm = ::sqrt(sum_of_squares(direction, n));
  const double trust = var_norm > 0 && norm > 0 ? var_norm / norm : 1;
  const f32v rate = splat(static_cast<float>(number(call, 3) * trust));
  return for_vectors_of(call, n, 12, [=](int64_t i, int64_t lanes) {
    store_lanes(s.new_var + i, load_lanes(s.var + i, lanes) - rate * load_lanes(direction + i, lanes), lanes);
  });
}

// ---- mean squares ----

KERNEL_FN(apply_rms_prop, f32) {
  const float *var = in<float>(call, 0), *square = in<float>(call, 1), *moment = in<float>(call, 2), *g = in<float>(call, 4);
  float *new_var = out<float>(call, 0), *new_square = out<float>(call, 1), *new_moment = out<float>(call, 2);
  const f32v rate = splat(number(call, 3)), gain = splat(1 - number(call, 5)), momentum = splat(number(call, 6));
  const f32v epsilon = splat(number(call, 7));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v d = load_lanes(g + i, lanes), old = load_lanes(square + i, lanes);
    const f32v next = old + (d * d - old) * gain;
    const f32v step = load_lanes(moment + i, lanes) * momentum + rate * d / sqrt(next + epsilon);
    store_lanes(new_square + i, next, lanes);
    store_lanes(new_moment + i, step, lanes);
    store_lanes(new_var + i, load_lanes(var + i, lanes) - step, lanes);
  });
}

KERNEL_FN(apply_centered_rms_prop, f32) {
  const float *var = in<float>(call, 0), *mean = in<float>(call, 1), *square = in<float>(call, 2);
  const float *moment = in<float>(call, 3), *g = in<float>(call, 4);
  float *new_var = out<float>(call, 0), *new_mean = out<float>(call, 1), *new_square = out<float>(call, 2);
  float* new_moment = out<float>(call, 3);
  const f32v rate = splat(number(call, 5)), gain = splat(1 - number(call, 6)), momentum = splat(number(call, 7));
  const f32v epsilon = splat(number(call, 8));
  return for_vectors_of(call, output(call).size, 40, [=](int64_t i, int64_t lanes) {
    const f32v d = load_lanes(g + i, lanes);
    const f32v old_square = load_lanes(square + i, lanes), old_mean = load_lanes(mean + i, lanes);
    const f32v next_square = old_square + (d * d - old_square) * gain, next_mean = old_mean + (d - old_mean) * gain;
    const f32v root = sqrt(next_square - next_mean * next_mean + epsilon);
    const f32v step = load_lanes(moment + i, lanes) * momentum + rate * d / root;
    store_lanes(new_square + i, next_square, lanes);
    store_lanes(new_mean + i, next_mean, lanes);
    store_lanes(new_moment + i, step, lanes);
    store_lanes(new_var + i, load_lanes(var + i, lanes) - step, lanes);
  });
}

// var -= lr g / (sqrt(accum) + epsilon)
int32_t adagrad(const myc_call* call, bool update_slots, float epsilon) {
  const float *var = in<float>(call, 0), *accum = in<float>(call, 1), *g = in<float>(call, 3);
  float *new_var = out<float>(call, 0), *new_accum = out<float>(call, 1);
  const f32v rate = splat(number(call, 2)), small = splat(epsilon);
  return for_vectors_of(call, output(call).size, 20, [=](int64_t i, int64_t lanes) {
    const f32v d = load_lanes(g + i, lanes), old = load_lanes(accum + i, lanes);
    const f32v next = update_slots ? old + d * d : old;
    store_lanes(new_accum + i, next, lanes);
    store_lanes(new_var + i, load_lanes(var + i, lanes) - rate * d / (sqrt(next) + small), lanes);
  });
}

KERNEL_FN(apply_adagrad, f32) { return adagrad(call, attrs<myc_apply_adagrad_attrs>(call).update_slots, 0.0f); }
KERNEL_FN(apply_adagrad_v2, f32) {
  const auto& a = attrs<myc_apply_adagrad_v2_attrs>(call);
  return adagrad(call, a.update_slots, static_cast<float>(a.epsilon));
}

KERNEL_FN(apply_adadelta, f32) {
  const float *var = in<float>(call, 0), *accum = in<float>(call, 1), *updates = in<float>(call, 2), *g = in<float>(call, 6);
  float *new_var = out<float>(call, 0), *new_accum = out<float>(call, 1), *new_updates = out<float>(call, 2);
  const f32v rate = splat(number(call, 3)), rho = splat(number(call, 4)), gain = splat(1 - number(call, 4));
  const f32v epsilon = splat(number(call, 5));
  return for_vectors_of(call, output(call).size, 40, [=](int64_t i, int64_t lanes) {
    const f32v d = load_lanes(g + i, lanes), old_update = load_lanes(updates + i, lanes);
    const f32v next = rho * load_lanes(accum + i, lanes) + gain * d * d;
    const f32v step = sqrt((old_update + epsilon) / (next + epsilon)) * d;
    store_lanes(new_accum + i, next, lanes);
    store_lanes(new_updates + i, rho * old_update + gain * step * step, lanes);
    store_lanes(new_var + i, load_lanes(var + i, lanes) - rate * step, lanes);
  });
}

}  // namespace mycelia::MYC_ISA
