// What the HTTP/2 library calls. C frames lie between these and the server: no exception may pass.
#pragma once
#include "http2.h"

namespace mycelia::serving {

class Server;
struct Call;

struct Callbacks {
  static void install(const http2::Library& library, http2::Callbacks* callbacks);
  static int on_begin_headers(http2::Session* session, const http2::Frame* frame, void* user);
  static int on_header(http2::Session* session, const http2::Frame* frame, const uint8_t* name_data, size_t name_size,
                       const uint8_t* value_data, size_t value_size, uint8_t, void* user);
  static int on_data_chunk(http2::Session* session, uint8_t, int32_t stream, const uint8_t* data, size_t size, void* user);
  static int on_frame_recv(http2::Session* session, const http2::Frame* frame, void* user);
  static int on_frame_send(http2::Session* session, const http2::Frame* frame, void* user);
  static int on_stream_close(http2::Session* session, int32_t stream, uint32_t, void* user);
  static ssize_t read(http2::Session* session, int32_t stream, uint8_t* buffer, size_t size, uint32_t* flags,
                      http2::DataSource* source, void* user);

 private:
  static Call* call_of(Server* s, http2::Session* session, int32_t stream);
};

}  // namespace mycelia::serving
