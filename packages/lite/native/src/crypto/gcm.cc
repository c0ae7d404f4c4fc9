#include "gcm.h"

#include <algorithm>
#include <cstring>

namespace mycelia::lite {

namespace {

// Overwrites what must not stay in memory; the compiler may not leave it out.
void wipe(void* data, size_t size) {
  volatile uint8_t* at = static_cast<volatile uint8_t*>(data);
  while (size--) *at++ = 0;
}

void put_big_endian(uint8_t* at, uint64_t number, int bytes) {
  for (int i = bytes - 1; i >= 0; --i, number >>= 8) at[i] = static_cast<uint8_t>(number);
}

}  // namespace

Gcm::Gcm(const uint8_t* key, size_t bytes, const GcmFunctions& functions) : key_(expand_key(key, bytes)), functions_(functions) {
  const uint8_t zero[kAesBlock] = {};
  functions_.stream(key_, zero, h_, kAesBlock);  // 0 ^ AES(0)
}

Gcm::~Gcm() {
  wipe(&key_, sizeof(key_));
  wipe(h_, sizeof(h_));
}

void Gcm::stream(const uint8_t nonce[kNonceBytes], uint8_t* data, size_t size) const {
  uint8_t counter[kAesBlock];
  std::memcpy(counter, nonce, kNonceBytes);
  put_big_endian(counter + kNonceBytes, 2, 4);  // 1 is of the tag
  functions_.stream(key_, counter, data, size);
}

void Gcm::tag_of(const uint8_t nonce[kNonceBytes], const uint8_t* text, size_t size, uint8_t tag[kTagBytes]) const {
  uint8_t sum[kAesBlock] = {}, sizes[kAesBlock] = {};
  functions_.hash(h_, text, size, sum);
  put_big_endian(sizes + 8, static_cast<uint64_t>(size) * 8, 8);  // there are no further data that are only authenticated
  functions_.hash(h_, sizes, kAesBlock, sum);
  uint8_t counter[kAesBlock];
  std::memcpy(counter, nonce, kNonceBytes);
  put_big_endian(counter + kNonceBytes, 1, 4);
  functions_.stream(key_, counter, sum, kAesBlock);
  std::memcpy(tag, sum, kTagBytes);
}

void Gcm::seal(const uint8_t nonce[kNonceBytes], uint8_t* data, size_t size, uint8_t tag[kTagBytes]) const {
  stream(nonce, data, size);
  tag_of(nonce, data, size, tag);
}

bool Gcm::open(const uint8_t nonce[kNonceBytes], uint8_t* data, size_t size, const uint8_t tag[kTagBytes]) const {
  uint8_t expected[kTagBytes];
  tag_of(nonce, data, size, expected);
  uint8_t differs = 0;
  for (size_t i = 0; i < kTagBytes; ++i) differs = static_cast<uint8_t>(differs | (expected[i] ^ tag[i]));
  if (differs) return false;
  stream(nonce, data, size);
  return true;
}

}  // namespace mycelia::lite
