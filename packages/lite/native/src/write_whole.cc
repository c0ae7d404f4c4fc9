// Files that are there whole or not at all, whenever the process or the machine stops.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "model_bytes.h"
#include "training.h"

namespace mycelia::lite {

namespace {

Status failed(const char* what, const std::string& path) { return {kError, message({what, " '", path, "': ", std::strerror(errno)})}; }

bool write_all(int file, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

Status write_whole(const std::string& path, const std::string& bytes) {
  static std::atomic<unsigned> count{0};
  const std::string part = message({path, ".", ::getpid(), "-", count++, ".part"});
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return failed("cannot write", path);
  // On the disk before it has its name: else a machine that stops may leave the name of an empty file.
  bool fine = write_all(file, bytes) && ::fsync(file) == 0;
  fine = ::close(file) == 0 && fine;
  if (!fine || std::rename(part.c_str(), path.c_str()) != 0) {
    const Status status = failed("cannot write", path);
    ::unlink(part.c_str());
    return status;
  }
  const std::string folder = folder_of(path);
  const int directory = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
  return {};
}

}  // namespace mycelia::lite
