// Integers of fewer bits than their dtype, which lie one behind another, the first in the lowest bits of a byte: q + 2^(bits - 1).
#include "own.h"

namespace mycelia::lite {

namespace {

constexpr int64_t kFields = 8;  // that end where a byte ends

template <class T>
int32_t unpack(const myc_call* call) {
  const int64_t bits = attrs<UnpackBitsAttributes>(call).bits, count = call->out[0]->size;
  const uint8_t* const stream = in<uint8_t>(call, 0);
  const uint32_t mask = (1u << bits) - 1;
  T* const to = out<T>(call);
  for_each(call, (count + kFields - 1) / kFields, 512, [&](int64_t part) {
    const uint8_t* from = stream + part * bits;
    uint32_t held = 0;
    int64_t there = 0;  // bits in `held`
    for (int64_t i = part * kFields; i < count && i < (part + 1) * kFields; ++i) {
      for (; there < bits; there += 8) held |= static_cast<uint32_t>(*from++) << there;
      to[i] = static_cast<T>(static_cast<int32_t>(held & mask) - (1 << (bits - 1)));
      held >>= bits, there -= bits;
    }
  });
  return MYC_OK;
}

}  // namespace

int32_t own_unpack_bits_u8(const myc_call* call) { return call->out[0]->dtype == MYC_I16 ? unpack<int16_t>(call) : unpack<int8_t>(call); }

}  // namespace mycelia::lite
