#include "base/bulk_hash.h"

#include <cstring>

#include "base/hash.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ASC_HAS_TARGETS 1
#else
#define ASC_HAS_TARGETS 0
#endif

namespace asc {
namespace {

// 32 lanes of two words, each updated by every 256th byte and its neighbours. A step can be undone where the data are
// known, so that two states that differ stay different until other data differ.
constexpr size_t kWords = 32;
constexpr size_t kBlock = 2 * kWords * sizeof(uint32_t);
constexpr uint32_t kFactor = 0x9E3779B1u;

template <size_t kBytes>
struct VectorOf {
  typedef uint32_t type __attribute__((vector_size(kBytes)));
};

// Vectors of any width compute the same: an operation acts on each word by itself.
template <size_t kBytes>
[[gnu::always_inline]] inline void update(uint32_t* state, const unsigned char* p, size_t blocks) {
  using Vector = typename VectorOf<kBytes>::type;
  constexpr size_t kCount = kBlock / 2 / kBytes;
  Vector a[kCount], b[kCount];
  std::memcpy(a, state, sizeof a);
  std::memcpy(b, state + kWords, sizeof b);
  for (; blocks != 0; --blocks, p += kBlock) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kCount; ++i) {
      Vector x, y;
      std::memcpy(&x, p + i * kBytes, kBytes);
      std::memcpy(&y, p + kBlock / 2 + i * kBytes, kBytes);
      b[i] ^= y;
      a[i] = (a[i] ^ x) + b[i] * kFactor;
      b[i] ^= (a[i] << 13) | (a[i] >> 19);
    }
  }
  std::memcpy(state, a, sizeof a);
  std::memcpy(state + kWords, b, sizeof b);
}

using Update = void (*)(uint32_t*, const unsigned char*, size_t);

void update_16(uint32_t* state, const unsigned char* p, size_t blocks) { update<16>(state, p, blocks); }

#if ASC_HAS_TARGETS
__attribute__((target("avx2"))) void update_32(uint32_t* state, const unsigned char* p, size_t blocks) {
  update<32>(state, p, blocks);
}
__attribute__((target("avx512f"))) void update_64(uint32_t* state, const unsigned char* p, size_t blocks) {
  update<64>(state, p, blocks);
}
#endif

Update choose_update() {
#if ASC_HAS_TARGETS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return update_64;
  if (__builtin_cpu_supports("avx2")) return update_32;
#endif
  return update_16;
}

}  // namespace

uint64_t hash_bulk(const void* data, size_t bytes) {
  static const Update kUpdate = choose_update();
  const auto* p = static_cast<const unsigned char*>(data);
  const size_t blocks = bytes / kBlock, rest = bytes % kBlock;
  uint32_t state[2 * kWords];
  for (size_t i = 0; i < 2 * kWords; ++i) state[i] = static_cast<uint32_t>(i + 1) * kFactor;
  kUpdate(state, p, blocks);
  uint64_t ends[kWords + 2];
  std::memcpy(ends, state, sizeof state);
  ends[kWords] = hash_bytes(p + blocks * kBlock, rest);
  ends[kWords + 1] = bytes;
  return hash_words(ends, kWords + 2);
}

}  // namespace asc
