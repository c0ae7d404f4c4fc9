// Pixels as PNG.
#include <array>

#include "data.h"

namespace mycelia::data {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 4>;

// CRC-32 of ISO 3309, which PNG takes: tables[k][b] is what a byte b leads to from state 0 when k zero bytes follow it.
constexpr Tables tables_of() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t state = b;
    for (int bit = 0; bit < 8; ++bit) state = (state & 1) ? (state >> 1) ^ 0xEDB88320 : state >> 1;
    tables[0][b] = state;
  }
  for (size_t k = 1; k < tables.size(); ++k)
    for (uint32_t b = 0; b < 256; ++b) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xFF];
  return tables;
}
constexpr Tables kTables = tables_of();

uint32_t crc32(const char* begin, size_t size) {
  const uint8_t* p = reinterpret_cast<const uint8_t*>(begin);
  uint32_t crc = 0xFFFFFFFF;
  for (; size >= 4; p += 4, size -= 4) {
    crc ^= p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
    crc = kTables[3][crc & 0xFF] ^ kTables[2][crc >> 8 & 0xFF] ^ kTables[1][crc >> 16 & 0xFF] ^ kTables[0][crc >> 24];
  }
  for (; size; --size) crc = kTables[0][(crc ^ *p++) & 0xFF] ^ crc >> 8;
  return ~crc;
}

void put_big(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

// A chunk: the size of its data, kind and data, their checksum.
template <class Body>
void put_chunk(const char* kind, Body&& body, std::string* out) {
  const size_t begin = out->size();
  put_big(0, out);
  out->append(kind, 4);
  body();
  const size_t size = out->size() - begin - 8;
  for (size_t i = 0; i < 4; ++i) (*out)[begin + i] = static_cast<char>(size >> (24 - 8 * i));
  put_big(crc32(out->data() + begin + 4, size + 4), out);
}

}  // namespace

void put_png(uint8_t* rows_of_bytes, size_t rows, size_t columns, size_t channels, std::string* out) {
  const size_t width = columns * channels, stride = 1 + width;
  // Colours are stored as differences from the pixel to the left, which are smaller; grey ones, digits and masks mostly, have longer
  // runs as they are.
  for (size_t y = 0; y < rows; ++y) {
    uint8_t* row = rows_of_bytes + y * stride;
    *row++ = channels > 1 ? 1 : 0;
    if (channels == 1) continue;
    for (size_t x = width; x-- > channels;) row[x] = static_cast<uint8_t>(row[x] - row[x - channels]);
  }
  out->append("\x89PNG\r\n\x1a\n", 8);
  put_chunk("IHDR", [&] {
    put_big(static_cast<uint32_t>(columns), out), put_big(static_cast<uint32_t>(rows), out);
    out->append(channels == 3 ? std::string("\x8\x2\0\0\0", 5) : std::string("\x8\0\0\0\0", 5));  // bits, RGB or grey
  }, out);
  put_chunk("IDAT", [&] { put_deflated(rows_of_bytes, rows * stride, out); }, out);
  put_chunk("IEND", [] {}, out);
}

}  // namespace mycelia::data
