// 64-bit mixing for cache keys. Hashes only find candidates: every look-up compares keys in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace asc {

// Folded 64x64 -> 128 bit multiplication, the mixing step of wyhash (public domain).
inline uint64_t mix64(uint64_t a, uint64_t b) {
  const unsigned __int128 m = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15ull) * (b ^ 0xE7037ED1A0B428DBull);
  return static_cast<uint64_t>(m) ^ static_cast<uint64_t>(m >> 64);
}

inline uint64_t hash_words(const uint64_t* words, size_t count) {
  uint64_t h = 0xA0761D6478BD642Full ^ count;
  size_t i = 0;
  for (; i + 1 < count; i += 2) h = mix64(h ^ words[i], words[i + 1]);
  if (i < count) h = mix64(h ^ words[i], 0x8EBC6AF09C88C6E3ull);
  return mix64(h, count);
}

inline uint64_t hash_bytes(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t h = 0x2D358DCCAA6C78A5ull ^ bytes;
  for (; bytes >= 8; p += 8, bytes -= 8) {
    uint64_t w;
    std::memcpy(&w, p, 8);
    h = mix64(h, w);
  }
  uint64_t tail = 0;
  if (bytes) std::memcpy(&tail, p, bytes);
  return mix64(h ^ tail, bytes);
}

}  // namespace asc
