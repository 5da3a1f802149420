// RandomUniformLike, RandomNormalLike: numbers by Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", 2011). A block of four numbers is a function of a key and of the block's number, so
// that parts may be made in any order. A seed is the key, and blocks count from 0 at every run; without one, the key is
// the process's, and no block is used twice.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include "backends/cpu/movement.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/tiling_base.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

constexpr int64_t kBlock = 4, kTile = 256;  // numbers

struct RandomTiling : TilingOf<RandomTiling> {
  int64_t count = 0;
  bool is_normal = false, is_seeded = false;
  uint64_t seed = 0;
  float scale = 1, shift = 0;  // of uniform numbers in [0, 1), or of normal ones
  int threads = 1;
};

struct RandomStream {
  uint64_t key, first_block;
};

RandomStream next_of_process(int64_t blocks) {
  static const uint64_t key = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  static std::atomic<uint64_t> used{0};
  // A forked child counts on from where its parent was.
  const auto process = static_cast<uint64_t>(getpid());
  return {key ^ process * 0x9E3779B97F4A7C15u, used.fetch_add(static_cast<uint64_t>(blocks))};
}

// `blocks` blocks of bits from block `first` on.
void fill_bits(uint64_t key, uint64_t first, int64_t blocks, uint32_t* to) {
  for (int64_t i = 0; i < blocks; ++i, to += kBlock) {
    const uint64_t number = first + static_cast<uint64_t>(i);
    uint32_t c[kBlock] = {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0};
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
      c[0] = static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0;
      c[1] = static_cast<uint32_t>(b);
      c[2] = static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1;
      c[3] = static_cast<uint32_t>(a);
    }
    std::memcpy(to, c, sizeof c);
  }
}

// In [0, 1), in steps of 2^-24.
float unit_of(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// Pairs of normal numbers by Box and Muller: the first half of a tile from cosines, the second from sines.
void make_normal(const uint32_t* bits, float* y) {
  constexpr int64_t kHalf = kTile / 2;
  const VecTable& v = vec_table();
  float radius[kHalf], angle[kHalf];
  for (int64_t i = 0; i < kHalf; ++i) {
    radius[i] = (static_cast<float>(bits[i]) + 1.0f) * 0x1p-32f;  // in (0, 1]
    angle[i] = unit_of(bits[kHalf + i]) * 6.283185307f;
  }
  v.log(radius, radius, kHalf);
  v.scale_shift(radius, radius, kHalf, -2.0f, 0.0f);
  v.sqrt(radius, radius, kHalf);
  v.cos(angle, y, kHalf);
  v.sin(angle, y + kHalf, kHalf);
  v.mul.vv(y, radius, y, kHalf);
  v.mul.vv(y + kHalf, radius, y + kHalf, kHalf);
}

Status launch_random(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const RandomTiling*>(task.tiling);
  auto* y = task.output<float>(slots, 0);
  const int64_t tiles = (t.count + kTile - 1) / kTile;
  const RandomStream stream = t.is_seeded ? RandomStream{t.seed, 0} : next_of_process(tiles * kTile / kBlock);
  parallel_for(t.threads, t.threads, [&](int64_t part) {
    const Part own = part_of(tiles, 1, t.threads, part);
    uint32_t bits[kTile];
    float numbers[kTile];
    for (int64_t tile = own.begin; tile < own.end; ++tile) {
      fill_bits(stream.key, stream.first_block + static_cast<uint64_t>(tile * kTile / kBlock), kTile / kBlock, bits);
      if (t.is_normal)
        make_normal(bits, numbers);
      else
        std::transform(bits, bits + kTile, numbers, unit_of);
      const int64_t n = std::min(kTile, t.count - tile * kTile);
      vec_table().scale_shift(numbers, y + tile * kTile, static_cast<size_t>(n), t.scale, t.shift);
    }
  });
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_random(const TilingContext& ctx) {
  constexpr double kNumberCost = 20;  // operations that take as long as one number
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  auto t = create_tiling<RandomTiling>(launch_random, "philox");
  const Attributes& attributes = ctx.attributes();
  t->count = count_of(ctx.output(0));
  t->is_normal = ctx.node().op == "RandomNormalLike";
  t->is_seeded = attributes.has("seed");
  const auto seed = static_cast<float>(attributes.get_float("seed", 0.0));
  std::memcpy(&t->seed, &seed, sizeof seed);
  if (t->is_normal) {
    t->scale = static_cast<float>(attributes.get_float("scale", 1.0));
    t->shift = static_cast<float>(attributes.get_float("mean", 0.0));
  } else {
    t->shift = static_cast<float>(attributes.get_float("low", 0.0));
    t->scale = static_cast<float>(attributes.get_float("high", 1.0)) - t->shift;
  }
  t->threads = threads_for(ctx, kNumberCost * static_cast<double>(t->count));
  return t;
}

}  // namespace

void register_random(KernelRegistry& registry) {
  registry.add("RandomUniformLike", kAnyType, tile_random);
  registry.add("RandomNormalLike", kAnyType, tile_random);
}

}  // namespace asc::cpu
