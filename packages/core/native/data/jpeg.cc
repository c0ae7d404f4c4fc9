// JPEG through a libjpeg-turbo that is loaded at run time: the one that Pillow brings, or the system's.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#if !defined(_WIN32)
#include <dlfcn.h>
#endif

#include "data.h"
#include "jpeg_abi.h"

namespace mycelia::data {
namespace {

using jpeg::Decompress;

struct Library {
  jpeg::ErrorManager* (*std_error)(jpeg::ErrorManager*);
  void (*create)(Decompress*, int version, size_t size);
  int (*read_header)(Decompress*, int need_image);
  int (*start)(Decompress*);
  void (*crop)(Decompress*, unsigned* left, unsigned* columns);
  unsigned (*skip)(Decompress*, unsigned count);
  unsigned (*read)(Decompress*, uint8_t** rows, unsigned count);
  void (*destroy)(Decompress*);
  int (*resync)(Decompress*, int desired);
};
Library library;
bool loaded = false;

// One image being decoded. libjpeg reports errors by a function that must not return: it jumps back here.
struct Session {
  Decompress info;
  jpeg::ErrorManager errors;
  jpeg::Source source;
  std::jmp_buf escape;
  bool ended;    // the data ran out
  bool damaged;  // and pixels were missing
};

Session* session_of(Decompress* info) { return static_cast<Session*>(info->client_data); }

void on_error(Decompress* info) { std::longjmp(session_of(info)->escape, 1); }

void on_message(Decompress* info, int level) {
  if (level >= 0) return;
  const jpeg::ErrorManager& errors = *info->err;
  const int code = errors.msg_code;
  const char* text = code >= 0 && code <= errors.last_message ? errors.message_table[code] : nullptr;
  // A missing end marker is no harm, missing pixels are; wrong ones in between are taken as they come.
  Session* s = session_of(info);
  if (s->ended && text && std::strstr(text, "premature end of data")) s->damaged = true;
}

void silent(Decompress*) {}

int on_empty(Decompress* info) {
  static const uint8_t end[2] = {0xFF, 0xD9};
  session_of(info)->ended = true;
  info->src->next_input_byte = end;
  info->src->bytes_in_buffer = 2;
  return 1;
}

void on_skip(Decompress* info, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > info->src->bytes_in_buffer) {
    on_empty(info);
    return;
  }
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= count;
}

bool begin(Session* s, const uint8_t* data, size_t size) {
  std::memset(s, 0, sizeof *s);
  s->info.err = library.std_error(&s->errors);
  s->errors.error_exit = on_error;
  s->errors.emit_message = on_message;
  s->errors.output_message = silent;
  s->info.client_data = s;
  s->source = {data, size, silent, on_empty, on_skip, library.resync, silent};
  if (setjmp(s->escape)) return false;
  library.create(&s->info, jpeg::kVersion, sizeof(Decompress));  // keeps err and client_data, clears the rest
  s->info.src = &s->source;
  return true;
}

// Upsampling looks at the neighbours of a pixel, and libjpeg takes the border of the part for the border of the image.
constexpr int kMargin = 8;

class JpegRows final : public Rows {
 public:
  explicit JpegRows(const Box& need) : need_(need) {}
  ~JpegRows() override {
    if (begun_) library.destroy(&session_.info);
  }

  bool open(const uint8_t* data, size_t size) {
    if (!(begun_ = begin(&session_, data, size))) return false;
    Decompress* info = &session_.info;
    if (setjmp(session_.escape)) return false;
    if (library.read_header(info, 1) != jpeg::kHeaderOk) return false;
    info->out_color_space = jpeg::kRgb;
    if (!library.start(info) || session_.damaged || info->output_components != 3) return false;
    const int columns = info->output_width, rows = info->output_height;
    if (need_.top < 0 || need_.left < 0 || need_.top + need_.rows > rows || need_.left + need_.columns > columns) return false;
    unsigned left = need_.left > kMargin ? need_.left - kMargin : 0;
    const int right = need_.left + need_.columns + kMargin;
    unsigned width = (right < columns ? right : columns) - left;
    if (width < static_cast<unsigned>(columns)) library.crop(info, &left, &width);
    offset_ = (need_.left - static_cast<int>(left)) * 3;
    // At an aligned address libjpeg would write past the cache, and reading the line again would wait for memory.
    buffer_.reset(new uint8_t[static_cast<size_t>(info->output_width) * 3 + 64]);
    line_ = buffer_.get() + 40 - reinterpret_cast<uintptr_t>(buffer_.get()) % 32;
    const int first = need_.top - kMargin;
    if (first > 0) library.skip(info, first);
    return !session_.damaged;
  }

  const uint8_t* row(int y) override {
    const unsigned wanted = need_.top + y;
    Decompress* info = &session_.info;
    if (setjmp(session_.escape)) return nullptr;
    while (info->output_scanline <= wanted)
      if (library.read(info, &line_, 1) != 1) return nullptr;
    return session_.damaged ? nullptr : line_ + offset_;
  }

 private:
  Box need_;
  Session session_;
  bool begun_ = false;
  int offset_ = 0;
  std::unique_ptr<uint8_t[]> buffer_;
  uint8_t* line_ = nullptr;
};

int be16(const uint8_t* p) { return p[0] << 8 | p[1]; }

}  // namespace

bool jpeg_ready() { return loaded; }

std::string jpeg_load(const char* path) {
#if defined(_WIN32)
  (void)path;
  return "libraries are not loaded on this system";
#else
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return why ? why : "it cannot be loaded";
  }
  Library found;
  struct {
    const char* name;
    void** slot;
  } const wanted[] = {
      {"jpeg_std_error", reinterpret_cast<void**>(&found.std_error)},
      {"jpeg_CreateDecompress", reinterpret_cast<void**>(&found.create)},
      {"jpeg_read_header", reinterpret_cast<void**>(&found.read_header)},
      {"jpeg_start_decompress", reinterpret_cast<void**>(&found.start)},
      {"jpeg_crop_scanline", reinterpret_cast<void**>(&found.crop)},
      {"jpeg_skip_scanlines", reinterpret_cast<void**>(&found.skip)},
      {"jpeg_read_scanlines", reinterpret_cast<void**>(&found.read)},
      {"jpeg_destroy_decompress", reinterpret_cast<void**>(&found.destroy)},
      {"jpeg_resync_to_restart", reinterpret_cast<void**>(&found.resync)},
  };
  for (const auto& symbol : wanted) {
    if ((*symbol.slot = dlsym(handle, symbol.name))) continue;
    dlclose(handle);
    return std::string("it has no function ") + symbol.name;
  }
  if (loaded) return "";  // the first one stays: images may be open with it
  library = found;
  std::unique_ptr<Session> s(new Session);
  static const uint8_t nothing[2] = {0xFF, 0xD9};
  if (!begin(s.get(), nothing, sizeof nothing)) {
    char text[96];
    std::snprintf(text, sizeof text, "its interface is not version %d (it says %d)", jpeg::kVersion, s->errors.msg_parm.i[0]);
    dlclose(handle);
    return text;
  }
  library.destroy(&s->info);
  loaded = true;
  return "";
#endif
}

bool jpeg_header(const uint8_t* data, size_t size, JpegHeader* header) {
  if (size < 4 || data[0] != 0xFF || data[1] != 0xD8) return false;
  size_t at = 2;
  while (at + 4 <= size) {
    if (data[at] != 0xFF) return false;
    const int marker = data[at + 1];
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const int length = be16(data + at + 2);
    if (length < 2) return false;
    if (marker >= 0xC0 && marker <= 0xC2) {  // baseline, extended and progressive, with Huffman codes
      if (length < 8 || at + 2 + length > size || data[at + 4] != 8) return false;
      const int rows = be16(data + at + 5), columns = be16(data + at + 7), components = data[at + 9];
      if (!rows || !columns || (components != 1 && components != 3)) return false;
      *header = {rows, columns, components, data[size - 2] == 0xFF && data[size - 1] == 0xD9};
      return true;
    }
    const bool other_frame = marker >= 0xC3 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (other_frame || marker == 0xDA || marker == 0xD9 || marker == 0xD8 || marker < 0xC0 ||
        (marker >= 0xD0 && marker <= 0xD7))
      return false;
    at += 2 + length;
  }
  return false;
}

std::unique_ptr<Rows> jpeg_open(const uint8_t* data, size_t size, const Box& need) {
  if (!loaded) return nullptr;
  std::unique_ptr<JpegRows> rows(new JpegRows(need));
  if (!rows->open(data, size)) return nullptr;
  return rows;
}

}  // namespace mycelia::data
