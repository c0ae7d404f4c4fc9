// Fields of weights in an entropy code: range asymmetric numeral systems (J. Duda, 2009) with one state for each of several lanes, to
// which fields belong in turn. Code: how often each field counts of 4096 (uint16 each), the lanes' states (uint32), words (uint16).
#include <array>
#include <cstring>
#include <vector>

#include "model_file.h"

namespace mycelia::lite {

namespace {

constexpr int kShare = 12;  // bits of the shares that fields have
constexpr uint32_t kWhole = 1u << kShare, kLeast = 1u << 16;  // a state below it takes a word in
constexpr int64_t kMostLanes = 1 << 12;

}  // namespace

bool decode_fields(const uint8_t* coded, uint64_t size, int64_t lanes, int bits, int64_t count, uint8_t* fields) {
  const uint32_t symbols = 1u << bits;
  if (lanes < 1 || lanes > kMostLanes || bits < 1 || bits > 8) return false;
  const uint64_t head = 2 * symbols + 4 * static_cast<uint64_t>(lanes);
  if (size < head || size % 2) return false;
  struct Place {
    uint16_t share, from;
    uint8_t symbol;
  };
  std::array<Place, kWhole> places;
  uint32_t filled = 0;
  for (uint32_t s = 0; s < symbols; ++s) {
    uint16_t share;
    std::memcpy(&share, coded + 2 * s, sizeof(share));
    if (share > kWhole - filled) return false;
    for (uint32_t i = 0; i < share; ++i) places[filled + i] = {share, static_cast<uint16_t>(i), static_cast<uint8_t>(s)};
    filled += share;
  }
  if (filled != kWhole) return false;
  std::vector<uint32_t> states(static_cast<size_t>(lanes));
  std::memcpy(states.data(), coded + 2 * symbols, 4 * states.size());
  const uint8_t *next = coded + head, *const end = coded + size;
  uint32_t held = 0;
  int filling = 0;  // bits of `held` that are still to be written
  size_t lane = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t state = states[lane];
    const Place& place = places[state & (kWhole - 1)];
    state = place.share * (state >> kShare) + place.from;
    if (state < kLeast) {
      if (next == end) return false;
      uint16_t word;
      std::memcpy(&word, next, sizeof(word));
      next += sizeof(word);
      state = state << 16 | word;
    }
    states[lane] = state;
    if (++lane == states.size()) lane = 0;
    held |= uint32_t{place.symbol} << filling;
    filling += bits;
    while (filling >= 8) *fields++ = static_cast<uint8_t>(held), held >>= 8, filling -= 8;
  }
  if (filling) *fields = static_cast<uint8_t>(held);
  return next == end;
}

}  // namespace mycelia::lite
