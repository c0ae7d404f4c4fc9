// CRC-32C of pieces of a buffer.
#include "mycelia/crc32c.h"

#include "data.h"

namespace mycelia::data {

void crc32c(const uint8_t* data, const int64_t* begins, const int64_t* sizes, size_t count, bool tables, uint32_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = mycelia::crc32c(data + begins[i], static_cast<size_t>(sizes[i]), tables);
}

}  // namespace mycelia::data
