// Loops of quantized.cc, which has them twice: plain, and with LITE_VECTORS for AVX2.

constexpr int kLanes = 8;
constexpr int64_t kGrain = 8192;
constexpr float kWhole = 12582912.0f;  // 1.5 * 2^23: to add it and subtract it again rounds to even

typedef float f32s __attribute__((vector_size(4 * kLanes)));
typedef int32_t i32s __attribute__((vector_size(4 * kLanes)));

template <class Work>
void divide(const myc_call* call, int64_t n, int64_t grain, const Work& work) {
  call->ctx->parallel_for(
      call->ctx, n, std::max<int64_t>(grain, 1),
      [](void* arg, int64_t begin, int64_t end, int32_t) {
        const Work own = *static_cast<const Work*>(arg);  // which bytes that are written cannot change
        own(begin, end);
      },
      const_cast<Work*>(&work));
}

// `count` elements from `from` on, at most a vector of them; what is beyond is 0.
template <class V, class T>
INLINE V load(const T* from, int64_t count) {
  V v{};
  count >= kLanes ? __builtin_memcpy(&v, from, sizeof(v)) : std::memcpy(&v, from, sizeof(T) * static_cast<size_t>(count));
  return v;
}

template <class V, class T>
INLINE void store(const V& v, T* to, int64_t count) {
  count >= kLanes ? __builtin_memcpy(to, &v, sizeof(v)) : std::memcpy(to, &v, sizeof(T) * static_cast<size_t>(count));
}

#ifdef LITE_VECTORS
// Integers of 8 bits as those of 32, and back: the compiler's own conversions go element by element.
template <class T>
INLINE i32s widened(const T* from, int64_t count) {
  const __m128i bytes = _mm_cvtsi64_si128(load<int64_t>(from, count));
  return (i32s)(std::is_signed<T>::value ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
}

template <class T>
INLINE void store_narrow(const i32s& v, T* to, int64_t count) {  // numbers that T has
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  store(_mm_cvtsi128_si64(std::is_signed<T>::value ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words)), to, count);
}

// Numbers of 16 bits times others: upper halves of the second are 0.
INLINE i32s times(const i32s& x, const int16_t* y, int64_t count) {
  const __m128i words = load<__m128i>(y, count);
  return (i32s)_mm256_madd_epi16((__m256i)x, _mm256_cvtepu16_epi32(words));
}
#else
template <class T>
INLINE i32s widened(const T* from, int64_t count) {
  i32s v{};
  for (int k = 0; k < kLanes && k < count; ++k) v[k] = from[k];
  return v;
}

template <class T>
INLINE void store_narrow(const i32s& v, T* to, int64_t count) {
  for (int k = 0; k < kLanes && k < count; ++k) to[k] = static_cast<T>(v[k]);
}

INLINE i32s times(const i32s& x, const int16_t* y, int64_t count) { return x * widened(y, count); }
#endif

// Numbers in steps of the result as its integers.
struct Rounding {
  Rounding(int64_t zero, int64_t low, int64_t high) : zero(static_cast<int32_t>(zero)), low(static_cast<float>(low - zero)), high(static_cast<float>(high - zero)) {}
  INLINE i32s operator()(f32s v) const {
    const f32s least = f32s{} + low, most = f32s{} + high;
    v = v > least ? v : least;  // NaN, too
    v = v < most ? v : most;
    return __builtin_convertvector((v + kWhole) - kWhole, i32s) + zero;
  }
  int32_t zero;
  float low, high;
};

template <class F>
int32_t by_bytes(int32_t dtype, const F& f) {
  switch (dtype) {
    case MYC_I8: f(int8_t{}); return MYC_OK;
    case MYC_U8: f(uint8_t{}); return MYC_OK;
    default: return MYC_E_UNSUPPORTED;
  }
}

int32_t quantize(const myc_call* call) {
  const auto& a = attrs<QuantizeAttributes>(call);
  return by_bytes(call->out[0]->dtype, [&](auto kind) {
    using T = decltype(kind);
    const float* const x = in<float>(call, 0);
    T* const y = out<T>(call);
    const float scale = static_cast<float>(a.scale);
    const Rounding rounded(a.zero, a.low, a.high);
    divide(call, call->out[0]->size, kGrain, [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
      for (int64_t i = begin; i < end; i += kLanes) store_narrow(rounded(load<f32s>(x + i, end - i) / scale), y + i, end - i);
    });
  });
}

int32_t dequantize(const myc_call* call) {
  const auto& a = attrs<QuantizeAttributes>(call);
  return by_bytes(call->in[0]->dtype, [&](auto kind) {
    using T = decltype(kind);
    const T* const x = in<T>(call, 0);
    float* const y = out<float>(call);
    const float scale = static_cast<float>(a.scale);
    const int32_t zero = static_cast<int32_t>(a.zero);
    divide(call, call->out[0]->size, kGrain, [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
      for (int64_t i = begin; i < end; i += kLanes)
        store(__builtin_convertvector(widened(x + i, end - i) - zero, f32s) * scale, y + i, end - i);
    });
  });
}

// The largest absolute value; NaN if there is one.
INLINE float largest(const float* x, int64_t count) {
  f32s most{}, wrong{};
  for (int64_t i = 0; i < count; i += kLanes) {
    const f32s v = load<f32s>(x + i, count - i), size = v < 0 ? -v : v;
    most = size > most ? size : most;
    wrong += v * 0.0f;  // NaN for infinities, too, whose row has no scale
  }
  float found = 0;
  for (int k = 0; k < kLanes; ++k) found = std::max(found, most[k]) + wrong[k];
  return found;
}

int32_t dynamic_quantize(const myc_call* call) {
  const bool together = attrs<DynamicQuantizeAttributes>(call).together;
  const myc_tensor& data = *call->in[0];
  const int64_t depth = data.shape[data.rank - 1], rows = depth ? data.size / depth : 0;
  const float* const x = in<float>(call, 0);
  int8_t* const y = out<int8_t>(call);
  float* const scales = out<float>(call, 1);
  const auto scale_of = [](float most) { return most == 0 ? 1.0f : most / 127.0f; };
  float all = 0;
  if (together) {
    divide(call, 1, 1, [&all, x, &data](int64_t, int64_t) __attribute__((always_inline)) { all = largest(x, data.size); });
    scales[0] = all = scale_of(all);
  } else {
    std::fill(scales, scales + call->out[1]->size, 1.0f);
  }
  const Rounding rounded(0, -127, 127);
  divide(call, rows, kGrain / std::max<int64_t>(depth, 1), [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
    for (int64_t r = begin; r < end; ++r) {
      const float* const from = x + r * depth;
      const float scale = together ? all : scale_of(largest(from, depth));
      if (!together) scales[r] = scale;
      for (int64_t i = 0; i < depth; i += kLanes) store_narrow(rounded(load<f32s>(from + i, depth - i) / scale), y + r * depth + i, depth - i);
    }
  });
  return MYC_OK;
}

int32_t combine(const myc_call* call) {
  const auto& a = attrs<CombineAttributes>(call);
  if (call->in[1]->dtype != call->in[0]->dtype || call->out[0]->dtype != call->in[0]->dtype) return MYC_E_UNSUPPORTED;
  return by_bytes(call->out[0]->dtype, [&](auto kind) {
    using T = decltype(kind);
    const myc_tensor& result = *call->out[0];
    if (!result.size) return;
    const Walk first(*call->in[0], result), second(*call->in[1], result);
    const int axes = result.rank - std::min(first.joined(), second.joined());
    int64_t inner = 1;
    for (int d = axes; d < result.rank; ++d) inner *= result.shape[d];
    const int64_t x_step = first.last(axes), y_step = second.last(axes), how = a.how;
    const float x_scale = static_cast<float>(a.x_scale), y_scale = static_cast<float>(a.y_scale);
    const int32_t x_zero = static_cast<int32_t>(a.x_zero), y_zero = static_cast<int32_t>(a.y_zero);
    const Rounding rounded(a.zero, a.low, a.high);
    T* const to = out<T>(call);
    const auto numbers = [](const T* from, int64_t step, int64_t count, int32_t zero, float scale) __attribute__((always_inline)) {
      const i32s v = step ? widened(from, count) : i32s{} + *from;
      return __builtin_convertvector(v - zero, f32s) * scale;
    };
    divide(call, result.size, kGrain, [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
      for (int64_t i = begin; i < end;) {
        const int64_t column = i % inner, count = std::min(end - i, inner - column);
        const T* const x = reinterpret_cast<const T*>(first.row(i / inner, axes)) + column * x_step;
        const T* const y = reinterpret_cast<const T*>(second.row(i / inner, axes)) + column * y_step;
        for (int64_t k = 0; k < count; k += kLanes) {
          const f32s u = numbers(x + k * x_step, x_step, count - k, x_zero, x_scale), v = numbers(y + k * y_step, y_step, count - k, y_zero, y_scale);
          store_narrow(rounded(how == 0 ? u + v : how == 1 ? u - v : u * v), to + i + k, count - k);
        }
        i += count;
      }
    });
  });
}

struct Image {
  explicit Image(const myc_tensor& x) : height(x.shape[1]), width(x.shape[2]), channels(x.shape[3]) {}
  int64_t height, width, channels;
};

// The taps of a window that lie in the image: [first, last).
struct Span {
  INLINE Span(int64_t begin, int64_t taps, int64_t step, int64_t size)
      : first(begin < 0 ? (-begin + step - 1) / step : 0), last(std::min(taps, begin < size ? (size - begin + step - 1) / step : 0)) {
    if (last < first) last = first;
  }
  int64_t first, last;
};

int32_t integer_pool(const myc_call* call) {
  const IntegerPoolAttributes a = attrs<IntegerPoolAttributes>(call);
  if (call->out[0]->dtype != call->in[0]->dtype) return MYC_E_UNSUPPORTED;
  return by_bytes(call->out[0]->dtype, [&](auto kind) {
    using T = decltype(kind);
    const Image image(*call->in[0]);
    const int64_t rows = call->out[0]->shape[1], columns = call->out[0]->shape[2];
    const T* const x = in<T>(call, 0);
    T* const to = out<T>(call);
    const int32_t zero = static_cast<int32_t>(a.x_zero);
    const Rounding rounded(a.zero, a.low, a.high);
    const int64_t channels = image.channels;
    const int64_t pixels = channels ? call->out[0]->size / channels : 0;
    divide(call, pixels, kGrain / std::max<int64_t>(channels * a.kernel[0] * a.kernel[1], 1), [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
      for (int64_t pixel = begin; pixel < end; ++pixel) {
        const int64_t top = pixel / columns % rows * a.stride[0] - a.pad[0], left = pixel % columns * a.stride[1] - a.pad[1];
        const Span down(top, a.kernel[0], 1, image.height), along(left, a.kernel[1], 1, image.width);
        const int64_t count = (down.last - down.first) * (along.last - along.first);
        const T* const from = x + pixel / columns / rows * image.height * image.width * channels;
        const float scale = static_cast<float>(a.largest ? a.scale : a.scale / static_cast<double>(std::max<int64_t>(count, 1)));
        for (int64_t c = 0; c < channels; c += kLanes) {
          i32s sum{};
          const int32_t least = count ? std::numeric_limits<T>::min() : zero;
          i32s most = i32s{} + least;
          for (int64_t i = down.first; i < down.last; ++i) {
            for (int64_t j = along.first; j < along.last; ++j) {
              const i32s v = widened(from + ((top + i) * image.width + left + j) * channels + c, channels - c);
              if (a.largest) most = v > most ? v : most;
              else sum += v;
            }
          }
          const i32s whole = a.largest ? most - zero : sum - static_cast<int32_t>(count) * zero;
          store_narrow(rounded(__builtin_convertvector(whole, f32s) * scale), to + pixel * channels + c, channels - c);
        }
      }
    });
  });
}

// Results of 8 bits or float32 of a depthwise convolution with weights [taps, channels].
template <class T, class Y>
void depthwise(const myc_call* call, const IntegerDepthwiseAttributes& a) {
  const Image image(*call->in[0]);
  const int64_t rows = call->out[0]->shape[1], columns = call->out[0]->shape[2], channels = image.channels;
  const T* const x = in<T>(call, 0);
  const int16_t* const weights = in<int16_t>(call, 1);
  const float* const scales = in<float>(call, 2);
  const int32_t* const biases = in<int32_t>(call, 3);
  Y* const to = out<Y>(call);
  const int32_t zero = static_cast<int32_t>(a.x_zero);
  const Rounding rounded(a.zero, a.low, a.high);
  const int64_t taps[] = {a.kernel.v[0], a.kernel.v[1]}, stride[] = {a.stride.v[0], a.stride.v[1]}, step[] = {a.dilation.v[0], a.dilation.v[1]};
  const int64_t pad[] = {a.pad.v[0], a.pad.v[1]};
  const int64_t lines = columns && channels ? call->out[0]->size / (columns * channels) : 0;
  const auto line = [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t top = row % rows * stride[0] - pad[0];
      const Span down(top, taps[0], step[0], image.height);
      const T* const from = x + row / rows * image.height * image.width * channels;
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t left = column * stride[1] - pad[1];
        const Span along(left, taps[1], step[1], image.width);
        const auto block = [&](int64_t c, int64_t count) __attribute__((always_inline)) {
          const f32s scale = load<f32s>(scales + c, count);
          i32s sum = biases ? load<i32s>(biases + c, count) : i32s{};
          for (int64_t i = down.first; i < down.last; ++i) {
            const T* at = from + ((top + i * step[0]) * image.width + left + along.first * step[1]) * channels + c;
            const int16_t* w = weights + (i * taps[1] + along.first) * channels + c;
            for (int64_t j = along.first; j < along.last; ++j, at += step[1] * channels, w += channels) sum += times(widened(at, count) - zero, w, count);
          }
          Y* const y = to + (row * columns + column) * channels + c;
          const f32s made = __builtin_convertvector(sum, f32s) * scale;
          if constexpr (std::is_same_v<Y, float>) store(made, y, count);
          else store_narrow(rounded(made), y, count);
        };
        int64_t c = 0;
        for (; c + kLanes <= channels; c += kLanes) block(c, kLanes);  // loads of known length
        if (c < channels) block(c, channels - c);
      }
    }
  };
  divide(call, lines, kGrain / std::max<int64_t>(columns * channels * taps[0] * taps[1], 1), line);
}

int32_t integer_depthwise(const myc_call* call) {
  const auto& a = attrs<IntegerDepthwiseAttributes>(call);
  const int32_t dtype = call->out[0]->dtype;
  if (dtype != MYC_F32 && dtype != call->in[0]->dtype) return MYC_E_UNSUPPORTED;
  return by_bytes(call->in[0]->dtype, [&](auto kind) {
    using T = decltype(kind);
    dtype == MYC_F32 ? depthwise<T, float>(call, a) : depthwise<T, T>(call, a);
  });
}
