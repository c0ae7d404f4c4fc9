// obfMetaData: 8 bytes that name the format, a seed of 8 bytes, and a masked MetaGraph. Its nodes have in `inputIndex` the number
// of a node of the file and how many of that node's inputs are its own, and the node's real primitive.
#include "obfuscation.h"

#include <cstring>

#include "kernels.h"
#include "schema.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr char kFormat[] = "MYCOBF1";  // with its zero

// splitmix64: a number for every 8 bytes.
void unmask(uint64_t seed, std::vector<uint8_t>* bytes) {
  for (size_t at = 0; at < bytes->size(); at += 8) {
    seed += 0x9E3779B97F4A7C15ull;
    uint64_t x = seed;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    x ^= x >> 31;
    for (size_t i = at; i < bytes->size() && i < at + 8; ++i) (*bytes)[i] ^= static_cast<uint8_t>(x >> (8 * (i - at)));
  }
}

}  // namespace

Status reveal(const Table& root, Revealed* revealed) {
  if (!root.get<uint8_t>(kMetaGraph_obfuscate)) return {};
  ask_for_part("obfuscation");
  const Span<uint8_t> data = root.span<uint8_t>(kMetaGraph_obfMetaData);
  if (data.size < 24 || std::memcmp(data.data, kFormat, 8) != 0) return {kNotSupported, "the model is obfuscated in a way that is not known"};
  uint64_t seed = 0;
  for (int i = 7; i >= 0; --i) seed = seed << 8 | data.data[8 + i];
  revealed->bytes.assign(data.data + 16, data.data + data.size);
  unmask(seed, &revealed->bytes);
  revealed->reader = std::make_unique<Reader>(revealed->bytes.data(), revealed->bytes.size());
  Reader& reader = *revealed->reader;
  const TableSpan nodes = Table(&reader, reader.follow(0)).tables(kMetaGraph_nodes);
  for (uint32_t i = 0; i < nodes.size() && reader.ok(); ++i) {
    const Span<uint32_t> numbers = nodes[i].span<uint32_t>(kCNode_inputIndex);
    if (numbers.size != 2) return {kGraphInvalid, "the model file is damaged: its obfuscation names no node"};
    const Table primitive = nodes[i].table(kCNode_primitive);
    HiddenNode hidden;
    hidden.inputs = numbers[1];
    if (primitive) {
      hidden.kind = primitive.get<uint8_t>(kPrimitive_value - 2);
      hidden.attributes = primitive.table(kPrimitive_value);
    }
    revealed->nodes[numbers[0]] = hidden;
  }
  return reader.ok() ? Status() : Status(kGraphInvalid, message({"the model file is damaged: its obfuscation: ", reader.fault()}));
}

}  // namespace mycelia::lite
