// Messages and keys of pieces, by one call: chains of + would be a fifth of the runtime's code.
#ifndef MYCELIA_LITE_MESSAGE_H_
#define MYCELIA_LITE_MESSAGE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace mycelia::lite {

// A text, which must live as long as the call, or a whole number.
struct Piece {
  const char* text = nullptr;  // null: the number
  int64_t count = -1;  // of the text's characters, -1: it ends with a zero

  Piece(const char* given) : text(given) {}
  Piece(std::string_view given) : text(given.data() ? given.data() : ""), count(static_cast<int64_t>(given.size())) {}
  Piece(const std::string& given) : Piece(std::string_view(given)) {}
  template <class Number, class = std::enable_if_t<std::is_integral_v<Number> || std::is_enum_v<Number>>>
  Piece(Number number) : count(static_cast<int64_t>(number)) {
    static_assert(!std::is_same_v<Number, char> && !std::is_same_v<Number, bool>, "a text or a number");
  }
};

std::string message(std::initializer_list<Piece> pieces);

}  // namespace mycelia::lite

#endif
