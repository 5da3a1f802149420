#include "backends/cpu/copy_nest.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/interleave_3.h"
#include "backends/cpu/transpose_16x16.h"
#include "backends/cpu/transpose_4x4.h"

namespace asc::cpu {
namespace {

// Input 0 to output 0. What is left of the nest after the innermost contiguous run became the block.
struct CopyTiling : Tiling {
  CopyTiling() {}  // leaves the loops uninitialised: only `rank` of them are read
  size_t bytes() const override { return sizeof(CopyTiling); }

  int rank;
  int64_t in_offset;
  int64_t block;  // bytes copied at a time
  Loop loops[kMaxLoops];
};

struct MemcpyTiling : TilingOf<MemcpyTiling> {
  int64_t in_offset, bytes_to_copy;
};

// Side of a transposed tile in elements: at most two cache lines.
template <size_t N>
constexpr int64_t kTile = N <= 4 ? 32 : 128 / static_cast<int64_t>(N);

template <size_t N>
inline void copy_fixed(char* to, const char* from) {
  std::memcpy(to, from, N);
}

Status launch_memcpy(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const MemcpyTiling*>(task.tiling);
  const char* from = task.input<char>(slots, 0) + t.in_offset;
  char* to = task.output<char>(slots, 0);
  if (to != from) std::memcpy(to, from, static_cast<size_t>(t.bytes_to_copy));
  return Status::kOk;
}

// Blocks of any size, one memcpy each.
Status launch_blocks(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const CopyTiling*>(task.tiling);
  const Loop last = t.loops[t.rank - 1];
  const size_t block = static_cast<size_t>(t.block);
  walk(t.loops, t.rank - 1, task.input<char>(slots, 0) + t.in_offset, task.output<char>(slots, 0),
       [&](const char* in, char* out) {
         for (int64_t i = 0; i < last.count; ++i, in += last.in_stride, out += last.out_stride)
           std::memcpy(out, in, block);
       });
  return Status::kOk;
}

template <size_t N>
inline void copy_strided(const char* in, char* out, const Loop& loop) {
  for (int64_t i = 0; i < loop.count; ++i, in += loop.in_stride, out += loop.out_stride) copy_fixed<N>(out, in);
}

template <size_t N>
inline void fill_run(const char* in, char* out, int64_t count) {
  constexpr int64_t kPer = N < 64 ? 64 / static_cast<int64_t>(N) : 1;  // copies in a cache line
  char line[kPer * N];
  const int64_t prepared = std::min(count, kPer);
  for (int64_t i = 0; i < prepared; ++i) copy_fixed<N>(line + i * static_cast<int64_t>(N), in);
  int64_t i = 0;
  for (; i + kPer <= count; i += kPer) copy_fixed<sizeof(line)>(out + i * static_cast<int64_t>(N), line);
  for (; i < count; ++i) copy_fixed<N>(out + i * static_cast<int64_t>(N), line);
}

// Blocks of N bytes, as registers.
template <size_t N>
Status launch_strided(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const CopyTiling*>(task.tiling);
  const Loop last = t.loops[t.rank - 1];
  const char* in = task.input<char>(slots, 0) + t.in_offset;
  char* out = task.output<char>(slots, 0);
  if (last.in_stride == 0 && last.out_stride == static_cast<int64_t>(N))
    walk(t.loops, t.rank - 1, in, out, [&](const char* i, char* o) { fill_run<N>(i, o, last.count); });
  else
    walk(t.loops, t.rank - 1, in, out, [&](const char* i, char* o) { copy_strided<N>(i, o, last); });
  return Status::kOk;
}

// One tile: `rows` is contiguous in the input, `columns` in the output.
template <size_t N>
inline void transpose_tile(const char* in, char* out, int64_t rows, int64_t columns, int64_t in_stride,
                           int64_t out_stride) {
  constexpr int64_t kBytes = static_cast<int64_t>(N);
  int64_t x = 0;
  if constexpr (N == 4) {
    const int64_t whole = columns / 4 * 4;
    for (; x + 4 <= rows; x += 4) {
      for (int64_t y = 0; y < whole; y += 4)
        transpose_4x4(in + x * 4 + y * in_stride, in_stride, out + x * out_stride + y * 4, out_stride);
      for (int64_t y = whole; y < columns; ++y)
        for (int64_t k = x; k < x + 4; ++k) copy_fixed<4>(out + k * out_stride + y * 4, in + k * 4 + y * in_stride);
    }
  }
  if constexpr (N == 1) {
    const int64_t whole = columns / 16 * 16;
    for (; x + 16 <= rows; x += 16) {
      for (int64_t y = 0; y < whole; y += 16)
        transpose_16x16(in + x + y * in_stride, in_stride, out + x * out_stride + y, out_stride);
      for (int64_t y = whole; y < columns; ++y)
        for (int64_t k = x; k < x + 16; ++k) out[k * out_stride + y] = in[k + y * in_stride];
    }
  }
  for (; x < rows; ++x)
    for (int64_t y = 0; y < columns; ++y)
      copy_fixed<N>(out + x * out_stride + y * kBytes, in + x * kBytes + y * in_stride);
}

// A tile through a small buffer: every cache line of input and output is touched once, in one go, which keeps strides
// of powers of two from evicting each other.
template <size_t N>
inline void transpose_buffered(const char* in, char* out, int64_t rows, int64_t columns, int64_t in_stride,
                               int64_t out_stride) {
  constexpr int64_t kRow = kTile<N> * static_cast<int64_t>(N);
  char buffer[kTile<N> * kRow];
  if (rows == kTile<N>) {
    for (int64_t y = 0; y < columns; ++y) copy_fixed<kRow>(buffer + y * kRow, in + y * in_stride);
  } else {
    for (int64_t y = 0; y < columns; ++y) std::memcpy(buffer + y * kRow, in + y * in_stride, rows * N);
  }
  transpose_tile<N>(buffer, out, rows, columns, kRow, out_stride);
}

// The two inner loops swap the contiguous dimension: in tiles that stay in the first-level cache.
template <size_t N>
Status launch_transpose(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const CopyTiling*>(task.tiling);
  const Loop rows = t.loops[t.rank - 2], columns = t.loops[t.rank - 1];
  constexpr int64_t kBytes = static_cast<int64_t>(N), kSide = kTile<N>;
  const bool is_small = rows.count <= kSide && columns.count <= kSide;
  walk(t.loops, t.rank - 2, task.input<char>(slots, 0) + t.in_offset, task.output<char>(slots, 0),
       [&](const char* in, char* out) {
         if constexpr (N == 4) {
           if (columns.count == 3 && rows.out_stride == 12) return interleave_3(in, columns.in_stride, out, rows.count);
           if (rows.count == 3 && columns.in_stride == 12) return split_3(in, out, rows.out_stride, columns.count);
         }
         if constexpr (N == 1) {
           if (columns.count == 3 && rows.out_stride == 3)
             return interleave_3_bytes(in, columns.in_stride, out, rows.count);
         }
         if (is_small) return transpose_tile<N>(in, out, rows.count, columns.count, columns.in_stride, rows.out_stride);
         for (int64_t y = 0; y < columns.count; y += kSide)
           for (int64_t x = 0; x < rows.count; x += kSide)
             transpose_buffered<N>(in + x * kBytes + y * columns.in_stride, out + x * rows.out_stride + y * kBytes,
                                   std::min(kSide, rows.count - x), std::min(kSide, columns.count - y),
                                   columns.in_stride, rows.out_stride);
       });
  return Status::kOk;
}

LaunchFn find_strided(int64_t block) {
  switch (block) {
    case 1:
      return launch_strided<1>;
    case 2:
      return launch_strided<2>;
    case 4:
      return launch_strided<4>;
    case 8:
      return launch_strided<8>;
    case 16:
      return launch_strided<16>;
    case 32:
      return launch_strided<32>;
    case 64:
      return launch_strided<64>;
    default:
      return launch_blocks;
  }
}

LaunchFn find_transpose(int64_t block) {
  switch (block) {
    case 1:
      return launch_transpose<1>;
    case 2:
      return launch_transpose<2>;
    case 4:
      return launch_transpose<4>;
    case 8:
      return launch_transpose<8>;
    case 16:
      return launch_transpose<16>;
    default:
      return nullptr;
  }
}

// Where an outer loop is contiguous in the input and the last one in the output, moves it next to the last. A last
// loop that repeats one element is a fill instead.
bool arrange_transpose(CopyTiling& t) {
  if (t.rank < 2 || t.loops[t.rank - 1].out_stride != t.block || t.loops[t.rank - 1].in_stride == 0) return false;
  for (int d = t.rank - 2; d >= 0; --d) {
    if (t.loops[d].in_stride != t.block) continue;
    const Loop rows = t.loops[d];
    for (int i = d; i < t.rank - 2; ++i) t.loops[i] = t.loops[i + 1];
    t.loops[t.rank - 2] = rows;
    return true;
  }
  return false;
}

}  // namespace

void CopyNest::add(int64_t count, int64_t in_stride, int64_t out_stride) {
  if (count == 1) return;
  is_empty_ |= count == 0;
  const auto size = static_cast<int64_t>(element_bytes_);
  in_stride *= size;
  out_stride *= size;
  if (rank_ > 0) {
    Loop& outer = loops_[rank_ - 1];
    if (outer.in_stride == count * in_stride && outer.out_stride == count * out_stride) {
      outer = {outer.count * count, in_stride, out_stride};
      return;
    }
  }
  loops_[rank_++] = {count, in_stride, out_stride};
}

std::shared_ptr<const Tiling> CopyNest::create_copy_tiling() const {
  if (is_empty_) return create_empty_tiling();
  const auto size = static_cast<int64_t>(element_bytes_);
  int rank = rank_;
  int64_t block = size;
  if (rank > 0 && loops_[rank - 1].in_stride == size && loops_[rank - 1].out_stride == size)
    block = loops_[--rank].count * size;
  if (rank == 0) {
    auto t = create_tiling<MemcpyTiling>(launch_memcpy, "memcpy");
    t->in_offset = in_offset_;
    t->bytes_to_copy = block;
    t->over_inputs = in_offset_ == 0 ? 1 : 0;  // where the result lies over the input, all is done
    return t;
  }
  auto t = create_tiling<CopyTiling>(find_strided(block), "strided");
  t->rank = rank;
  t->in_offset = in_offset_;
  t->block = block;
  for (int i = 0; i < rank; ++i) t->loops[i] = loops_[i];
  if (find_transpose(block) && arrange_transpose(*t)) {
    t->launch = find_transpose(block);
    t->implementation = "transpose";
  }
  return t;
}

}  // namespace asc::cpu
