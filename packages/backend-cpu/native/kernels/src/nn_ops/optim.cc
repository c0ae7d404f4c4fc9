// Optimizer steps without moments of the gradient's size: descent, momentum, signs, penalties of the norms.
#include "nn_ops/optim.h"
#include "simd/math.h"

namespace mycelia::MYC_ISA {

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

// ---- signs ----

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

STEP(apply_gradient_descent, 2)
STEP(sgd, 3)
STEP(apply_momentum, 3)
STEP(apply_add_sign, 6)
STEP(apply_power_sign, 6)
STEP(apply_proximal_gradient_descent, 4)
STEP(apply_proximal_adagrad, 5)
STEP(apply_ftrl, 3)
STEP(rprop, 3)

}  // namespace mycelia::MYC_ISA
