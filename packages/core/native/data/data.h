// mycelia.engine._data: image transforms of the dataset pipeline on 8-bit pixels, checksums and pieces of its files,
// values of event files. No Python in here but in *module.cc.
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

// What a training records: the fields of Summary.Value that hold it, appended to `out`. A histogram has buckets of equal width over the
// finite values, whose edges have the dtype of the values, whole for integers, and the counts of what is not finite.
template <class T>
void put_histogram(const T* values, size_t n, std::string* out);

// Images [n, channels, rows, columns] side by side, `across` in a row of the grid, as one PNG, black where there is none. Floats
// within 0..1 become 0..255, others are spread over that range; bytes stay.
template <class T>
void put_images(const T* images, size_t n, size_t channels, size_t rows, size_t columns, size_t across, std::string* out);

// Rows of 1 + columns * channels bytes as PNG, grey or RGB; the first byte of each is the filter's, and rows are filtered in their place.
void put_png(uint8_t* rows_of_bytes, size_t rows, size_t columns, size_t channels, std::string* out);

// A zlib stream whose only matches repeat the byte before them.
void put_deflated(const uint8_t* data, size_t size, std::string* out);

}  // namespace mycelia::data
