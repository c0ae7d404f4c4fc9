// RFC 1950 and 1951: a zlib stream whose only matches repeat the byte before them, each block with codes of its own. For pixels after a
// filter of PNG, where such runs are most of what there is to gain; finds them many times as fast as zlib finds all matches.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "data.h"

namespace mycelia::data {
namespace {

constexpr size_t kLiterals = 286, kEnd = 256;  // bytes, the end of a block, codes of lengths
constexpr size_t kTokens = 512, kBlock = 1 << 15;  // kinds of tokens, tokens that share their codes
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
  constexpr uint32_t kSymbolBits = 9;
  uint32_t keys[kLiterals];  // count, then symbol: counts are below 2^22
  size_t leaves = 0;
  for (uint32_t i = 0; i < n; ++i)
    if (counts[i]) keys[leaves++] = counts[i] << kSymbolBits | i;
  std::fill_n(lengths, n, uint8_t{0});
  const auto symbol_of = [](uint32_t key) { return key & ((1u << kSymbolBits) - 1); };
  if (leaves < 2) {
    if (leaves) lengths[symbol_of(keys[0])] = 1;
    return;
  }
  for (;;) {
    std::sort(keys, keys + leaves);
    struct Node {
      uint32_t count;
      uint16_t parent, depth;
    } nodes[2 * kLiterals];
    for (size_t i = 0; i < leaves; ++i) nodes[i].count = keys[i] >> kSymbolBits;
    // Two queues, both in rising order: leaves, and the nodes that join two.
    size_t leaf = 0, joined = leaves, made = leaves;
    const auto take = [&] {
      const bool is_leaf = leaf < leaves && (joined >= made || nodes[leaf].count <= nodes[joined].count);
      return is_leaf ? leaf++ : joined++;
    };
    for (; made < 2 * leaves - 1; ++made) {
      const size_t first = take(), second = take();
      nodes[first].parent = nodes[second].parent = static_cast<uint16_t>(made);
      nodes[made].count = nodes[first].count + nodes[second].count;
    }
    nodes[made - 1].depth = 0;
    for (size_t i = made - 1; i-- > 0;) nodes[i].depth = static_cast<uint16_t>(nodes[nodes[i].parent].depth + 1);
    if (nodes[0].depth <= longest) {  // the rarest symbol lies deepest
      for (size_t i = 0; i < leaves; ++i) lengths[symbol_of(keys[i])] = static_cast<uint8_t>(nodes[i].depth);
      return;
    }
    for (size_t i = 0; i < leaves; ++i)  // flatter counts give shorter codes
      keys[i] = ((keys[i] >> kSymbolBits) / 2 + 1) << kSymbolBits | symbol_of(keys[i]);
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

// Bits at the end of a text.
class Bits {
 public:
  explicit Bits(std::string* out) : out_(out), at_(out->size()) {}
  // Makes room for `count` bits, which must be there before they are put.
  void reserve(size_t count) { out_->resize(at_ + count / 8 + 16); }
  void put(uint64_t value, unsigned count) {  // at most 56 bits
    held_ |= value << size_;
    size_ += count;
    std::memcpy(&(*out_)[at_], &held_, 8);  // no branch: whole bytes stay, the others are written again
    at_ += size_ >> 3;
    held_ >>= size_ & ~7u;
    size_ &= 7;
  }
  void finish() { out_->resize(at_ + (size_ ? 1 : 0)); }

 private:
  std::string* out_;
  size_t at_;
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

// Tokens that share their codes, and how often each of them occurs.
struct Block {
  explicit Block(uint16_t* room) : tokens(room) {}
  void put(uint16_t token) { tokens[size++] = token, ++counts[token]; }

  uint16_t* const tokens;
  size_t size = 0;
  uint32_t counts[kTokens] = {};
};

void put_block(const Block& block, bool is_last, Bits* bits) {
  uint32_t counts[kLiterals] = {};
  std::copy_n(block.counts, 256, counts);
  for (size_t i = 256; i < kTokens; ++i) counts[kLengthCodes[i - 256].symbol] += block.counts[i];
  counts[kEnd] = 1;
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

  struct {
    uint32_t bits, size;
  } coded[kTokens];
  size_t needed = 17 + 3 * shown + 14 * head.size() + 15;
  for (size_t i = 0; i < kTokens; ++i) {
    if (!block.counts[i]) continue;
    if (i < 256) {
      coded[i] = {codes[i], lengths[i]};
    } else {  // the code of the distance, a zero bit, comes last
      const LengthCode& c = kLengthCodes[i - 256];
      coded[i] = {codes[c.symbol] | static_cast<uint32_t>(c.extra) << lengths[c.symbol], lengths[c.symbol] + c.extra_bits + 1u};
    }
    needed += size_t{block.counts[i]} * coded[i].size;
  }
  bits->reserve(needed);
  bits->put(is_last, 1), bits->put(2, 2);
  bits->put(used - 257, 5), bits->put(0, 5), bits->put(shown - 4, 4);
  for (size_t i = 0; i < shown; ++i) bits->put(head_lengths[kOrder[i]], 3);
  for (const LengthCode& c : head) bits->put(head_codes[c.symbol], head_lengths[c.symbol]), bits->put(c.extra, c.extra_bits);
  size_t i = 0;
  for (; i + 2 <= block.size; i += 2) {
    const auto &a = coded[block.tokens[i]], &b = coded[block.tokens[i + 1]];
    bits->put(a.bits | static_cast<uint64_t>(b.bits) << a.size, a.size + b.size);
  }
  if (i < block.size) bits->put(coded[block.tokens[i]].bits, coded[block.tokens[i]].size);
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
  const std::unique_ptr<uint16_t[]> room(new uint16_t[std::min(size, kBlock)]);
  size_t i = 0;
  do {
    Block block(room.get());
    while (i < size && block.size < kBlock) {
      const uint8_t byte = data[i];
      const size_t run = i && byte == data[i - 1] ? run_of(data + i, std::min(size - i, kLongest), byte) : 0;
      block.put(run >= kShortest ? run_token(run) : byte);
      i += run >= kShortest ? run : 1;
    }
    put_block(block, i == size, &bits);
  } while (i < size);
  bits.finish();
  const uint32_t sum = adler32(data, size);
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(sum >> shift));
}

}  // namespace mycelia::data
