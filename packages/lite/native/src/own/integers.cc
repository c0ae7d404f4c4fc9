// Integers of 8 bits as TensorFlow Lite's kernels compute with them.
#include <algorithm>

#include "own.h"
#include "walk.h"

namespace mycelia::lite {

namespace {

constexpr int64_t kGrain = 4096;

template <class T>
void look_up(const myc_call* call, uint8_t first) {
  const uint8_t* const x = in<uint8_t>(call, 0);
  const T* const table = in<T>(call, 1);
  T* const y = out<T>(call);
  for_each(call, call->out[0]->size, kGrain, [=](int64_t i) { y[i] = table[static_cast<uint8_t>(x[i] - first)]; });
}

}  // namespace

int32_t own_lookup_any(const myc_call* call) {
  const auto first = static_cast<uint8_t>(attrs<LookupAttributes>(call).first);
  switch (call->out[0]->dtype) {
    case MYC_I8:
    case MYC_U8: look_up<uint8_t>(call, first); return MYC_OK;
    case MYC_I32: look_up<int32_t>(call, first); return MYC_OK;
    default: return MYC_E_UNSUPPORTED;
  }
}

namespace {

// Products are rounded to 31 bits with halves up, then by the shift.
struct Scaling {
  explicit Scaling(const RescaleAttributes& a)
      : multiplier(static_cast<uint64_t>(a.multiplier) << a.left), right(static_cast<int>(a.right)), half(right ? int64_t{1} << (right - 1) : 0),
        negative(right && !a.up ? -1 : 0), zero(a.zero), low(a.low), high(a.high) {}
  [[gnu::always_inline]] int64_t operator()(int32_t x) const {  // calls would take twice the time
    const auto product = static_cast<int64_t>(static_cast<uint64_t>(int64_t{x}) * multiplier);
    const int64_t wide = (product + (int64_t{1} << 30)) >> 31;
    const int64_t scaled = ((wide + half + ((wide >> 63) & negative)) >> right) + zero;
    return std::min(std::max(scaled, low), high);
  }
  const uint64_t multiplier;
  const int right;
  const int64_t half, negative, zero, low, high;
};

template <class T>
void rescale(const myc_call* call, const RescaleAttributes& a) {
  const int32_t* const x = in<int32_t>(call, 0);
  T* const y = out<T>(call);
  const Scaling scaled(a);
  const auto rows = [=](int64_t begin, int64_t end) {
    const Scaling own = scaled;  // which bytes that are written cannot change
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(own(x[i]));
  };
  using Rows = decltype(rows);
  call->ctx->parallel_for(
      call->ctx, call->out[0]->size, kGrain, [](void* arg, int64_t begin, int64_t end, int32_t) { (*static_cast<const Rows*>(arg))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&rows)));
}

template <class F>
void pair(const myc_call* call, const PairAttributes& attributes, const F& f) {
  const myc_tensor& result = *call->out[0];
  struct Work {
    Walk a, b;
    int axes;
    int64_t inner;
    const int32_t *of_a, *of_b;
    uint8_t* y;
    uint8_t first;
    Scaling scaled;
    F f;
  };
  Work work{Walk(*call->in[0], result), Walk(*call->in[1], result), 0, 1, in<int32_t>(call, 2), in<int32_t>(call, 3),
            out<uint8_t>(call), static_cast<uint8_t>(attributes.first), Scaling(attributes.scale), f};
  work.axes = result.rank - std::min(work.a.joined(), work.b.joined());
  for (int d = work.axes; d < result.rank; ++d) work.inner *= result.shape[d];
  if (!result.size) return;
  call->ctx->parallel_for(
      call->ctx, result.size, kGrain,
      [](void* arg, int64_t begin, int64_t end, int32_t) {
        const Work w = *static_cast<const Work*>(arg);  // its own, which bytes that are written cannot change
        const Scaling scaled = w.scaled;
        const F f = w.f;
        const int32_t *const of_a = w.of_a, *const of_b = w.of_b;
        const uint8_t first = w.first;
        const int64_t step_a = w.a.last(w.axes), step_b = w.b.last(w.axes);
        for (int64_t i = begin; i < end;) {
          const int64_t column = i % w.inner, count = std::min(end - i, w.inner - column);
          const uint8_t* const a = w.a.row(i / w.inner, w.axes) + column * step_a;
          const uint8_t* const b = w.b.row(i / w.inner, w.axes) + column * step_b;
          uint8_t* const y = w.y + i;
          for (int64_t k = 0; k < count; ++k)
            y[k] = static_cast<uint8_t>(scaled(f(of_a[static_cast<uint8_t>(a[k * step_a] - first)], of_b[static_cast<uint8_t>(b[k * step_b] - first)])));
          i += count;
        }
      },
      &work);
}

// Sums, differences and products that wrap around.
int32_t wrapped(uint32_t x) { return static_cast<int32_t>(x); }

}  // namespace

int32_t own_pair_any(const myc_call* call) {
  const auto& a = attrs<PairAttributes>(call);
  switch (a.how) {
    case 0: pair(call, a, [](uint32_t x, uint32_t y) { return wrapped(x + y); }); return MYC_OK;
    case 1: pair(call, a, [](uint32_t x, uint32_t y) { return wrapped(x - y); }); return MYC_OK;
    case 2: pair(call, a, [](uint32_t x, uint32_t y) { return wrapped(x * y); }); return MYC_OK;
    default: return MYC_E_UNSUPPORTED;
  }
}

int32_t own_rescale_i32(const myc_call* call) {
  const auto& a = attrs<RescaleAttributes>(call);
  switch (call->out[0]->dtype) {
    case MYC_I8: rescale<int8_t>(call, a); return MYC_OK;
    case MYC_U8: rescale<uint8_t>(call, a); return MYC_OK;
    case MYC_I32: rescale<int32_t>(call, a); return MYC_OK;
    default: return MYC_E_UNSUPPORTED;
  }
}

}  // namespace mycelia::lite
