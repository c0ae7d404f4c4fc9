// The part of libnghttp2's binary interface (soname libnghttp2.so.14, stable since 1.0) that a server needs, written
// from its documentation: nothing has to be installed to build, nothing is linked. The library frames, compresses
// headers and keeps the rules of HTTP/2; it does no input or output of its own.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mycelia::serving::http2 {

struct Session;    // opaque
struct Callbacks;  // opaque
struct Option;     // opaque

struct FrameHead {
  size_t length;
  int32_t stream_id;
  uint8_t type, flags, reserved;
};
struct Frame {  // every frame of the library's union begins with its head
  FrameHead head;
};
struct Header {
  uint8_t *name, *value;
  size_t name_size, value_size;
  uint8_t flags;
};
struct Setting {
  int32_t id;
  uint32_t value;
};
union DataSource {
  int fd;
  void* ptr;
};
struct DataProvider {
  DataSource source;
  ssize_t (*read)(Session*, int32_t stream, uint8_t* buffer, size_t size, uint32_t* flags, DataSource*, void* user);
};

enum FrameType : uint8_t { kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kSettings = 4, kPing = 6 };
enum FrameFlag : uint8_t { kEndStream = 1, kAck = 1 };
enum SettingId : int32_t { kMaxStreams = 3, kInitialWindow = 4, kMaxFrame = 5, kMaxHeaderList = 6 };
enum ErrorCode : uint32_t { kNoError = 0, kInternalError = 2, kCancel = 8, kEnhanceYourCalm = 11 };
enum HeaderFlag : uint8_t { kNoCopyName = 2, kNoCopyValue = 4 };
constexpr uint32_t kDataEnd = 1, kDataNoEndStream = 2;
constexpr int kDeferred = -508, kCallbackFailure = -902;

struct Library {
  int (*callbacks_new)(Callbacks**);
  void (*callbacks_del)(Callbacks*);
  void (*set_on_begin_headers)(Callbacks*, int (*)(Session*, const Frame*, void*));
  void (*set_on_header)(Callbacks*, int (*)(Session*, const Frame*, const uint8_t* name, size_t, const uint8_t* value, size_t,
                                            uint8_t flags, void*));
  void (*set_on_data_chunk)(Callbacks*, int (*)(Session*, uint8_t flags, int32_t stream, const uint8_t*, size_t, void*));
  void (*set_on_frame_recv)(Callbacks*, int (*)(Session*, const Frame*, void*));
  void (*set_on_frame_send)(Callbacks*, int (*)(Session*, const Frame*, void*));
  void (*set_on_stream_close)(Callbacks*, int (*)(Session*, int32_t stream, uint32_t error, void*));
  int (*option_new)(Option**);
  void (*option_del)(Option*);
  void (*option_no_closed_streams)(Option*, int);
  int (*server_new)(Session**, const Callbacks*, void* user, const Option*);
  void (*session_del)(Session*);
  ssize_t (*receive)(Session*, const uint8_t*, size_t);
  ssize_t (*send)(Session*, const uint8_t**);
  int (*want_read)(Session*);
  int (*want_write)(Session*);
  int (*submit_settings)(Session*, uint8_t flags, const Setting*, size_t);
  int (*set_local_window)(Session*, uint8_t flags, int32_t stream, int32_t size);
  int (*submit_response)(Session*, int32_t stream, const Header*, size_t, const DataProvider*);
  int (*submit_trailer)(Session*, int32_t stream, const Header*, size_t);
  int (*submit_reset)(Session*, uint8_t flags, int32_t stream, uint32_t error);
  int (*submit_goaway)(Session*, uint8_t flags, int32_t last, uint32_t error, const uint8_t*, size_t);
  int (*terminate)(Session*, uint32_t error);
  int32_t (*last_stream)(Session*);
  int (*resume_data)(Session*, int32_t stream);
  void* (*stream_data)(Session*, int32_t stream);
  int (*set_stream_data)(Session*, int32_t stream, void*);
};

// Loads a library by path or name, once a process; empty, or why it does not serve.
std::string load(const char* path, Library* library);

inline Header header(std::string_view name, std::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())), reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())),
          name.size(), value.size(), 0};
}

}  // namespace mycelia::serving::http2
