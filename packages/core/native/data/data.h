// mycelia.engine._data: image transforms of the dataset pipeline on 8-bit pixels, checksums and pieces of its files,
// histograms of what a training records. No Python in here but in *module.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mycelia::data {

struct Box {
  int top, left, rows, columns;
};

// Where 8-bit pixels [rows, columns, channels] come from. Rows are asked for in rising order, the same one perhaps again.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual const uint8_t* row(int y) = 0;  // nullptr: the source cannot give it
};

class ArrayRows final : public Rows {
 public:
  ArrayRows(const uint8_t* first, ptrdiff_t stride) : first_(first), stride_(stride) {}
  const uint8_t* row(int y) override { return first_ + y * stride_; }

 private:
  const uint8_t* first_;
  ptrdiff_t stride_;
};

// Where finished rows go: mirrored, looked up in a table [channels, 256] of `item` bytes each (item 0: no table), channels
// last or first.
struct Sink {
  int rows, columns, channels;
  bool flip_x, flip_y, planar;
  int item;
  const void* table;
  void* out;

  void put(int y, const uint8_t* pixels) const;
};

enum class Mode { kNearest = 0, kAntialias = 1, kLinear = 2, kCubic = 3, kArea = 4 };

// The part `window` of the image of `size` rows and columns that `box` of a source becomes. `need` is the part of the source
// that this takes; `run` fetches its rows, counted from need.top, their first pixel at need.left.
class Resize {
 public:
  Resize(const Box& box, int rows, int columns, Mode mode, const Box& window, int channels);
  ~Resize();
  Box need() const { return need_; }
  bool run(Rows& source, const Sink& sink) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
  Box need_;
};

bool copy_rows(Rows& source, const Sink& sink);

// JPEG. `jpeg_load` takes the path of a libjpeg of binary interface 62 and returns why it cannot be used, or "".
std::string jpeg_load(const char* path);
bool jpeg_ready();

struct JpegHeader {
  int rows, columns, components;
  bool ends;  // the last two bytes are the end marker: nothing is cut off
};
bool jpeg_header(const uint8_t* data, size_t size, JpegHeader* header);  // false: nothing that `jpeg_open` takes

// The part `need` of an image as RGB. nullptr when the data is damaged.
std::unique_ptr<Rows> jpeg_open(const uint8_t* data, size_t size, const Box& need);

// CRC-32C of the pieces of `data` that begin at `begins`; `tables`: without the machine's own instruction.
void crc32c(const uint8_t* data, const int64_t* begins, const int64_t* sizes, size_t count, bool tables, uint32_t* out);

// Pieces of an open file, one behind the other in `out`: how many are whole (fewer where the file ends), or errno.
struct ReadResult {
  size_t whole;
  int error;
};
ReadResult read_pieces(int fd, const int64_t* begins, const int64_t* sizes, size_t count, uint8_t* out);

// What there is in an array: finite values, their least and greatest and their sum, 0 without any, and the others.
struct Extent {
  size_t finite = 0, nan = 0, positive = 0, negative = 0;
  double low = 0, high = 0, sum = 0;
};
template <class T>
Extent extent(const T* values, size_t n);

// How many values lie in each of `count` buckets between rising edges [count + 1], the last with its right one, as the
// fields 1 (left 1, width 2, count 3) of a message.
template <class T>
std::string buckets(const T* values, size_t n, const T* edges, size_t count);

}  // namespace mycelia::data
