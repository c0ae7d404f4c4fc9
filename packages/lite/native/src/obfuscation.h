// Obfuscated models: what their nodes really are stands masked in MetaGraph.obfMetaData.
#ifndef MYCELIA_LITE_OBFUSCATION_H_
#define MYCELIA_LITE_OBFUSCATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "flatbuffer.h"
#include "status.h"

namespace mycelia::lite {

struct HiddenNode {
  uint8_t kind = 0;  // 0: the node computes nothing that is used
  Table attributes;
  size_t inputs = 0;  // so many are its own
};

struct Revealed {
  std::vector<uint8_t> bytes;
  std::unique_ptr<Reader> reader;  // of `bytes`
  std::map<uint32_t, HiddenNode> nodes;  // by their number in the file
};

// Nothing for a model that is not obfuscated; fails for one that others obfuscated.
Status reveal(const Table& root, Revealed* revealed);

}  // namespace mycelia::lite

#endif
