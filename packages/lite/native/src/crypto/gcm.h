// AES in Galois/counter mode (FIPS 197, NIST SP 800-38D), in time that depends on sizes alone: no table is read at a place that
// data or key decide. With the instructions of the processor where it has them.
#ifndef MYCELIA_LITE_CRYPTO_GCM_H_
#define MYCELIA_LITE_CRYPTO_GCM_H_

#include <cstddef>
#include <cstdint>

namespace mycelia::lite {

constexpr size_t kNonceBytes = 12, kTagBytes = 16, kAesBlock = 16;

struct AesKey {
  uint8_t rounds[15][kAesBlock];
  int count;  // of rounds: 10, 12 or 14
};

// `bytes`: 16, 24 or 32.
AesKey expand_key(const uint8_t* key, size_t bytes);

// What a processor does by itself or portable code does.
struct GcmFunctions {
  // data ^= key stream that begins with `counter`, whose last 4 bytes count on.
  void (*stream)(const AesKey& key, const uint8_t counter[kAesBlock], uint8_t* data, size_t size);
  // sum = (sum ^ block) * h for each block of `data`, the last one filled with zeros.
  void (*hash)(const uint8_t h[kAesBlock], const uint8_t* data, size_t size, uint8_t sum[kAesBlock]);
};
extern const GcmFunctions kPortableGcm;
// Null where the processor has no instructions for it.
const GcmFunctions* native_gcm();

class Gcm {
 public:
  Gcm(const uint8_t* key, size_t bytes) : Gcm(key, bytes, native_gcm() ? *native_gcm() : kPortableGcm) {}
  Gcm(const uint8_t* key, size_t bytes, const GcmFunctions& functions);
  ~Gcm();
  // In place.
  void seal(const uint8_t nonce[kNonceBytes], uint8_t* data, size_t size, uint8_t tag[kTagBytes]) const;
  // In place; false, and the data as it was, if the tag is another one.
  bool open(const uint8_t nonce[kNonceBytes], uint8_t* data, size_t size, const uint8_t tag[kTagBytes]) const;

 private:
  void tag_of(const uint8_t nonce[kNonceBytes], const uint8_t* text, size_t size, uint8_t tag[kTagBytes]) const;
  void stream(const uint8_t nonce[kNonceBytes], uint8_t* data, size_t size) const;

  AesKey key_;
  uint8_t h_[kAesBlock] = {};
  const GcmFunctions& functions_;
};

}  // namespace mycelia::lite

#endif
