// Small pieces of gRPC over HTTP/2: statuses, times, texts. Source: "gRPC over HTTP2" of the gRPC project.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mycelia::serving::grpc {

enum Status : int {
  kOk = 0,
  kCancelled = 1,
  kDeadlineExceeded = 4,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};
enum Encoding : int { kIdentity = 0, kGzip = 1, kDeflate = 2, kUnknownEncoding = -1 };

constexpr size_t kPrefix = 5;           // of a message: a byte "compressed", a big-endian size
constexpr size_t kLongestText = 4096;   // of an encoded grpc-message: clients refuse headers above 8 KB
constexpr double kForever = 1e18;       // seconds

uint32_t size_of(const uint8_t* prefix);
void put_prefix(char* to, size_t size);

// "250m" -> 0.25; negative: not a time.
double seconds(std::string_view text);

// Text of a status as a header: what is not printable ASCII, and %, as %XX.
std::string percent_encoded(std::string_view text);

bool is_grpc(std::string_view content_type);
Encoding encoding(std::string_view name);

}  // namespace mycelia::serving::grpc
