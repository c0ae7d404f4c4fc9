// Optimizer steps: one pass over the parameter, its state and the gradient, in place when the host gives the same
// memory as input and output.  Each array has float32 or 16-bit floats; the arithmetic is float32.  Bound by memory: 4 or
// 2 bytes for each array read and each written, an element.
#include "elementwise/elementwise.h"
#include "reductions/sums.h"

namespace mycelia::MYC_ISA {

// A hyperparameter: a tensor of one element.
inline float number(const myc_call* call, int i) { return floats_in(call, i).load(0, 1)[0]; }

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

double norm_of(const Floats& x, int64_t n) {
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

KERNEL_FN(apply_gradient_descent, f32) {
  const Floats var = floats_in(call), g = floats_in(call, 2);
  const Floats new_var = floats_out(call);
  const f32v rate = splat(number(call, 1));
  return for_vectors_of(call, output(call).size, 12, [=](int64_t i, int64_t lanes) {
    new_var.store(i, var.load(i, lanes) - rate * g.load(i, lanes), lanes);
  });
}

KERNEL_FN(sgd, f32) {
  const auto& a = attrs<myc_sgd_attrs>(call);
  const Floats var = floats_in(call, 0), accum = floats_in(call, 1), stat = floats_in(call, 2), g = floats_in(call, 3);
  const Floats new_var = floats_out(call, 0), new_accum = floats_out(call, 1), new_stat = floats_out(call, 2);
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

KERNEL_FN(apply_momentum, f32) {
  const auto& a = attrs<myc_apply_momentum_attrs>(call);
  const Floats var = floats_in(call, 0), accum = floats_in(call, 1), g = floats_in(call, 3);
  const Floats new_var = floats_out(call, 0), new_accum = floats_out(call, 1);
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
struct AdamState {
  Floats var, m, v;
  Floats new_var, new_m, new_v;
  f32v gain1, gain2;  // 1 - beta1, 1 - beta2

  AdamState(const myc_call* call, float beta1, float beta2)
      : var(floats_in(call, 0)), m(floats_in(call, 1)), v(floats_in(call, 2)), new_var(floats_out(call, 0)),
        new_m(floats_out(call, 1)), new_v(floats_out(call, 2)), gain1(splat(1 - beta1)), gain2(splat(1 - beta2)) {}

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

KERNEL_FN(adam, f32) {
  const auto& a = attrs<myc_adam_attrs>(call);
  const float beta1 = number(call, 6), beta2 = number(call, 7);
  const AdamState s(call, beta1, beta2);
  const Floats g = floats_in(call, 9);
  const float step = number(call, 5) * sqrtf(1 - number(call, 4)) / (1 - number(call, 3));
  const f32v rate = splat(step), epsilon = splat(number(call, 8)), b1 = splat(beta1);
  const Decayed decayed(a.gradient_scale, a.weight_decay);
  const bool nesterov = a.use_nesterov;
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v w = s.var.load(i, lanes), d = decayed(g.load(i, lanes), w);
    const AdamState::Moments next = s.advance(d, i, lanes);
    const f32v direction = nesterov ? next.m * b1 + s.gain1 * d : next.m;
    s.new_var.store(i, w - rate * direction / (sqrt(next.v) + epsilon), lanes);
  });
}

KERNEL_FN(adam_amsgrad, f32) {
  const AdamState s(call, number(call, 7), number(call, 8));
  const Floats vhat = floats_in(call, 3), g = floats_in(call, 10);
  const Floats new_vhat = floats_out(call, 3);
  const f32v rate = splat(number(call, 6) * sqrtf(1 - number(call, 5)) / (1 - number(call, 4)));
  const f32v epsilon = splat(number(call, 9));
  return for_vectors_of(call, output(call).size, 40, [=](int64_t i, int64_t lanes) {
    const AdamState::Moments next = s.advance(g.load(i, lanes), i, lanes);
    const f32v largest = maximum(vhat.load(i, lanes), next.v);
    new_vhat.store(i, largest, lanes);
    s.new_var.store(i, s.var.load(i, lanes) - rate * next.m / (sqrt(largest) + epsilon), lanes);
  });
}

KERNEL_FN(adam_weight_decay, f32) {
  const AdamState s(call, number(call, 4), number(call, 5));
  const Floats g = floats_in(call, 8);
  const f32v rate = splat(number(call, 3)), epsilon = splat(number(call, 6)), decay = splat(number(call, 7));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v w = s.var.load(i, lanes);
    const AdamState::Moments next = s.advance(g.load(i, lanes), i, lanes);
    s.new_var.store(i, w - rate * (next.m / (sqrt(next.v) + epsilon) + decay * w), lanes);
  });
}

KERNEL_FN(adamw, f32) {
  const float step = number(call, 3), lr = number(call, 4), beta1 = number(call, 5), beta2 = number(call, 6);
  const AdamState s(call, beta1, beta2);
  const Floats g = floats_in(call, 9);
  const f32v rate = splat(lr / (1 - powf(beta1, step))), unbias = splat(1 / sqrtf(1 - powf(beta2, step)));
  const f32v epsilon = splat(number(call, 7)), kept = splat(1 - lr * number(call, 8));
  return for_vectors_of(call, output(call).size, 32, [=](int64_t i, int64_t lanes) {
    const f32v w = s.var.load(i, lanes);
    const AdamState::Moments next = s.advance(g.load(i, lanes), i, lanes);
    s.new_var.store(i, w * kept - rate * next.m / (sqrt(next.v) * unbias + epsilon), lanes);
  });
}

KERNEL_FN(apply_ada_max, f32) {
  const Floats var = floats_in(call, 0), m = floats_in(call, 1), v = floats_in(call, 2), g = floats_in(call, 8);
  const Floats new_var = floats_out(call, 0), new_m = floats_out(call, 1), new_v = floats_out(call, 2);
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
KERNEL_FN(lamb, f32) {
  const float beta1 = number(call, 4), beta2 = number(call, 5), step = number(call, 8);
  const AdamState s(call, beta1, beta2);
  const Floats g = floats_in(call, 9);
  const int64_t n = output(call).size;
  Scratch scratch(call);
  float* kept = scratch.take<float>(max(n, int64_t{1}));
  if (!kept) return MYC_E_MEMORY;
  const Floats direction(kept, MYC_F32);
  const f32v unbias1 = splat(1 / (1 - powf(beta1, step))), unbias2 = splat(1 / (1 - powf(beta2, step)));
  const f32v epsilon = splat(number(call, 6)), decay = splat(number(call, 7));
  for_vectors_of(call, n, 32, [=](int64_t i, int64_t lanes) {
    const AdamState::Moments next = s.advance(g.load(i, lanes), i, lanes);
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

KERNEL_FN(apply_rms_prop, f32) {
  const Floats var = floats_in(call, 0), square = floats_in(call, 1), moment = floats_in(call, 2), g = floats_in(call, 4);
  const Floats new_var = floats_out(call, 0), new_square = floats_out(call, 1), new_moment = floats_out(call, 2);
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

KERNEL_FN(apply_centered_rms_prop, f32) {
  const Floats var = floats_in(call, 0), mean = floats_in(call, 1), square = floats_in(call, 2);
  const Floats moment = floats_in(call, 3), g = floats_in(call, 4);
  const Floats new_var = floats_out(call, 0), new_mean = floats_out(call, 1), new_square = floats_out(call, 2);
  const Floats new_moment = floats_out(call, 3);
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
int32_t adagrad(const myc_call* call, bool update_slots, float epsilon) {
  const Floats var = floats_in(call, 0), accum = floats_in(call, 1), g = floats_in(call, 3);
  const Floats new_var = floats_out(call, 0), new_accum = floats_out(call, 1);
  const f32v rate = splat(number(call, 2)), small = splat(epsilon);
  return for_vectors_of(call, output(call).size, 20, [=](int64_t i, int64_t lanes) {
    const f32v d = g.load(i, lanes), old = accum.load(i, lanes);
    const f32v next = update_slots ? old + d * d : old;
    new_accum.store(i, next, lanes);
    new_var.store(i, var.load(i, lanes) - rate * d / (sqrt(next) + small), lanes);
  });
}

KERNEL_FN(apply_adagrad, f32) { return adagrad(call, attrs<myc_apply_adagrad_attrs>(call).update_slots, 0.0f); }
KERNEL_FN(apply_adagrad_v2, f32) {
  const auto& a = attrs<myc_apply_adagrad_v2_attrs>(call);
  return adagrad(call, a.update_slots, static_cast<float>(a.epsilon));
}

KERNEL_FN(apply_adadelta, f32) {
  const Floats var = floats_in(call, 0), accum = floats_in(call, 1), updates = floats_in(call, 2), g = floats_in(call, 6);
  const Floats new_var = floats_out(call, 0), new_accum = floats_out(call, 1), new_updates = floats_out(call, 2);
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

}  // namespace mycelia::MYC_ISA
