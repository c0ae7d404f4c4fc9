// A folder that files of a data dump are made in, each whole or not at all; large ones go past the page cache.
#pragma once
#include <sys/uio.h>

#include <chrono>
#include <cstddef>

namespace mycelia {

// What a file holds: its head, then its body.
struct FileContent {
  const void* head;
  size_t head_bytes;
  const void* body;
  size_t body_bytes;
};

// One thread at a time uses it; made and destroyed with the interpreter's lock.
class DumpFolder {
 public:
  DumpFolder();
  ~DumpFolder();
  DumpFolder(const DumpFolder&) = delete;
  DumpFolder& operator=(const DumpFolder&) = delete;

  // These return 0 or an errno.
  int open(const char* path);
  int make(const char* name, const FileContent& content);  // in place of any of this name; what fails leaves no such file
  int link(const char* known, const char* name);           // likewise in place of any of this name
  bool is_open() const { return folder_ >= 0; }

  // Whether file systems that have no links, or not so many, say so like this.
  static bool means_no_links(int error);

 private:
  bool goes_direct(int file, size_t bytes);
  int write_direct(int file, const iovec (&parts)[2], size_t* done);

  int folder_ = -1;
  char* buffer_ = nullptr;  // what is written past the page cache is put together here
  long block_ = -1;         // bytes that such writes are multiples of; 0: there are none, -1: not known yet
  size_t direct_bytes_ = 0;
  std::chrono::steady_clock::duration direct_time_ = {};
};

}  // namespace mycelia
