#include "sealed.h"

#include <cstring>
#include <vector>

#include "gcm.h"

namespace mycelia::lite {

namespace {

constexpr size_t kIvBytes = 16;  // the nonce and 4 bytes that are not used
constexpr size_t kHead = 4 + kTagBytes + 4 + 4 + kIvBytes + 4;

struct Block {
  const uint8_t *tag, *nonce, *text;
  size_t size;
};

uint32_t number(const uint8_t* at) { return at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24; }

// Magic, tag, bytes that follow, bytes of the iv, iv, bytes of the text, text; numbers little endian.
Status read_block(const uint8_t* data, size_t size, size_t at, Block* block) {
  const std::string place = "the encryption block at byte " + std::to_string(at);
  if (size - at < kHead) return {kGraphInvalid, place + " is cut off"};
  const uint8_t* head = data + at;
  if (number(head) != kSealedMagic) return {kGraphInvalid, "the model is not encrypted with AES-GCM, or damaged at byte " + std::to_string(at)};
  const uint8_t* after_tag = head + 4 + kTagBytes;
  const uint64_t rest = number(after_tag), iv = number(after_tag + 4), text = number(after_tag + 8 + kIvBytes);
  if (iv != kIvBytes || rest != iv + text + 8 || text > size - at - kHead) return {kGraphInvalid, place + " is damaged or cut off"};
  *block = {head + 4, after_tag + 8, head + kHead, static_cast<size_t>(text)};
  return {};
}

}  // namespace

Status check_key(const void* key, size_t key_bytes) {
  if (!key) return {kNullPointer, "the key is NULL"};
  if (key_bytes != 16 && key_bytes != 24 && key_bytes != 32)
    return {kParameterInvalid, "the key must have 16, 24 or 32 bytes, but has " + std::to_string(key_bytes)};
  return {};
}

Status open_sealed(const uint8_t* data, size_t size, const void* key, size_t key_bytes, const std::string& mode, Memory* plain, size_t* plain_size) {
  if (mode != "AES-GCM") return {kNotSupported, "models can be decrypted with AES-GCM, but not with " + mode};
  if (Status status = check_key(key, key_bytes); !status) return status;
  std::vector<Block> blocks;
  size_t total = 0;
  for (size_t at = 0; at < size;) {
    Block block{};
    if (Status status = read_block(data, size, at, &block); !status) return status;
    blocks.push_back(block);
    total += block.size;
    at += kHead + block.size;
  }
  Memory made(total);
  if (!made.data()) return {kMemory, "no memory for the model's " + std::to_string(total) + " bytes"};
  const Gcm gcm(static_cast<const uint8_t*>(key), key_bytes);
  uint8_t* out = made.data();
  for (const Block& block : blocks) {
    std::memcpy(out, block.text, block.size);
    if (!gcm.open(block.nonce, out, block.size, block.tag)) return {kGraphInvalid, "decryption failed: the key is wrong, or the model was changed"};
    out += block.size;
  }
  *plain = std::move(made);
  *plain_size = total;
  return {};
}

}  // namespace mycelia::lite
