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

// The hash of much data, such as files: four chains side by side, so that memory is the limit. It finds damage and
// changes that happen; it does not withstand somebody who makes a second text of the same hash.
inline uint64_t hash_bulk(const void* data, size_t bytes) {
  constexpr size_t kLanes = 4;
  uint64_t lanes[kLanes] = {0x2D358DCCAA6C78A5ull, 0x8BB84B93962EACC9ull, 0x4B33A62ED433D4A3ull, 0x4D5A2DA51DE1AA47ull};
  const auto* p = static_cast<const unsigned char*>(data);
  const uint64_t total = bytes;
  for (; bytes >= kLanes * 16; p += kLanes * 16, bytes -= kLanes * 16) {
#pragma GCC unroll 4  // the lanes stay in registers
    for (size_t i = 0; i < kLanes; ++i) {
      uint64_t w[2];
      std::memcpy(w, p + i * 16, 16);
      lanes[i] = mix64(lanes[i] ^ w[0], w[1]) ^ (lanes[i] << 1);
    }
  }
  const uint64_t ends[] = {lanes[0], lanes[1], lanes[2], lanes[3], hash_bytes(p, bytes), total};
  return hash_words(ends, 6);
}

}  // namespace asc
