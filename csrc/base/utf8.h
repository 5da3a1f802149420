// Whether bytes are UTF-8: what is shown to Python must be.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace asc {

// Bytes of the character that begins the text, 0 where none does: overlong forms and surrogates are none (RFC 3629).
inline size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const auto is_between = [](unsigned b, unsigned low, unsigned high) { return b >= low && b <= high; };
  const auto follows = [&](size_t i) { return is_between(byte(i), 0x80, 0xBF); };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return s.empty() ? 0 : 1;
  if (is_between(first, 0xC2, 0xDF)) return follows(1) ? 2 : 0;
  if (is_between(first, 0xE0, 0xEF)) {
    const bool fits = is_between(second, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
    return fits && follows(2) ? 3 : 0;
  }
  if (!is_between(first, 0xF0, 0xF4)) return 0;
  const bool fits = is_between(second, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
  return fits && follows(2) && follows(3) ? 4 : 0;
}

inline bool is_utf8(std::string_view s) {
  while (!s.empty()) {
    if (uint64_t eight; s.size() >= sizeof eight) {  // most texts are ASCII
      std::memcpy(&eight, s.data(), sizeof eight);
      if ((eight & 0x8080808080808080ull) == 0) {
        s.remove_prefix(sizeof eight);
        continue;
      }
    }
    const size_t length = utf8_length(s);
    if (length == 0) return false;
    s.remove_prefix(length);
  }
  return true;
}

}  // namespace asc
