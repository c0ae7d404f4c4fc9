// RFC 1950 and 1951: a zlib stream whose only matches repeat the byte before them, each block with codes of its own. For pixels after a
// filter of PNG, where such runs are most of what there is to gain; finds them many times as fast as zlib finds all matches.
#include <algorithm>
#include <array>
#include <cstring>

#include "data.h"

namespace mycelia::data {
namespace {

constexpr size_t kLiterals = 286, kEnd = 256;  // bytes, the end of a block, codes of lengths
constexpr size_t kBlock = 1 << 15;             // tokens that share their codes
constexpr size_t kShortest = 3, kLongest = 258;
constexpr uint32_t kAdler = 65521;

// A token: a literal byte, or 256 + length - 3 of a run.
constexpr uint16_t run_token(size_t length) { return static_cast<uint16_t>(256 + length - kShortest); }

struct LengthCode {
  uint16_t symbol;
  uint8_t extra_bits, extra;
};

// By length - 3, RFC 1951, 3.2.5.
constexpr std::array<LengthCode, 256> length_codes() {
  std::array<LengthCode, 256> codes{};
  size_t length = 0;
  for (uint16_t symbol = 257; symbol < 285; ++symbol) {
    const unsigned bits = symbol < 265 ? 0 : (symbol - 261u) / 4;
    for (unsigned extra = 0; extra < 1u << bits && length < 255; ++extra)
      codes[length++] = {symbol, static_cast<uint8_t>(bits), static_cast<uint8_t>(extra)};
  }
  codes[255] = {285, 0, 0};
  return codes;
}
constexpr auto kLengthCodes = length_codes();

// The lengths of a prefix code for symbols that occur `counts` times, at most `longest` bits; 0 for those that do not occur.
void code_lengths(const uint32_t* counts, size_t n, unsigned longest, uint8_t* lengths) {
  struct Node {
    uint32_t count;
    int parent;
  };
  std::vector<uint32_t> order, kept(counts, counts + n);
  for (uint32_t i = 0; i < n; ++i)
    if (kept[i]) order.push_back(i);
  std::fill_n(lengths, n, uint8_t{0});
  if (order.size() < 2) {
    for (const uint32_t i : order) lengths[i] = 1;
    return;
  }
  for (;;) {
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return kept[a] < kept[b] || (kept[a] == kept[b] && a < b); });
    std::vector<Node> nodes;
    nodes.reserve(2 * order.size());
    for (const uint32_t i : order) nodes.push_back({kept[i], -1});
    // Two queues, both in rising order: leaves, and the nodes that join two.
    size_t leaf = 0, joined = order.size();
    const auto take = [&] {
      const bool is_leaf = leaf < order.size() && (joined >= nodes.size() || nodes[leaf].count <= nodes[joined].count);
      return is_leaf ? leaf++ : joined++;
    };
    for (size_t i = 1; i < order.size(); ++i) {
      const size_t a = take(), b = take();
      nodes[a].parent = nodes[b].parent = static_cast<int>(nodes.size());
      nodes.push_back({nodes[a].count + nodes[b].count, -1});
    }
    std::vector<unsigned> depth(nodes.size(), 0);
    for (size_t i = nodes.size() - 1; i-- > 0;) depth[i] = depth[static_cast<size_t>(nodes[i].parent)] + 1;
    if (*std::max_element(depth.begin(), depth.begin() + static_cast<ptrdiff_t>(order.size())) <= longest) {
      for (size_t i = 0; i < order.size(); ++i) lengths[order[i]] = static_cast<uint8_t>(depth[i]);
      return;
    }
    for (const uint32_t i : order) kept[i] = kept[i] / 2 + 1;  // flatter counts give shorter codes
  }
}

// Canonical codes, their bits in the order in which they are written.
void codes_of(const uint8_t* lengths, size_t n, uint16_t* codes) {
  unsigned next = 0;
  for (unsigned length = 1; length <= 15; ++length) {
    next <<= 1;
    for (size_t i = 0; i < n; ++i) {
      if (lengths[i] != length) continue;
      unsigned reversed = 0;
      for (unsigned bit = 0; bit < length; ++bit) reversed |= (next >> bit & 1) << (length - 1 - bit);
      codes[i] = static_cast<uint16_t>(reversed);
      ++next;
    }
  }
}

class Bits {
 public:
  explicit Bits(std::string* out) : out_(out) {}
  void put(uint64_t value, unsigned count) {  // at most 32 bits
    held_ |= value << size_;
    size_ += count;
    if (size_ < 32) return;
    const uint32_t low = static_cast<uint32_t>(held_);
    const char bytes[4] = {static_cast<char>(low), static_cast<char>(low >> 8), static_cast<char>(low >> 16), static_cast<char>(low >> 24)};
    out_->append(bytes, 4);
    held_ >>= 32, size_ -= 32;
  }
  void finish() {
    for (; size_ > 0; held_ >>= 8, size_ -= std::min(size_, 8u)) out_->push_back(static_cast<char>(held_));
  }

 private:
  std::string* out_;
  uint64_t held_ = 0;
  unsigned size_ = 0;
};

// The lengths of codes as RFC 1951, 3.2.7 writes them: {symbol, extra bits, extra}.
std::vector<LengthCode> folded(const uint8_t* lengths, size_t n) {
  std::vector<LengthCode> out;
  for (size_t i = 0; i < n;) {
    size_t run = 1;
    while (i + run < n && lengths[i + run] == lengths[i]) ++run;
    const uint8_t length = lengths[i];
    i += run;
    if (length) {
      out.push_back({length, 0, 0});
      --run;
    }
    while (run >= 3) {
      const size_t most = length ? 6 : run > 10 ? 138 : 10, some = std::min(run, most);
      if (length) out.push_back({16, 2, static_cast<uint8_t>(some - 3)});
      else if (most == 10) out.push_back({17, 3, static_cast<uint8_t>(some - 3)});
      else out.push_back({18, 7, static_cast<uint8_t>(some - 11)});
      run -= some;
    }
    for (; run; --run) out.push_back({length, 0, 0});
  }
  return out;
}

void put_block(const uint16_t* tokens, size_t n, bool is_last, Bits* bits) {
  uint32_t counts[kLiterals] = {};
  counts[kEnd] = 1;
  for (size_t i = 0; i < n; ++i) ++counts[tokens[i] < 256 ? tokens[i] : kLengthCodes[tokens[i] - 256u].symbol];
  uint8_t lengths[kLiterals + 1];
  uint16_t codes[kLiterals];
  code_lengths(counts, kLiterals, 15, lengths);
  codes_of(lengths, kLiterals, codes);
  size_t used = kLiterals;
  while (used > 257 && !lengths[used - 1]) --used;
  lengths[used] = 1;  // the one distance: 1
  const std::vector<LengthCode> head = folded(lengths, used + 1);
  uint32_t head_counts[19] = {};
  for (const LengthCode& c : head) ++head_counts[c.symbol];
  uint8_t head_lengths[19];
  uint16_t head_codes[19];
  code_lengths(head_counts, 19, 7, head_lengths);
  codes_of(head_lengths, 19, head_codes);
  constexpr uint8_t kOrder[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  size_t shown = 19;
  while (shown > 4 && !head_lengths[kOrder[shown - 1]]) --shown;
  bits->put(is_last, 1), bits->put(2, 2);
  bits->put(used - 257, 5), bits->put(0, 5), bits->put(shown - 4, 4);
  for (size_t i = 0; i < shown; ++i) bits->put(head_lengths[kOrder[i]], 3);
  for (const LengthCode& c : head) bits->put(head_codes[c.symbol], head_lengths[c.symbol]), bits->put(c.extra, c.extra_bits);
  for (size_t i = 0; i < n; ++i) {
    if (tokens[i] < 256) {
      bits->put(codes[tokens[i]], lengths[tokens[i]]);
      continue;
    }
    const LengthCode& c = kLengthCodes[tokens[i] - 256u];
    // The code of the distance, a zero bit, comes last.
    bits->put(codes[c.symbol] | static_cast<uint64_t>(c.extra) << lengths[c.symbol], lengths[c.symbol] + c.extra_bits + 1u);
  }
  bits->put(codes[kEnd], lengths[kEnd]);
}

// How many of the `most` bytes at `p` are `byte`.
size_t run_of(const uint8_t* p, size_t most, uint8_t byte) {
  const uint64_t pattern = byte * 0x0101010101010101u;
  size_t n = 0;
  for (uint64_t word; n + 8 <= most; n += 8) {
    std::memcpy(&word, p + n, 8);
    if (word != pattern) break;
  }
  while (n < most && p[n] == byte) ++n;
  return n;
}

uint32_t adler32(const uint8_t* p, size_t size) {
  constexpr size_t kPiece = 128;  // products of 16 bits: the compiler makes vectors of them
  uint32_t a = 1, b = 0;
  for (; size >= kPiece; p += kPiece, size -= kPiece) {
    int32_t sum = 0, weighted = 0;
    for (size_t i = 0; i < kPiece; ++i) {
      const int16_t byte = p[i], weight = static_cast<int16_t>(kPiece - i);
      sum += byte;
      weighted += byte * weight;
    }
    b = (b + kPiece * a + static_cast<uint32_t>(weighted)) % kAdler;
    a = (a + static_cast<uint32_t>(sum)) % kAdler;
  }
  for (; size; --size) a = (a + *p++) % kAdler, b = (b + a) % kAdler;
  return b << 16 | a;
}

}  // namespace

void put_deflated(const uint8_t* data, size_t size, std::string* out) {
  out->append("\x78\x01", 2);
  Bits bits(out);
  std::vector<uint16_t> tokens(std::min(size, kBlock));
  size_t i = 0;
  do {
    size_t count = 0;
    while (i < size && count < kBlock) {
      const uint8_t byte = data[i];
      const size_t run = i && byte == data[i - 1] ? run_of(data + i, std::min(size - i, kLongest), byte) : 0;
      tokens[count++] = run >= kShortest ? run_token(run) : byte;
      i += run >= kShortest ? run : 1;
    }
    put_block(tokens.data(), count, i == size, &bits);
  } while (i < size);
  bits.finish();
  const uint32_t sum = adler32(data, size);
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(sum >> shift));
}

}  // namespace mycelia::data
