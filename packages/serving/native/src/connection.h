// A connection of the gRPC server and its calls. They belong to who holds the server's `state_`; see server.h.
#pragma once
#include <algorithm>
#include <string>

#include "server.h"

namespace mycelia::serving {

// One HTTP/2 stream.
struct Call {
  Connection* connection;
  Call *before = nullptr, *after = nullptr;  // of the connection's calls
  int32_t stream;
  uint64_t token = 0;  // 0: refused before it got one
  int method = -1;

  // what came
  std::string path, content_type;
  Metadata metadata;
  size_t header_bytes = 0, header_count = 0;
  bool post = false, too_many_headers = false, headers_done = false, bad_timeout = false;
  grpc::Encoding encoding = grpc::kIdentity;
  double timeout = -1, deadline = grpc::kForever;
  bool incomplete = true;  // the rest of headers or of a message is still to come
  double due = 0;    // of its stall timeout: more must have come, or been taken, by then
  size_t held = 0;   // bytes that are charged to the client
  uint8_t prefix[grpc::kPrefix];
  size_t prefix_size = 0, declared = 0;
  std::string body;
  bool whole = false;          // of a unary call: its message has come
  bool handed_over = false;    // the token is known outside
  bool remote_closed = false;

  // what goes
  std::string output;
  size_t sent = 0;
  bool headers_sent = false, ended = false, deferred = false;
  int status = 0;
  std::string text;
};

struct Connection {
  Server* server;
  int fd;
  http2::Session* session = nullptr;
  Call* calls = nullptr;
  size_t call_count = 0;
  Peer* peer = nullptr;
  Part open_calls, bytes;
  std::string output;
  size_t sent = 0;
  size_t index;  // in the server's list
  bool is_dirty = false, dead = false, writable_watched = false, has_settings = false, terminated = false, write_closed = false;
  double opened, idle_since, due;  // due: as that of a call, for its output
  double control_tokens, control_time;

  // Frames that cost an attacker little: true if there are too many.
  bool over_rate(double now, const Limits& limits) {
    control_tokens = std::min(limits.control_burst, control_tokens + (now - control_time) * limits.control_rate) - 1;
    control_time = now;
    return control_tokens < 0;
  }
};

}  // namespace mycelia::serving
