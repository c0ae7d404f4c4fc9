// AES and GHASH in plain C++. Bytes of four blocks are substituted together, one bit of all of them in a word ("bit-sliced").
#include <algorithm>
#include <cstring>

#include "gcm.h"

namespace mycelia::lite {

namespace {

constexpr size_t kTogether = 4 * kAesBlock;

// One bit of each of 64 bytes in a word; word i has bit i.
struct Planes {
  uint64_t bit[8];
};

// Rows of an 8x8 matrix of bits become columns.
uint64_t transposed(uint64_t x) {
  uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AAull;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCCull;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0ull;
  return x ^ t ^ (t << 28);
}

Planes planes_of(const uint8_t bytes[kTogether]) {
  Planes p{};
  for (int group = 0; group < 8; ++group) {
    uint64_t x = 0;
    for (int i = 0; i < 8; ++i) x |= static_cast<uint64_t>(bytes[group * 8 + i]) << (8 * i);
    x = transposed(x);
    for (int i = 0; i < 8; ++i) p.bit[i] |= ((x >> (8 * i)) & 0xFF) << (8 * group);
  }
  return p;
}

void bytes_of(const Planes& p, uint8_t bytes[kTogether]) {
  for (int group = 0; group < 8; ++group) {
    uint64_t x = 0;
    for (int i = 0; i < 8; ++i) x |= ((p.bit[i] >> (8 * group)) & 0xFF) << (8 * i);
    x = transposed(x);
    for (int i = 0; i < 8; ++i) bytes[group * 8 + i] = static_cast<uint8_t>(x >> (8 * i));
  }
}

// A polynomial of degree 14 modulo x^8 + x^4 + x^3 + x + 1.
Planes reduced(uint64_t c[15]) {
  for (int i = 14; i >= 8; --i) {
    c[i - 4] ^= c[i];
    c[i - 5] ^= c[i];
    c[i - 7] ^= c[i];
    c[i - 8] ^= c[i];
  }
  Planes p;
  std::copy(c, c + 8, p.bit);
  return p;
}

Planes product(const Planes& a, const Planes& b) {
  uint64_t c[15] = {};
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) c[i + j] ^= a.bit[i] & b.bit[j];
  return reduced(c);
}

Planes squared(const Planes& a) {
  uint64_t c[15] = {};
  for (int i = 0; i < 8; ++i) c[2 * i] = a.bit[i];
  return reduced(c);
}

// SubBytes: the inverse, which is the 254th power, and an affine map (FIPS 197, 5.1.1).
void substitute(uint8_t bytes[kTogether]) {
  const Planes x = planes_of(bytes);
  const Planes x3 = product(squared(x), x);
  const Planes x12 = squared(squared(x3));
  const Planes x15 = product(x12, x3);
  const Planes x240 = squared(squared(squared(squared(x15))));
  const Planes inverse = product(product(x240, x12), squared(x));
  Planes out;
  for (int i = 0; i < 8; ++i) {
    out.bit[i] = inverse.bit[i];
    for (int k = 4; k < 8; ++k) out.bit[i] ^= inverse.bit[(i + k) % 8];
    if (0x63 >> i & 1) out.bit[i] = ~out.bit[i];
  }
  bytes_of(out, bytes);
}

uint8_t doubled(uint8_t x) { return static_cast<uint8_t>((x << 1) ^ (0x1B & -(x >> 7))); }

void shift_rows(uint8_t s[kAesBlock]) {
  uint8_t t[kAesBlock];
  for (int column = 0; column < 4; ++column)
    for (int row = 0; row < 4; ++row) t[4 * column + row] = s[4 * ((column + row) % 4) + row];
  std::memcpy(s, t, kAesBlock);
}

void mix_columns(uint8_t s[kAesBlock]) {
  for (int column = 0; column < 4; ++column) {
    uint8_t* c = s + 4 * column;
    const uint8_t all = static_cast<uint8_t>(c[0] ^ c[1] ^ c[2] ^ c[3]), first = c[0];
    for (int row = 0; row < 4; ++row) {
      const uint8_t next = row < 3 ? c[row + 1] : first;
      c[row] = static_cast<uint8_t>(c[row] ^ all ^ doubled(static_cast<uint8_t>(c[row] ^ next)));
    }
  }
}

void add_key(uint8_t state[kTogether], const uint8_t key[kAesBlock]) {
  for (size_t i = 0; i < kTogether; ++i) state[i] ^= key[i % kAesBlock];
}

void encrypt(const AesKey& key, uint8_t state[kTogether]) {
  add_key(state, key.rounds[0]);
  for (int round = 1; round <= key.count; ++round) {
    substitute(state);
    for (size_t block = 0; block < kTogether; block += kAesBlock) {
      shift_rows(state + block);
      if (round < key.count) mix_columns(state + block);
    }
    add_key(state, key.rounds[round]);
  }
}

void stream(const AesKey& key, const uint8_t counter[kAesBlock], uint8_t* data, size_t size) {
  uint32_t number = static_cast<uint32_t>(counter[12]) << 24 | counter[13] << 16 | counter[14] << 8 | counter[15];
  for (size_t at = 0; at < size; at += kTogether) {
    uint8_t state[kTogether];
    for (size_t block = 0; block < kTogether; block += kAesBlock, ++number) {
      std::memcpy(state + block, counter, 12);
      for (int i = 0; i < 4; ++i) state[block + 12 + i] = static_cast<uint8_t>(number >> (24 - 8 * i));
    }
    encrypt(key, state);
    const size_t rest = std::min(size - at, kTogether);
    for (size_t i = 0; i < rest; ++i) data[at + i] ^= state[i];
  }
}

uint64_t big_endian(const uint8_t* at) {
  uint64_t x = 0;
  for (int i = 0; i < 8; ++i) x = x << 8 | at[i];
  return x;
}

// Bit 0 of a block is the highest bit of its first byte (SP 800-38D, 6.3).
void hash(const uint8_t h[kAesBlock], const uint8_t* data, size_t size, uint8_t sum[kAesBlock]) {
  const uint64_t h_high = big_endian(h), h_low = big_endian(h + 8);
  uint64_t high = big_endian(sum), low = big_endian(sum + 8);
  for (size_t at = 0; at < size; at += kAesBlock) {
    uint8_t block[kAesBlock] = {};
    std::memcpy(block, data + at, std::min(size - at, kAesBlock));
    const uint64_t x[2] = {high ^ big_endian(block), low ^ big_endian(block + 8)};
    uint64_t v_high = h_high, v_low = h_low;
    high = low = 0;
    for (int i = 0; i < 128; ++i) {
      const uint64_t taken = -(x[i / 64] >> (63 - i % 64) & 1), carry = -(v_low & 1);
      high ^= v_high & taken;
      low ^= v_low & taken;
      v_low = v_low >> 1 | v_high << 63;
      v_high = v_high >> 1 ^ (0xE1ull << 56 & carry);
    }
  }
  for (int i = 0; i < 8; ++i) {
    sum[i] = static_cast<uint8_t>(high >> (56 - 8 * i));
    sum[8 + i] = static_cast<uint8_t>(low >> (56 - 8 * i));
  }
}

}  // namespace

AesKey expand_key(const uint8_t* key, size_t bytes) {
  AesKey made{};
  const size_t words = bytes / 4;
  made.count = static_cast<int>(words) + 6;
  uint8_t* const all = made.rounds[0];
  std::memcpy(all, key, bytes);
  uint8_t round = 1;
  for (size_t i = words; i < 4 * (static_cast<size_t>(made.count) + 1); ++i) {
    uint8_t t[kTogether] = {};
    std::memcpy(t, all + 4 * (i - 1), 4);
    if (i % words == 0) {
      std::rotate(t, t + 1, t + 4);
      substitute(t);
      t[0] ^= round;
      round = doubled(round);
    } else if (words > 6 && i % words == 4) {
      substitute(t);
    }
    for (int k = 0; k < 4; ++k) all[4 * i + k] = all[4 * (i - words) + k] ^ t[k];
  }
  return made;
}

const GcmFunctions kPortableGcm = {stream, hash};

#if !defined(__x86_64__)
const GcmFunctions* native_gcm() { return nullptr; }
#endif

}  // namespace mycelia::lite
