#include "grpc.h"

namespace mycelia::serving::grpc {

uint32_t size_of(const uint8_t* p) {
  return uint32_t{p[1]} << 24 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 8 | uint32_t{p[4]};
}

void put_prefix(char* to, size_t size) {
  to[0] = 0;
  for (int i = 0; i < 4; ++i) to[1 + i] = static_cast<char>(size >> (24 - 8 * i));
}

double seconds(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return -1;  // at most eight digits and a unit
  double value = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  switch (text.back()) {
    case 'H': return value * 3600;
    case 'M': return value * 60;
    case 'S': return value;
    case 'm': return value * 1e-3;
    case 'u': return value * 1e-6;
    case 'n': return value * 1e-9;
    default: return -1;
  }
}

std::string percent_encoded(std::string_view text) {
  static const char digits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (out.size() + 3 > kLongestText) break;
    const uint8_t byte = static_cast<uint8_t>(c);
    if (byte >= 0x20 && byte <= 0x7E && c != '%') {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

bool is_grpc(std::string_view type) {
  constexpr std::string_view name = "application/grpc";
  return type.substr(0, name.size()) == name &&
         (type.size() == name.size() || type[name.size()] == '+' || type[name.size()] == ';');
}

Encoding encoding(std::string_view name) {
  if (name == "identity") return kIdentity;
  if (name == "gzip") return kGzip;
  if (name == "deflate") return kDeflate;
  return kUnknownEncoding;
}

}  // namespace mycelia::serving::grpc
