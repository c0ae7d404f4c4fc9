// Random numbers: Philox 4x32 with 10 rounds (Salmon et al. 2011), as TensorFlow and MindSpore Lite seed it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>

#include "own.h"

namespace mycelia::lite {

namespace {

struct Philox {
  uint32_t key[2], counter[4];

  Philox(uint64_t seed, uint64_t stream)
      : key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter{0, 0, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)} {}

  void next(uint32_t* numbers) {
    uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * x[0], b = uint64_t{0xCD9E8D57} * x[2];
      const uint32_t mixed[4] = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ k[0], static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ x[3] ^ k[1],
                                 static_cast<uint32_t>(a)};
      std::copy(mixed, mixed + 4, x);
      k[0] += 0x9E3779B9, k[1] += 0xBB67AE85;
    }
    std::copy(x, x + 4, numbers);
    for (uint32_t& part : counter)
      if (++part) break;
  }
};

float in_unit(uint32_t bits) {  // [0, 1) by the 23 lower bits
  const uint32_t mantissa = (bits & 0x7fffff) | 0x3f800000;
  float number;
  std::memcpy(&number, &mantissa, 4);
  return number - 1;
}

}  // namespace

int32_t own_random_f32(const myc_call* call) {
  const RandomAttributes& a = attrs<RandomAttributes>(call);
  uint64_t seed = static_cast<uint64_t>(a.seed), stream = static_cast<uint64_t>(a.seed2);
  if (!seed && !stream) {
    static std::atomic<uint64_t> runs{0};
    seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    stream = ++runs;
  }
  Philox source(seed, stream);
  float* numbers = out<float>(call);
  const int64_t count = call->out[0]->size;
  for (int64_t i = 0; i < count; i += 4) {
    uint32_t bits[4];
    source.next(bits);
    float made[4];
    for (int k = 0; k < 4; ++k) made[k] = in_unit(bits[k]);
    if (a.normal) {  // Box and Muller
      for (const int k : {0, 2}) {
        const float radius = std::sqrt(-2 * std::log(std::max(made[k], 1e-7f))), angle = 6.28318530718f * made[k + 1];
        made[k] = radius * std::sin(angle), made[k + 1] = radius * std::cos(angle);
      }
    }
    for (int64_t k = 0; k < std::min<int64_t>(4, count - i); ++k)
      numbers[i + k] = static_cast<float>(a.mean) + static_cast<float>(a.scale) * made[k];
  }
  *out<uint8_t>(call, 1) = 1;
  return MYC_OK;
}

}  // namespace mycelia::lite
