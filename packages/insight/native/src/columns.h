// What the values of a run's event files are, column by column, in a folder of its own: blocks in one file that only grows, and
// a manifest that says which of them count. The manifest is replaced as a whole, so that whatever stops the process leaves
// the columns of the last commit; the event files are read on from the place that it names.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "events.h"
#include "records.h"

namespace mycelia::insight {

// Points of one tag, one behind the other as the files had them.
struct Block {
  int64_t offset;  // in the file of blocks
  int32_t count, file;
  uint32_t checksum;
  bool checked;  // since the file was opened
  int64_t least_step, most_step;
  double least_time, most_time;
};

// Where the message of a value lies that is no scalar.
struct Place {
  int64_t offset;
  int32_t size, extra;  // extra: width << 16 | height of an image, each 65535 at most
};

struct Tail {
  int32_t file = -1;
  std::vector<int64_t> steps;
  std::vector<double> times;
  std::vector<float> values;  // of scalars
  std::vector<Place> places;  // of others
};

// The steps of a tag's first and last point in a file. A file that begins at a step that the one before it has reached writes
// the points from there on again.
struct Part {
  int32_t file;
  int64_t first, last;
};

struct Column {
  Kind kind;
  std::string tag, plugin;
  std::vector<Block> blocks;  // by their files, which may grow at the same time
  Tail tail;
  int64_t count = 0;
  std::vector<Part> parts;  // by their files
};

struct Source {
  std::string path;
  int64_t device, inode, offset;  // offset: read up to here
  Dialect dialect;
  int64_t broken;
  std::vector<Broken> first_broken;  // the first few
  uint32_t mark;  // of bytes at the begin and before `offset`: the file is still the same
};

// A point that is drawn.
struct Point {
  int64_t step;
  double time;
  float value, smoothed;
};

struct Summary {
  Kind kind;
  std::string tag;
  int64_t count, first_step, last_step;
  double first_time, last_time;
  float last_value;
};

enum class Axis { kStep, kTime };

// The file of blocks is not what was written: the index is to be begun anew.
struct Damaged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Index {
 public:
  // Opens what the folder holds; what is damaged or of another version is begun anew. Throws std::system_error: EWOULDBLOCK if
  // another index has the folder open, here or in another process (where the file system knows of locks).
  explicit Index(std::string folder);
  ~Index();

  struct Scan {
    bool done, replaced;  // done: nothing is left to read now; replaced: the file is another one, begin anew
    int64_t offset, read;
  };
  // Reads on in a file, at most about `limit` bytes. Files are to be scanned in the order of their times.
  Scan scan(const std::string& path, int64_t limit);
  void commit();
  void clear();

  std::vector<Source> sources();
  std::vector<Summary> summaries();
  // Points with low <= x <= high; of each of `columns` equal parts of that range the first, the last, the least, the
  // greatest and all that are not finite; all points if columns is 0. `weight` of what came before, 0..1, smooths all
  // points from the first one on: exponential moving average, its begin corrected; what is not finite is passed over.
  // False: there is no such tag.
  bool points(const std::string& tag, Axis axis, double low, double high, int64_t columns, double weight, std::vector<Point>* out);
  // Of the points of a tag as they are stored, those from the place `from` on, `count` of them; those that a later file
  // wrote again are left out. `rest`: how many are stored behind. False: there is no such tag.
  bool stored(const std::string& tag, int64_t from, int64_t count, std::vector<Point>* out, int64_t* rest);
  struct Entry {
    int64_t step;
    double time;
    int32_t file;
    Place place;
  };
  bool entries(Kind kind, const std::string& tag, std::vector<Entry>* out);

 private:
  struct Mapping;

  Column* find(Kind kind, std::string_view tag);
  Column& made(Kind kind, std::string_view tag);
  void add(int32_t file, const Found& found, int64_t offset, const char* base);
  void seal(Column& column);
  const char* mapped(const Column& column, Block& block);
  bool load();
  int32_t source_of(const std::string& path, int64_t device, int64_t inode);
  template <class Of>
  static void each_piece(Column& column, const Of& of);
  template <class Each>
  void each_point(Column& column, Axis axis, double low, double high, const Each& each);

  std::string folder_;
  std::mutex guard_;
  int file_ = -1;  // of blocks
  int64_t size_ = 0;
  std::vector<Source> sources_;
  std::vector<std::unique_ptr<Column>> columns_;
  std::unordered_map<std::string_view, Column*> by_tag_[kKinds];
  std::unique_ptr<Mapping> mapping_;
};

}  // namespace mycelia::insight
