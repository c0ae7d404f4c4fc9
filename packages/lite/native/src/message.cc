#include "message.h"

namespace mycelia::lite {

std::string message(std::initializer_list<Piece> pieces) {
  std::string made;
  for (const Piece& piece : pieces) {
    if (!piece.text) made += std::to_string(piece.count);
    else if (piece.count < 0) made += piece.text;
    else made.append(piece.text, static_cast<size_t>(piece.count));
  }
  return made;
}

}  // namespace mycelia::lite
