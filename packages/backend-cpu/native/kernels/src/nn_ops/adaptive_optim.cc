// Optimizer steps whose rate adapts to moments of the gradient: Adam and relatives, mean squares.
#include "nn_ops/optim.h"
#include "simd/math.h"

namespace mycelia::MYC_ISA {

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

// ---- kernels ----

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

}  // namespace mycelia::MYC_ISA
