#include "columns.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <system_error>

#include "mycelia/crc32c.h"
#include "pack.h"
#include "wire.h"

namespace mycelia::insight {
namespace {

constexpr int32_t kBlock = 16384;                 // points
constexpr size_t kMostInline = size_t{32} << 20;  // bytes of tails in the manifest
constexpr size_t kFirstBroken = 20;
constexpr char kMagic[] = "mycelia-insight-2";

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

bool is_scalar(Kind kind) { return kind == Kind::kScalar; }
size_t item_bytes(Kind kind) { return is_scalar(kind) ? 8 + 8 + 4 : 8 + 8 + sizeof(Place); }

void write_all(int descriptor, const char* data, size_t size, int64_t offset, const std::string& path) {
  while (size > 0) {
    const ssize_t put = pwrite(descriptor, data, size, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail(path);
    data += put, size -= static_cast<size_t>(put), offset += put;
  }
}

template <class T>
void append(std::vector<char>& to, const std::vector<T>& items) {
  const char* data = reinterpret_cast<const char*>(items.data());
  to.insert(to.end(), data, data + items.size() * sizeof(T));
}

// Width and height of an image, where the message begins with them: MindSpore and TensorBoard's old images have the
// height in field 1 and the width in field 2.
int32_t size_of_image(std::string_view payload);

}  // namespace

struct Index::Mapping {
  char* data = nullptr;
  size_t size = 0;
  ~Mapping() {
    if (data) munmap(data, size);
  }
};

Index::Index(std::string folder) : folder_(std::move(folder)), mapping_(new Mapping) {
  const std::string path = folder_ + "/blocks";
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) fail(path);
  if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(file_);
    throw std::system_error(EWOULDBLOCK, std::generic_category(), path + " is in use");
  }
  try {
    if (!load()) clear();
  } catch (...) {
    close(file_);
    throw;
  }
}

Index::~Index() {
  if (file_ >= 0) close(file_);
}

void Index::clear() {
  std::lock_guard<std::mutex> lock(guard_);
  sources_.clear(), columns_.clear();
  for (auto& by_tag : by_tag_) by_tag.clear();
  mapping_.reset(new Mapping);
  size_ = 0;
  if (unlink((folder_ + "/manifest").c_str()) != 0 && errno != ENOENT) fail(folder_ + "/manifest");
  if (ftruncate(file_, 0) != 0) fail(folder_ + "/blocks");
}

int32_t Index::source_of(const std::string& path, int64_t device, int64_t inode) {
  for (size_t i = 0; i < sources_.size(); ++i)
    if (sources_[i].path == path) return static_cast<int32_t>(i);
  sources_.push_back({path, device, inode, 0, Dialect::kUnknown, 0, {}, 0});
  return static_cast<int32_t>(sources_.size() - 1);
}

Index::Scan Index::scan(const std::string& path, int64_t limit) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0) fail(path);
  int32_t number;
  int64_t offset;
  uint32_t mark;
  Dialect dialect;
  {
    std::lock_guard<std::mutex> lock(guard_);
    number = source_of(path, static_cast<int64_t>(found.st_dev), static_cast<int64_t>(found.st_ino));
    const Source& source = sources_[number];
    offset = source.offset, dialect = source.dialect, mark = source.mark;
    if (source.inode != static_cast<int64_t>(found.st_ino) || source.device != static_cast<int64_t>(found.st_dev) ||
        found.st_size < offset)
      return {true, true, offset, 0};
  }
  const int64_t begin = offset;
  RecordFile file(path, offset);
  uint32_t here;
  if (offset > 0 && (!file.mark(offset, &here) || here != mark)) return {true, true, offset, 0};
  std::vector<Broken> broken;
  RecordFile::Next state = RecordFile::Next::kRecord;
  constexpr int64_t kAtOnce = int64_t{1} << 20;  // bytes between which others have their turn
  while (state == RecordFile::Next::kRecord && file.offset() - begin < limit) {
    std::lock_guard<std::mutex> lock(guard_);
    const int64_t from = file.offset();
    std::string_view message;
    const auto plugin_of = [&](std::string_view tag, std::string_view told) -> std::string_view {
      Column* known = find(Kind::kOther, tag);
      if (!known && told.empty()) return {};
      if (!known) known = &made(Kind::kOther, tag), known->plugin = told;
      return known->plugin;
    };
    while (file.offset() - from < kAtOnce && (state = file.next(&message, &broken)) == RecordFile::Next::kRecord) {
      const int64_t at = file.message_offset();
      const bool right = walk_event(message, &dialect, plugin_of, [&](const Found& f) { add(number, f, at, message.data()); });
      if (!right) broken.push_back({at - 12, "a record is no event"});
    }
    Source& source = sources_[number];
    source.offset = file.offset(), source.dialect = dialect;
    if (!file.mark(source.offset, &source.mark)) source.mark = 0;
    // A length that cannot be trusted is told once: the next scan begins there again.
    for (const Broken& b : broken) {
      if (!source.first_broken.empty() && source.first_broken.back().offset >= b.offset) continue;
      ++source.broken;
      if (source.first_broken.size() < kFirstBroken) source.first_broken.push_back(b);
    }
    broken.clear();
  }
  return {state != RecordFile::Next::kRecord, false, file.offset(), file.offset() - begin};
}

Column* Index::find(Kind kind, std::string_view tag) {
  const auto& by_tag = by_tag_[static_cast<int>(kind)];
  const auto found = by_tag.find(tag);
  return found == by_tag.end() ? nullptr : found->second;
}

Column& Index::made(Kind kind, std::string_view tag) {
  columns_.emplace_back(new Column{kind, std::string(tag), {}, {}, {}, 0, {}});
  Column& column = *columns_.back();
  by_tag_[static_cast<int>(kind)][column.tag] = &column;
  return column;
}

void Index::add(int32_t file, const Found& found, int64_t offset, const char* base) {
  Column* column = find(found.kind, found.tag);
  if (!column) column = &made(found.kind, found.tag);
  Tail& tail = column->tail;
  if (tail.file != file && tail.file >= 0) seal(*column);
  tail.file = file;
  auto part = std::find_if(column->parts.rbegin(), column->parts.rend(), [&](const Part& p) { return p.file <= file; }).base();
  if (part == column->parts.begin() || (part - 1)->file != file) part = column->parts.insert(part, {file, found.step, found.step}) + 1;
  (part - 1)->last = found.step;
  tail.steps.push_back(found.step);
  tail.times.push_back(found.wall_time);
  if (is_scalar(found.kind)) {
    tail.values.push_back(found.value);
  } else {
    tail.places.push_back({offset + (found.payload.data() - base), static_cast<int32_t>(found.payload.size()),
                           found.kind == Kind::kImage ? size_of_image(found.payload) : 0});
  }
  ++column->count;
  if (tail.steps.size() % kBlock != 0) return;
  try {
    seal(*column);
  } catch (const std::system_error&) {  // no room: the points stay in memory, and it is tried again
  }
}

// The tail becomes a block.
void Index::seal(Column& column) {
  Tail& tail = column.tail;
  if (tail.steps.empty()) {
    tail.file = -1;
    return;
  }
  std::vector<char> bytes;
  bytes.reserve(tail.steps.size() * item_bytes(column.kind));
  append(bytes, tail.steps), append(bytes, tail.times), append(bytes, tail.values), append(bytes, tail.places);
  const auto steps = std::minmax_element(tail.steps.begin(), tail.steps.end());
  const auto times = std::minmax_element(tail.times.begin(), tail.times.end());
  write_all(file_, bytes.data(), bytes.size(), size_, folder_ + "/blocks");
  auto place = column.blocks.end();
  while (place != column.blocks.begin() && (place - 1)->file > tail.file) --place;
  column.blocks.insert(place, {size_, static_cast<int32_t>(tail.steps.size()), tail.file,
                               crc32c(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), true, *steps.first,
                               *steps.second, *times.first, *times.second});
  size_ += static_cast<int64_t>((bytes.size() + 7) / 8 * 8);
  tail = {};
}

const char* Index::mapped(const Column& column, Block& block) {
  const size_t bytes = static_cast<size_t>(block.count) * item_bytes(column.kind), end = static_cast<size_t>(block.offset) + bytes;
  if (mapping_->size < end) {
    struct stat found;
    if (fstat(file_, &found) != 0) fail(folder_ + "/blocks");
    if (static_cast<size_t>(found.st_size) < end) throw Damaged(folder_ + "/blocks is too short");
    mapping_.reset(new Mapping);
    void* data = mmap(nullptr, static_cast<size_t>(found.st_size), PROT_READ, MAP_SHARED, file_, 0);
    if (data == MAP_FAILED) fail(folder_ + "/blocks");
    mapping_->data = static_cast<char*>(data), mapping_->size = static_cast<size_t>(found.st_size);
  }
  const char* data = mapping_->data + block.offset;
  if (!block.checked) {
    if (crc32c(reinterpret_cast<const uint8_t*>(data), bytes) != block.checksum) throw Damaged(folder_ + "/blocks is damaged");
    block.checked = true;
  }
  return data;
}

// Which points of a file still count: those before the steps from which on a later file wrote them again.
class Counting {
 public:
  Counting(const Column& column, int32_t file) {
    for (size_t i = column.parts.size(); i-- > 1 && column.parts[i].file > file;)
      if (column.parts[i].first <= column.parts[i - 1].last) end_ = any_ ? std::min(end_, column.parts[i].first) : column.parts[i].first, any_ = true;
  }
  bool operator()(int64_t step) const { return !any_ || step < end_; }

 private:
  bool any_ = false;
  int64_t end_ = 0;
};

static bool has_restarts(const Column& column) {
  const auto& parts = column.parts;
  return std::adjacent_find(parts.begin(), parts.end(), [](const Part& one, const Part& next) { return next.first <= one.last; }) != parts.end();
}

// of(block or nullptr, which is the tail) in the order of their files.
template <class Of>
void Index::each_piece(Column& column, const Of& of) {
  size_t i = 0;
  for (; i < column.blocks.size() && (column.tail.steps.empty() || column.blocks[i].file <= column.tail.file); ++i) of(&column.blocks[i]);
  if (!column.tail.steps.empty()) of(nullptr);
  for (; i < column.blocks.size(); ++i) of(&column.blocks[i]);
}

// each(steps, times, rest, i) for the points in a range that no later file wrote again; `rest`: values or places.
template <class Each>
void Index::each_point(Column& column, Axis axis, double low, double high, const Each& each) {
  const auto run = [&](const int64_t* steps, const double* times, const char* rest, int32_t count, int32_t file) {
    const Counting counts(column, file);
    for (int32_t i = 0; i < count; ++i) {
      const double x = axis == Axis::kStep ? static_cast<double>(steps[i]) : times[i];
      if (x >= low && x <= high && counts(steps[i])) each(x, steps[i], times[i], rest, i, file);
    }
  };
  each_piece(column, [&](Block* block) {
    if (!block) {
      const Tail& tail = column.tail;
      const char* rest = is_scalar(column.kind) ? reinterpret_cast<const char*>(tail.values.data()) : reinterpret_cast<const char*>(tail.places.data());
      run(tail.steps.data(), tail.times.data(), rest, static_cast<int32_t>(tail.steps.size()), tail.file);
      return;
    }
    const bool apart = axis == Axis::kStep ? static_cast<double>(block->most_step) < low || static_cast<double>(block->least_step) > high
                                           : block->most_time < low || block->least_time > high;
    if (apart) return;
    const char* data = mapped(column, *block);
    const auto* steps = reinterpret_cast<const int64_t*>(data);
    const auto* times = reinterpret_cast<const double*>(data + 8 * static_cast<size_t>(block->count));
    run(steps, times, data + 16 * static_cast<size_t>(block->count), block->count, block->file);
  });
}

bool Index::points(const std::string& tag, Axis axis, double low, double high, int64_t columns, double weight, std::vector<Point>* out) {
  std::lock_guard<std::mutex> lock(guard_);
  Column* const column = find(Kind::kScalar, tag);
  if (!column) return false;
  struct Numbered {
    int64_t number;
    Point point;
  };
  std::vector<Numbered> kept;  // of the part at work
  Numbered first, last, least, most;
  bool any = false, any_finite = false;
  int64_t part = -1, number = 0;
  const auto flush = [&] {
    if (any) kept.insert(kept.end(), {first, last});
    if (any_finite) kept.insert(kept.end(), {least, most});
    std::sort(kept.begin(), kept.end(), [](const Numbered& a, const Numbered& b) { return a.number < b.number; });
    int64_t before = -1;
    for (const Numbered& k : kept)
      if (k.number != before) out->push_back(k.point), before = k.number;
    kept.clear();
    any = any_finite = false;
  };
  const double scale = columns > 0 && high > low && std::isfinite(high - low) ? static_cast<double>(columns) / (high - low) : 0;
  double sum = 0, share = 1;  // of the average; of what its begin lacks
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const bool smooths = weight > 0;
  each_point(*column, axis, smooths ? -kAll : low, smooths ? kAll : high, [&](double x, int64_t step, double time, const char* rest, int32_t i, int32_t) {
    float value;
    std::memcpy(&value, rest + 4 * static_cast<size_t>(i), 4);
    float smoothed = value;
    if (smooths && std::isfinite(value)) {
      sum = sum * weight + (1 - weight) * static_cast<double>(value), share *= weight;
      smoothed = static_cast<float>(sum / (1 - share));
    }
    if (x < low || x > high) return;
    const Numbered one = {number++, {step, time, value, smoothed}};
    if (scale == 0) {
      out->push_back(one.point);
      return;
    }
    const int64_t here = std::min(columns - 1, static_cast<int64_t>((x - low) * scale));
    if (here != part) flush(), part = here;
    if (!any) first = one, any = true;
    last = one;
    if (!std::isfinite(value)) {
      kept.push_back(one);
    } else {
      if (!any_finite || value < least.point.value) least = one;
      if (!any_finite || value > most.point.value) most = one;
      any_finite = true;
    }
  });
  flush();
  return true;
}

bool Index::stored(const std::string& tag, int64_t from, int64_t count, std::vector<Point>* out, int64_t* rest) {
  std::lock_guard<std::mutex> lock(guard_);
  Column* const column = find(Kind::kScalar, tag);
  if (!column) return false;
  const int64_t to = from + std::min(count, column->count - std::min(from, column->count));
  *rest = column->count - std::min(to, column->count);
  int64_t at = 0;
  const auto take = [&](const int64_t* steps, const double* times, const char* values, int32_t size, int32_t file) {
    const Counting counts(*column, file);
    for (int64_t i = std::max<int64_t>(0, from - at); i < std::min<int64_t>(size, to - at); ++i) {
      if (!counts(steps[i])) continue;
      float value;
      std::memcpy(&value, values + 4 * i, 4);
      out->push_back({steps[i], times[i], value, value});
    }
  };
  each_piece(*column, [&](Block* block) {
    const Tail& tail = column->tail;
    const int64_t size = block ? block->count : static_cast<int64_t>(tail.steps.size());
    if (!block) {
      take(tail.steps.data(), tail.times.data(), reinterpret_cast<const char*>(tail.values.data()), static_cast<int32_t>(size), tail.file);
    } else if (at < to && at + size > from) {
      const char* data = mapped(*column, *block);
      const size_t n = static_cast<size_t>(size);
      take(reinterpret_cast<const int64_t*>(data), reinterpret_cast<const double*>(data + 8 * n), data + 16 * n, block->count, block->file);
    }
    at += size;
  });
  return true;
}

bool Index::entries(Kind kind, const std::string& tag, std::vector<Entry>* out) {
  std::lock_guard<std::mutex> lock(guard_);
  Column* const column = is_scalar(kind) ? nullptr : find(kind, tag);
  if (!column) return false;
  constexpr double kAll = std::numeric_limits<double>::infinity();
  each_point(*column, Axis::kStep, -kAll, kAll, [&](double, int64_t step, double time, const char* rest, int32_t i, int32_t file) {
    Place place;
    std::memcpy(&place, rest + sizeof(Place) * static_cast<size_t>(i), sizeof place);
    out->push_back({step, time, file, place});
  });
  return true;
}

std::vector<Source> Index::sources() {
  std::lock_guard<std::mutex> lock(guard_);
  return sources_;
}

std::vector<Summary> Index::summaries() {
  std::lock_guard<std::mutex> lock(guard_);
  std::vector<Summary> all;
  for (const auto& column : columns_) {
    if (column->count == 0) continue;  // known by its plugin only
    Summary s = {column->kind, column->tag, 0, 0, 0, 0, 0, 0};
    const auto take = [&](int64_t step, double time, const char* rest, int32_t i) {
      if (s.count++ == 0) s.first_step = step, s.first_time = time;
      s.last_step = step, s.last_time = time;
      if (is_scalar(column->kind)) std::memcpy(&s.last_value, rest + 4 * static_cast<size_t>(i), 4);
    };
    constexpr double kAll = std::numeric_limits<double>::infinity();
    if (has_restarts(*column)) {
      each_point(*column, Axis::kStep, -kAll, kAll, [&](double, int64_t step, double time, const char* rest, int32_t i, int32_t) { take(step, time, rest, i); });
    } else {  // the first and the last point tell it
      const auto ends = [&](const int64_t* steps, const double* times, const char* rest, int32_t count) {
        const int64_t before = s.count;
        take(steps[0], times[0], rest, 0), take(steps[count - 1], times[count - 1], rest, count - 1);
        s.count = before + count;
      };
      const auto of_piece = [&](Block* block) {
        if (block) {
          const char* data = mapped(*column, *block);
          ends(reinterpret_cast<const int64_t*>(data), reinterpret_cast<const double*>(data + 8 * static_cast<size_t>(block->count)),
               data + 16 * static_cast<size_t>(block->count), block->count);
        } else {
          const Tail& tail = column->tail;
          ends(tail.steps.data(), tail.times.data(), reinterpret_cast<const char*>(tail.values.data()), static_cast<int32_t>(tail.steps.size()));
        }
      };
      std::vector<Block*> pieces;
      each_piece(*column, [&](Block* block) { pieces.size() < 2 ? pieces.push_back(block) : void(pieces.back() = block); });
      for (Block* piece : pieces) of_piece(piece);
      s.count = column->count;
    }
    all.push_back(std::move(s));
  }
  return all;
}

void Index::commit() {
  std::lock_guard<std::mutex> lock(guard_);
  size_t bytes = 0;
  for (const auto& column : columns_) bytes += column->tail.steps.size() * item_bytes(column->kind);
  for (const auto& column : columns_) {
    if (bytes <= kMostInline) break;
    bytes -= column->tail.steps.size() * item_bytes(column->kind);
    seal(*column);
  }
  Packer p;
  p.text(kMagic);
  p.number(size_);
  p.number(static_cast<int64_t>(sources_.size()));
  for (const Source& s : sources_) {
    p.text(s.path);
    for (int64_t n : {s.device, s.inode, s.offset, static_cast<int64_t>(s.dialect), s.broken, static_cast<int64_t>(s.mark)}) p.number(n);
    p.number(static_cast<int64_t>(s.first_broken.size()));
    for (const Broken& b : s.first_broken) p.number(b.offset), p.text(b.what);
  }
  p.number(static_cast<int64_t>(columns_.size()));
  for (const auto& c : columns_) {
    p.number(static_cast<int64_t>(c->kind)), p.text(c->tag), p.text(c->plugin);
    p.number(c->count);
    p.items(c->parts), p.items(c->blocks);
    p.number(c->tail.file);
    p.items(c->tail.steps), p.items(c->tail.times), p.items(c->tail.values), p.items(c->tail.places);
  }
  const std::vector<char> all = p.finish();
  if (fdatasync(file_) != 0) fail(folder_ + "/blocks");
  const std::string path = folder_ + "/manifest", half = path + ".tmp";
  const int out = open(half.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0) fail(half);
  try {
    write_all(out, all.data(), all.size(), 0, half);
    if (fdatasync(out) != 0) fail(half);
  } catch (...) {
    close(out);
    unlink(half.c_str());
    throw;
  }
  close(out);
  if (rename(half.c_str(), path.c_str()) != 0) fail(path);
}

bool Index::load() {
  const int in = open((folder_ + "/manifest").c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return false;
  struct stat found, blocks;
  std::vector<char> all;
  bool read_all = fstat(in, &found) == 0 && fstat(file_, &blocks) == 0;
  if (read_all) {
    all.resize(static_cast<size_t>(found.st_size));
    size_t at = 0;
    for (ssize_t got; at < all.size() && (got = pread(in, all.data() + at, all.size() - at, static_cast<off_t>(at))) > 0;) at += static_cast<size_t>(got);
    read_all = at == all.size();
  }
  close(in);
  if (!read_all) return false;
  Unpacker u(all);
  if (!u.ok() || u.text() != kMagic) return false;
  size_ = u.number();
  if (size_ < 0 || size_ > blocks.st_size) return false;
  for (int64_t n = u.number(); n > 0 && u.ok(); --n) {
    Source s;
    s.path = u.text(), s.device = u.number(), s.inode = u.number(), s.offset = u.number();
    s.dialect = static_cast<Dialect>(u.number()), s.broken = u.number(), s.mark = static_cast<uint32_t>(u.number());
    for (int64_t k = u.number(); k > 0 && u.ok(); --k) {
      const int64_t offset = u.number();
      s.first_broken.push_back({offset, u.text()});
    }
    sources_.push_back(std::move(s));
  }
  for (int64_t n = u.number(); n > 0 && u.ok(); --n) {
    std::unique_ptr<Column> c(new Column{});
    c->kind = static_cast<Kind>(u.number()), c->tag = u.text(), c->plugin = u.text();
    c->count = u.number();
    u.items(&c->parts), u.items(&c->blocks);
    c->tail.file = static_cast<int32_t>(u.number());
    u.items(&c->tail.steps), u.items(&c->tail.times), u.items(&c->tail.values), u.items(&c->tail.places);
    for (Block& block : c->blocks) block.checked = false;
    if (static_cast<uint64_t>(c->kind) >= kKinds) return false;
    by_tag_[static_cast<int>(c->kind)][c->tag] = c.get();
    columns_.push_back(std::move(c));
  }
  // What was written behind the last commit does not count.
  return u.ok() && u.at_end() && ftruncate(file_, size_) == 0;
}

namespace {

int32_t size_of_image(std::string_view payload) {
  Fields fields(payload);
  uint64_t size[3] = {};
  for (Field f; fields.next(&f);)
    if (f.type() == 0 && (f.number() == 1 || f.number() == 2)) size[f.number()] = std::min<uint64_t>(f.number_value, 65535);
  return static_cast<int32_t>(static_cast<uint32_t>(size[2] << 16 | size[1]));
}

}  // namespace

}  // namespace mycelia::insight
