// Resizing of 8-bit pixels with the arithmetic of OpenCV (see dataset/vision/resample.py, the same in NumPy), row by row.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "data.h"
#include "loops.h"

namespace mycelia::data {
namespace {

constexpr int kWeight = 2048;  // 11 bits

struct Place {
  int low;
  float part;
};

// Left neighbour of a wanted pixel and the distance from it.
Place place(int at, int size, int wanted, bool area) {
  const double scale = 1.0 / (static_cast<double>(wanted) / size);
  if (area) {
    const int low = static_cast<int>(std::floor(at * scale));
    const float part = static_cast<float>((at + 1) - (low + 1) / scale);
    return {low, part <= 0 ? 0.0f : part - std::floor(part)};
  }
  const float exact = static_cast<float>((at + 0.5) * scale - 0.5);
  const int low = static_cast<int>(std::floor(exact));
  return {low, static_cast<float>(static_cast<double>(exact) - low)};
}

int nearest(int at, int size, int wanted) {
  const double scale = 1.0 / (static_cast<double>(wanted) / size);
  return std::min(static_cast<int>(std::floor(at * scale)), size - 1);
}

int fixed(float w) { return static_cast<int>(std::lrint(w * kWeight)); }

struct Cubic {
  int at[4], weight[4];
};

Cubic cubic(int at, int size, int wanted) {
  const Place p = place(at, size, wanted, false);
  const float a = -0.75f, x = p.part, y = x + 1, z = 1 - x;
  float w[4];
  w[0] = ((a * y - 5 * a) * y + 8 * a) * y - 4 * a;
  w[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
  w[2] = ((a + 2) * z - (a + 3)) * z * z + 1;
  w[3] = 1 - w[0] - w[1] - w[2];
  Cubic c;
  for (int k = 0; k < 4; ++k) {
    c.at[k] = std::clamp(p.low - 1 + k, 0, size - 1);
    c.weight[k] = fixed(w[k]);
  }
  return c;
}

struct Linear {
  int low, next, w0, w1;
};

Linear linear(int at, int size, int wanted, bool area) {
  Place p = place(at, size, wanted, area);
  if (p.low < 0 || p.low >= size - 1) p.part = 0;
  p.low = std::clamp(p.low, 0, size - 1);
  return {p.low, std::min(p.low + 1, size - 1), fixed(1 - p.part), fixed(p.part)};
}

// The pixels that a wanted one covers, and the share of each.
struct Cover {
  int first;
  std::vector<float> shares;
};

Cover cover(int at, int size, int wanted) {
  const double scale = static_cast<double>(size) / wanted, from = at * scale, to = from + scale;
  const double cell = std::min(scale, size - from);
  int second = static_cast<int>(std::ceil(from)), last = std::min(static_cast<int>(std::floor(to)), size - 1);
  second = std::min(second, last);
  Cover c{second, {}};
  if (second - from > 1e-3) {
    c.first = second - 1;
    c.shares.push_back(static_cast<float>((second - from) / cell));
  }
  for (int i = second; i < last; ++i) c.shares.push_back(static_cast<float>(1.0 / cell));
  if (to - last > 1e-3) c.shares.push_back(static_cast<float>(std::min(std::min(to - last, 1.0), cell) / cell));
  return c;
}

enum class Kind { kCopy, kNearest, kLinear, kCubic, kArea, kBlocks };

}  // namespace

struct Resize::Plan {
  Kind kind;
  int channels, columns, rows;  // of the window
  int safe = 0, step = 0;
  std::vector<int> at;           // bytes from need.left: one for each column, four with kCubic
  std::vector<int16_t> pairs;    // kLinear
  std::vector<int> weights;      // kCubic
  std::vector<Linear> down;      // kLinear
  std::vector<Cubic> down4;      // kCubic
  std::vector<int> lines;        // kNearest
  std::vector<Cover> covers_x, covers_y;  // kArea
  int high = 0, wide = 0;        // kBlocks
  Box window;
};

Resize::Resize(const Box& box, int rows, int columns, Mode mode, const Box& window, int channels) : plan_(new Plan) {
  Plan& p = *plan_;
  p.channels = channels, p.rows = window.rows, p.columns = window.columns, p.window = window;
  const bool shrinks = rows <= box.rows && columns <= box.columns;
  const bool halves = box.rows == 2 * rows && box.columns == 2 * columns;
  const bool area = mode == Mode::kArea;
  if (rows == box.rows && columns == box.columns)
    p.kind = Kind::kCopy;
  else if (mode == Mode::kNearest)
    p.kind = Kind::kNearest;
  else if ((area && shrinks) || (mode == Mode::kLinear && halves))
    p.kind = box.rows % rows == 0 && box.columns % columns == 0 ? Kind::kBlocks : Kind::kArea;
  else
    p.kind = mode == Mode::kCubic ? Kind::kCubic : Kind::kLinear;

  const int y0 = window.top, y1 = window.top + window.rows, x0 = window.left, x1 = window.left + window.columns;
  int top = 0, bottom = 0, left = 0, right = 0;  // first and last pixel needed, in the box
  switch (p.kind) {
    case Kind::kCopy:
      top = y0, bottom = y1 - 1, left = x0, right = x1 - 1;
      break;
    case Kind::kNearest:
      for (int y = y0; y < y1; ++y) p.lines.push_back(nearest(y, box.rows, rows));
      for (int x = x0; x < x1; ++x) p.at.push_back(nearest(x, box.columns, columns));
      top = p.lines.front(), bottom = p.lines.back(), left = p.at.front(), right = p.at.back();
      break;
    case Kind::kLinear:
      for (int y = y0; y < y1; ++y) p.down.push_back(linear(y, box.rows, rows, area));
      top = p.down.front().low, bottom = p.down.back().next;
      for (int x = x0; x < x1; ++x) {
        Linear t = linear(x, box.columns, columns, area);
        if (t.next == t.low && t.low > 0) t = {t.low - 1, t.low, 0, t.w0};  // lest a pixel after the last one is read
        p.at.push_back(t.low);
        p.pairs.push_back(static_cast<int16_t>(t.w0));
        p.pairs.push_back(static_cast<int16_t>(t.w1));
      }
      left = p.at.front(), right = std::min(p.at.back() + 1, box.columns - 1);
      p.step = box.columns > 1 ? channels : 0;
      break;
    case Kind::kCubic:
      for (int y = y0; y < y1; ++y) p.down4.push_back(cubic(y, box.rows, rows));
      top = p.down4.front().at[0], bottom = p.down4.back().at[3];
      for (int x = x0; x < x1; ++x) {
        const Cubic c = cubic(x, box.columns, columns);
        p.at.insert(p.at.end(), c.at, c.at + 4);
        p.weights.insert(p.weights.end(), c.weight, c.weight + 4);
      }
      left = p.at.front(), right = p.at.back();
      break;
    case Kind::kBlocks:
      p.high = box.rows / rows, p.wide = box.columns / columns;
      top = y0 * p.high, bottom = y1 * p.high - 1, left = x0 * p.wide, right = x1 * p.wide - 1;
      break;
    case Kind::kArea:
      for (int y = y0; y < y1; ++y) p.covers_y.push_back(cover(y, box.rows, rows));
      for (int x = x0; x < x1; ++x) p.covers_x.push_back(cover(x, box.columns, columns));
      top = p.covers_y.front().first, left = p.covers_x.front().first;
      bottom = p.covers_y.back().first + static_cast<int>(p.covers_y.back().shares.size()) - 1;
      right = p.covers_x.back().first + static_cast<int>(p.covers_x.back().shares.size()) - 1;
      break;
  }
  for (int& x : p.at) x = (x - left) * channels;
  for (int& y : p.lines) y -= top;
  for (Linear& t : p.down) t.low -= top, t.next -= top;
  for (Cubic& c : p.down4)
    for (int& y : c.at) y -= top;
  for (Cover& c : p.covers_y) c.first -= top;
  for (Cover& c : p.covers_x) c.first -= left;
  const int bytes = (right - left + 1) * channels;
  if (p.kind == Kind::kLinear)
    while (p.safe < p.columns && p.at[p.safe] + 8 <= bytes) ++p.safe;
  need_ = {box.top + top, box.left + left, bottom - top + 1, right - left + 1};
}

Resize::~Resize() = default;

bool Resize::run(Rows& source, const Sink& sink) const {
  const Plan& p = *plan_;
  const Loops& l = loops();
  const int channels = p.channels, count = p.columns * channels;
  if (p.kind == Kind::kCopy) return copy_rows(source, sink);
  std::vector<uint8_t> pixels(count + 32);
  switch (p.kind) {
    case Kind::kNearest:
      for (int y = 0; y < p.rows; ++y) {
        const uint8_t* in = source.row(p.lines[y]);
        if (!in) return false;
        uint8_t* out = pixels.data();
        for (int x = 0; x < p.columns; ++x)
          for (int c = 0; c < channels; ++c) *out++ = in[p.at[x] + c];
        sink.put(y, pixels.data());
      }
      return true;
    case Kind::kLinear: {
      std::vector<int16_t> buffers(2 * (count + 16));
      int16_t* line[2] = {buffers.data(), buffers.data() + count + 16};
      int held[2] = {-1, -1};
      const auto fill = [&](int slot, int y) {
        const uint8_t* in = source.row(y);
        if (!in) return false;
        l.across(in, p.at.data(), p.pairs.data(), p.columns, p.safe, channels, p.step, line[slot]);
        held[slot] = y;
        return true;
      };
      for (int y = 0; y < p.rows; ++y) {
        const Linear& t = p.down[y];
        if (held[0] != t.low && held[1] == t.low) {
          std::swap(line[0], line[1]);
          std::swap(held[0], held[1]);
        }
        if (held[0] != t.low && !fill(0, t.low)) return false;
        if (t.next != t.low && held[1] != t.next && !fill(1, t.next)) return false;
        l.down(line[0], t.next == t.low ? line[0] : line[1], t.w0, t.w1, count, pixels.data());
        sink.put(y, pixels.data());
      }
      return true;
    }
    case Kind::kCubic: {
      std::vector<int32_t> buffers(4 * count);
      int held[4] = {-1, -1, -1, -1};
      for (int y = 0; y < p.rows; ++y) {
        const Cubic& c = p.down4[y];
        const int32_t* lines[4];
        for (int k = 0; k < 4; ++k) {
          const int slot = c.at[k] & 3;
          int32_t* line = buffers.data() + slot * count;
          if (held[slot] != c.at[k]) {
            const uint8_t* in = source.row(c.at[k]);
            if (!in) return false;
            l.across4(in, p.at.data(), p.weights.data(), p.columns, channels, line);
            held[slot] = c.at[k];
          }
          lines[k] = line;
        }
        l.down4(lines, c.weight, count, pixels.data());
        sink.put(y, pixels.data());
      }
      return true;
    }
    case Kind::kBlocks: {
      std::vector<int> sums(count);
      const float share = static_cast<float>(1.0 / (p.high * p.wide));
      const bool halves = p.high == 2 && p.wide == 2;
      for (int y = 0; y < p.rows; ++y) {
        std::fill(sums.begin(), sums.end(), 0);
        for (int k = 0; k < p.high; ++k) {
          const uint8_t* in = source.row(y * p.high + k);
          if (!in) return false;
          for (int x = 0; x < p.columns; ++x)
            for (int j = 0; j < p.wide; ++j, in += channels)
              for (int c = 0; c < channels; ++c) sums[x * channels + c] += in[c];
        }
        for (int i = 0; i < count; ++i)
          pixels[i] = static_cast<uint8_t>(halves ? (sums[i] + 2) >> 2 : static_cast<int>(std::lrint(sums[i] * share)));
        sink.put(y, pixels.data());
      }
      return true;
    }
    case Kind::kArea: {
      std::vector<float> line(count), sums(count);
      int held = -1;
      for (int y = 0; y < p.rows; ++y) {
        const Cover& down = p.covers_y[y];
        for (size_t k = 0; k < down.shares.size(); ++k) {
          const int at = down.first + static_cast<int>(k);
          if (held != at) {
            const uint8_t* in = source.row(at);
            if (!in) return false;
            for (int x = 0; x < p.columns; ++x) {
              const Cover& across = p.covers_x[x];
              const uint8_t* first = in + across.first * channels;
              for (int c = 0; c < channels; ++c) {
                float sum = 0;
                for (size_t j = 0; j < across.shares.size(); ++j) sum += first[j * channels + c] * across.shares[j];
                line[x * channels + c] = sum;
              }
            }
            held = at;
          }
          const float share = down.shares[k];
          for (int i = 0; i < count; ++i) sums[i] = k ? sums[i] + share * line[i] : share * line[i];
        }
        for (int i = 0; i < count; ++i)
          pixels[i] = static_cast<uint8_t>(std::clamp(static_cast<int>(std::lrint(sums[i])), 0, 255));
        sink.put(y, pixels.data());
      }
      return true;
    }
    case Kind::kCopy:
      break;
  }
  return true;
}

bool copy_rows(Rows& source, const Sink& sink) {
  for (int y = 0; y < sink.rows; ++y) {
    const uint8_t* in = source.row(y);
    if (!in) return false;
    sink.put(y, in);
  }
  return true;
}

namespace {

template <class T>
void looked_up(const Sink& s, int y, const uint8_t* pixels) {
  const T* table = static_cast<const T*>(s.table);
  T* out = static_cast<T*>(s.out);
  const int n = s.channels, columns = s.columns;
  const ptrdiff_t plane = static_cast<ptrdiff_t>(s.rows) * columns;
  const auto value = [&](int c, int x) -> T {
    const uint8_t p = pixels[x * n + c];
    return table ? table[c * 256 + p] : static_cast<T>(p);
  };
  if (s.planar) {
    for (int c = 0; c < n; ++c) {
      T* line = out + c * plane + static_cast<ptrdiff_t>(y) * columns;
      if (s.flip_x)
        for (int x = 0; x < columns; ++x) line[columns - 1 - x] = value(c, x);
      else
        for (int x = 0; x < columns; ++x) line[x] = value(c, x);
    }
    return;
  }
  T* line = out + static_cast<ptrdiff_t>(y) * columns * n;
  if (table && n == 3 && !s.flip_x) {
    for (int x = 0; x < 3 * columns; x += 3) {
      line[x] = table[pixels[x]];
      line[x + 1] = table[256 + pixels[x + 1]];
      line[x + 2] = table[512 + pixels[x + 2]];
    }
    return;
  }
  for (int x = 0; x < columns; ++x)
    for (int c = 0; c < n; ++c) line[(s.flip_x ? columns - 1 - x : x) * n + c] = value(c, x);
}

}  // namespace

void Sink::put(int y, const uint8_t* pixels) const {
  if (flip_y) y = rows - 1 - y;
  if (!table && !flip_x && (!planar || channels == 1)) {
    const size_t bytes = static_cast<size_t>(columns) * channels;
    std::memcpy(static_cast<uint8_t*>(out) + y * bytes, pixels, bytes);
    return;
  }
  switch (item) {
    case 2:
      return looked_up<uint16_t>(*this, y, pixels);
    case 4:
      if (table && planar && channels == 3) {
        float* r = static_cast<float*>(out) + static_cast<ptrdiff_t>(y) * columns;
        const ptrdiff_t plane = static_cast<ptrdiff_t>(rows) * columns;
        loops().planes3(pixels, columns, static_cast<const float*>(table), flip_x, r, r + plane, r + 2 * plane);
        return;
      }
      return looked_up<uint32_t>(*this, y, pixels);
    case 8:
      return looked_up<uint64_t>(*this, y, pixels);
    default:
      return looked_up<uint8_t>(*this, y, pixels);
  }
}

}  // namespace mycelia::data
