// Encrypted models: the blocks that MindSpore writes, each at most 64 MiB of plain data.
#ifndef MYCELIA_LITE_CRYPTO_SEALED_H_
#define MYCELIA_LITE_CRYPTO_SEALED_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "../memory.h"
#include "../status.h"

namespace mycelia::lite {

// What a block begins with, little endian.
constexpr uint32_t kSealedMagic = 0x7F3A5ED8;

// The plain model; `key` has 16, 24 or 32 bytes. Fails for a wrong key and for data that were changed: then nothing is given.
Status open_sealed(const uint8_t* data, size_t size, const void* key, size_t key_bytes, const std::string& mode, Memory* plain, size_t* plain_size);

Status check_key(const void* key, size_t key_bytes);

}  // namespace mycelia::lite

#endif
