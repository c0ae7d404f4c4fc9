// CRC-32C (Castagnoli): by the machine's own instruction where it has one, else by tables. For C++; stands alone.
#ifndef MYCELIA_CRC32C_H_
#define MYCELIA_CRC32C_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace mycelia {
namespace crc32c_detail {

inline constexpr uint32_t kCastagnoli = 0x82F63B78;  // reflected

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: what a byte b leads to from state 0 when k zero bytes follow it.
constexpr Tables tables_of() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t state = b;
    for (int bit = 0; bit < 8; ++bit) state = (state & 1) ? (state >> 1) ^ kCastagnoli : state >> 1;
    tables[0][b] = state;
  }
  for (int k = 1; k < 8; ++k)
    for (uint32_t b = 0; b < 256; ++b) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xFF];
  return tables;
}
inline constexpr Tables kTables = tables_of();

inline uint32_t by_tables(const uint8_t* p, size_t size) {
  uint32_t crc = 0xFFFFFFFF;
  for (; size >= 8; p += 8, size -= 8) {
    const uint32_t low = crc ^ (p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24);
    crc = kTables[7][low & 0xFF] ^ kTables[6][low >> 8 & 0xFF] ^ kTables[5][low >> 16 & 0xFF] ^ kTables[4][low >> 24] ^
          kTables[3][p[4]] ^ kTables[2][p[5]] ^ kTables[1][p[6]] ^ kTables[0][p[7]];
  }
  for (; size; --size) crc = kTables[0][(crc ^ *p++) & 0xFF] ^ crc >> 8;
  return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) inline uint32_t by_instruction(const uint8_t* p, size_t size) {
  uint64_t crc = 0xFFFFFFFF, word;
  for (; size >= 8; p += 8, size -= 8) {
    std::memcpy(&word, p, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  uint32_t rest = static_cast<uint32_t>(crc);
  for (; size; --size) rest = _mm_crc32_u8(rest, *p++);
  return ~rest;
}
inline bool has_instruction() { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__ARM_FEATURE_CRC32)
inline uint32_t by_instruction(const uint8_t* p, size_t size) {
  uint32_t crc = 0xFFFFFFFF;
  uint64_t word;
  for (; size >= 8; p += 8, size -= 8) {
    std::memcpy(&word, p, 8);
    crc = __crc32cd(crc, word);
  }
  for (; size; --size) crc = __crc32cb(crc, *p++);
  return ~crc;
}
inline bool has_instruction() { return true; }
#else
inline constexpr auto by_instruction = by_tables;
inline bool has_instruction() { return false; }
#endif

}  // namespace crc32c_detail

// `tables`: without the instruction.
inline uint32_t crc32c(const uint8_t* data, size_t size, bool tables = false) {
  static const bool quick = crc32c_detail::has_instruction();
  return quick && !tables ? crc32c_detail::by_instruction(data, size) : crc32c_detail::by_tables(data, size);
}

}  // namespace mycelia

#endif  // MYCELIA_CRC32C_H_
