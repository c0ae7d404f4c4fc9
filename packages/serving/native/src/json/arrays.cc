#include "arrays.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>

namespace mycelia::serving::json {
namespace {

constexpr size_t kDeepest = 32;
constexpr size_t kLongDigits = 19;  // so many may not fit into 64 bits

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Number {
  bool valid = false, whole = true;
  size_t digits = 0;  // of the integer part
  bool negative = false;
};

// The number that begins at p, by JSON's grammar; p is behind it then.
Number read_number(const char*& p, const char* end) {
  Number n;
  const char* q = p;
  if (q < end && *q == '-') {
    n.negative = true;
    ++q;
  }
  const char* first = q;
  while (q < end && is_digit(*q)) ++q;
  n.digits = static_cast<size_t>(q - first);
  if (!n.digits || (n.digits > 1 && *first == '0')) return n;
  if (q < end && *q == '.') {
    n.whole = false;
    const char* fraction = ++q;
    while (q < end && is_digit(*q)) ++q;
    if (q == fraction) return n;
  }
  if (q < end && (*q == 'e' || *q == 'E')) {
    n.whole = false;
    ++q;
    if (q < end && (*q == '+' || *q == '-')) ++q;
    const char* exponent = q;
    while (q < end && is_digit(*q)) ++q;
    if (q == exponent) return n;
  }
  n.valid = true;
  p = q;
  return n;
}

// Reads one array; what it found is valid if run() was true.
class Scan {
 public:
  std::vector<int64_t> shape;
  std::vector<const char*> open;  // begins of the arrays that were open where it failed
  size_t count = 0;
  bool whole = false, broken = false, flags = false, negative = false;  // kinds of elements that are there
  size_t digits = 0;                                                     // of the longest integer

  explicit Scan(const char* end) : end_(end) {}

  bool run(const char*& p) {
    const char* q = p;
    if (!array(q)) return false;
    p = q;
    return true;
  }

 private:
  bool array(const char*& p) {
    const size_t depth = open.size();
    if (depth == kDeepest) return false;
    open.push_back(p++);
    if (depth == shape.size()) {
      if (count) return false;  // values were on a higher level
      shape.push_back(-1);
    }
    int64_t n = 0;
    for (;; ++p) {
      space(p);
      if (p < end_ && *p == '[') {
        if (!array(p)) return false;
      } else if (depth + 1 != shape.size() || !element(p)) {
        return false;
      }
      ++n;
      space(p);
      if (p == end_) return false;
      if (*p == ']') break;
      if (*p != ',') return false;
    }
    ++p;
    if (shape[depth] >= 0 && shape[depth] != n) return false;
    shape[depth] = n;
    open.pop_back();
    return true;
  }

  bool element(const char*& p) {
    if (p == end_) return false;
    if (*p == 't' || *p == 'f') {
      const std::string_view word = *p == 't' ? "true" : "false";
      if (whole || broken || static_cast<size_t>(end_ - p) < word.size() || std::memcmp(p, word.data(), word.size())) return false;
      p += word.size();
      flags = true;
    } else {
      if (flags) return false;
      const Number n = read_number(p, end_);
      if (!n.valid) return false;
      if (n.whole) {
        whole = true;
        negative |= n.negative;
        digits = std::max(digits, n.digits);
      } else {
        broken = true;
      }
    }
    ++count;
    return true;
  }

  void space(const char*& p) const {
    while (p < end_ && is_space(*p)) ++p;
  }

  const char* end_;
};

double to_double(const char* p, const char* end) {
  double value = 0;
  const auto [stop, problem] = std::from_chars(p, end, value);
  if (problem == std::errc()) return value;
  return std::strtod(std::string(p, end).c_str(), nullptr);  // too large or too small: infinite or about 0
}

// Calls f(begin, end) for each element of a valid array.
template <class F>
void each_element(const char* p, const char* end, F&& f) {
  while (p < end) {
    if (*p == '[' || *p == ']' || *p == ',' || is_space(*p)) {
      ++p;
      continue;
    }
    const char* q = p;
    while (*q != ']' && *q != ',' && !is_space(*q)) ++q;
    f(p, q);
    p = q;
  }
}

template <class T, class Convert>
void fill(Array* array, size_t count, const char* p, const char* end, Convert&& convert) {
  array->size = count * sizeof(T);
  array->data.reset(new uint8_t[array->size]);  // new aligns for every type
  T* to = reinterpret_cast<T*>(array->data.get());
  each_element(p, end, [&](const char* from, const char* until) { *to++ = convert(from, until); });
}

Array convert(Scan&& scan, const char* p, const char* end, bool narrow) {
  Array array{kMixed, std::move(scan.shape), nullptr, 0};
  const size_t count = scan.count;
  if (scan.flags) {
    array.kind = kBool;
    fill<uint8_t>(&array, count, p, end, [](const char* from, const char*) { return static_cast<uint8_t>(*from == 't'); });
    return array;
  }
  if (scan.whole && !scan.broken) {
    bool fits32 = scan.digits < 11, fits64 = true, fits_unsigned = !scan.negative;
    if (scan.digits > 9) {  // look at them
      each_element(p, end, [&](const char* from, const char* until) {
        int64_t value;
        uint64_t natural;
        if (fits64 && std::from_chars(from, until, value).ec == std::errc()) {
          fits32 &= value >= INT32_MIN && value <= INT32_MAX;
        } else {
          fits32 = fits64 = false;
        }
        if (fits_unsigned) fits_unsigned = std::from_chars(from, until, natural).ec == std::errc();
      });
    }
    const auto whole = [](auto value) {
      return [value](const char* from, const char* until) mutable {
        std::from_chars(from, until, value);
        return value;
      };
    };
    if (fits32) {
      array.kind = kInt32;
      fill<int32_t>(&array, count, p, end, whole(int32_t{}));
      return array;
    }
    array.kind = fits64 ? kInt64 : fits_unsigned ? kUint64 : kHuge;
    if (narrow) return array;  // refused anyway
    if (fits64) fill<int64_t>(&array, count, p, end, whole(int64_t{}));
    else if (fits_unsigned) fill<uint64_t>(&array, count, p, end, whole(uint64_t{}));
    else fill<double>(&array, count, p, end, to_double);
    return array;
  }
  if (!narrow) {
    array.kind = scan.whole ? kMixed : kDouble;
    fill<double>(&array, count, p, end, to_double);
  } else if (!scan.whole) {
    array.kind = kFloat;
    bool fits = true;
    fill<float>(&array, count, p, end, [&](const char* from, const char* until) {
      const float value = static_cast<float>(to_double(from, until));
      fits &= std::isfinite(value);
      return value;
    });
    if (!fits) {
      array.kind = kTooLarge;
      array.data.reset();
      array.size = 0;
    }
  }
  return array;
}

// Whether a number of the array between p and end is more than a double holds, which parsers of JSON refuse.
bool has_infinite(const Array& array, const char* p, const char* end) {
  if (array.kind != kHuge && array.kind != kDouble && array.kind != kTooLarge && array.kind != kMixed) return false;
  bool found = false;
  if (array.data) {
    const double* const values = reinterpret_cast<const double*>(array.data.get());
    for (size_t i = 0; i < array.size / sizeof(double); ++i) found |= !std::isfinite(values[i]);
  } else {
    each_element(p, end, [&](const char* from, const char* until) { found |= !std::isfinite(to_double(from, until)); });
  }
  return found;
}

}  // namespace

Document take_arrays(std::string_view body, std::string_view mark, std::string_view key, size_t least, bool narrow, size_t most) {
  Document found;
  std::vector<const char*> doomed;  // arrays of which it is known that they are none, first one last
  const char *p = body.data(), *const end = p + body.size(), *copied = p;
  size_t depth = 0;
  while (p < end && found.values <= most) {
    switch (*p) {
      case '"': {
        const char* first = ++p;
        bool escaped = false;
        while (p < end && *p != '"') {
          if (*p == '\\') {
            escaped = true;
            ++p;
          }
          if (p < end) ++p;
        }
        if (depth == 1 && (escaped || std::string_view(first, static_cast<size_t>(p - first)) == key)) {
          const char* q = p < end ? p + 1 : p;
          while (q < end && is_space(*q)) ++q;
          found.marked_keys += q < end && *q == ':';
        }
        if (p < end) ++p;
        break;
      }
      case '[': {
        while (!doomed.empty() && doomed.back() < p) doomed.pop_back();
        if (doomed.empty() || doomed.back() != p) {
          Scan scan(end);
          const char* begin = p;
          if (scan.run(p)) {
            if (scan.count < least) {
              found.values += scan.count;
              found.long_integers |= scan.digits >= kLongDigits;
              break;
            }
            found.text.append(copied, static_cast<size_t>(begin - copied));
            found.text.append("{\"").append(mark).append("\":").append(std::to_string(found.arrays.size())).append("}");
            copied = p;
            ++found.values;
            found.arrays.push_back(convert(std::move(scan), begin, p, narrow));
            found.infinite |= has_infinite(found.arrays.back(), begin, p);
            break;
          }
          if (doomed.empty()) doomed.assign(scan.open.rbegin(), scan.open.rend());
          else doomed.insert(doomed.end(), scan.open.rbegin(), scan.open.rend());
        }
        ++depth;
        ++found.values;
        ++p;
        break;
      }
      case '{':
        ++depth;
        ++found.values;
        ++p;
        break;
      case ']':
      case '}':
        if (depth) --depth;
        ++p;
        break;
      case ',':
        ++found.values;
        ++p;
        break;
      default:
        if (is_digit(*p)) {
          const Number n = read_number(p, end);
          found.long_integers |= n.digits >= kLongDigits;
          if (!n.valid) ++p;
        } else {
          ++p;
        }
    }
  }
  found.text.append(copied, static_cast<size_t>(end - copied));
  return found;
}

}  // namespace mycelia::serving::json
