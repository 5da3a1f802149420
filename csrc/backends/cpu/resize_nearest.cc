// Resize by nearest neighbours: rows are gathered by a table; rows and planes that repeat are copied.
#include <cstring>

#include "backends/cpu/cast.h"
#include "backends/cpu/resize.h"

namespace asc::cpu {
namespace {

struct NearestLevel {
  int64_t in_block = 0, out_block = 0;  // bytes of one entry
  std::vector<int64_t> positions;
};

struct NearestTiling : Tiling {
  int64_t outer = 1, in_bytes = 0, out_bytes = 0;  // of one outer entry
  int64_t repeat = 0;                              // where each element of a row is only repeated: how often
  std::vector<NearestLevel> levels;
  uint64_t fill = 0;  // the extrapolation value, in the first bytes
  size_t bytes() const override {
    size_t n = sizeof(NearestTiling);
    for (const NearestLevel& level : levels) n += sizeof(level) + level.positions.size() * sizeof(int64_t);
    return n;
  }
};

template <int64_t kTimes, typename T>
void repeat_fixed(const T* in, int64_t count, T* out) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < kTimes; ++k) out[i * kTimes + k] = in[i];
}

template <typename T>
void repeat_elements(const T* in, int64_t count, int64_t times, T* out) {
  if (times == 2) return repeat_fixed<2>(in, count, out);
  if (times == 4) return repeat_fixed<4>(in, count, out);
  if (times == 8) return repeat_fixed<8>(in, count, out);
  for (int64_t i = 0; i < count; ++i, out += times) std::fill_n(out, times, in[i]);
}

template <typename T>
void fill_block(const NearestTiling& t, T* out, int64_t bytes) {
  T value;
  std::memcpy(&value, &t.fill, sizeof(T));
  std::fill_n(out, bytes / static_cast<int64_t>(sizeof(T)), value);
}

template <typename T>
void gather_row(const NearestTiling& t, const NearestLevel& level, const T* in, T* out) {
  const auto count = static_cast<int64_t>(level.positions.size());
  if (t.repeat > 0) return repeat_elements(in, count / t.repeat, t.repeat, out);
  const int64_t* positions = level.positions.data();
  for (int64_t i = 0; i < count; ++i) {
    if (positions[i] >= 0)
      out[i] = in[positions[i]];
    else
      fill_block(t, out + i, sizeof(T));
  }
}

template <typename T>
void resize_level(const NearestTiling& t, size_t depth, const char* in, char* out) {
  const NearestLevel& level = t.levels[depth];
  const bool is_last = depth + 1 == t.levels.size();
  if (is_last && level.in_block == sizeof(T))
    return gather_row(t, level, reinterpret_cast<const T*>(in), reinterpret_cast<T*>(out));
  int64_t previous = -1;
  for (const int64_t position : level.positions) {
    if (position < 0)
      fill_block(t, reinterpret_cast<T*>(out), level.out_block);
    else if (position == previous)
      std::memcpy(out, out - level.out_block, level.out_block);
    else if (is_last)
      std::memcpy(out, in + position * level.in_block, level.out_block);
    else
      resize_level<T>(t, depth + 1, in + position * level.in_block, out);
    previous = position;
    out += level.out_block;
  }
}

template <typename T>
Status launch_nearest(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const NearestTiling*>(task.tiling);
  const char* in = task.input<char>(slots, 0);
  char* out = task.output<char>(slots, 0);
  for (int64_t i = 0; i < t.outer; ++i, in += t.in_bytes, out += t.out_bytes) {
    if (t.levels.empty())
      std::memcpy(out, in, t.out_bytes);
    else
      resize_level<T>(t, 0, in, out);
  }
  return Status::kOk;
}

LaunchFn find_nearest(size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return launch_nearest<uint8_t>;
    case 2:
      return launch_nearest<uint16_t>;
    case 4:
      return launch_nearest<uint32_t>;
    default:
      return launch_nearest<uint64_t>;
  }
}

// How often each element is repeated where the axis only repeats, else 0.
int64_t repeats_of(const NearestLevel& level, int64_t in) {
  const auto out = static_cast<int64_t>(level.positions.size());
  if (out % in != 0) return 0;
  const int64_t times = out / in;
  for (int64_t i = 0; i < out; ++i)
    if (level.positions[i] != i / times) return 0;
  return times;
}

}  // namespace

std::shared_ptr<const Tiling> tile_nearest_resize(const TilingContext& ctx, const ResizeRules& rules,
                                                  const ResizeGeometry& g) {
  const auto size = static_cast<int64_t>(size_of(ctx.dtype(0)));
  auto t = std::make_shared<NearestTiling>();
  t->launch = find_nearest(static_cast<size_t>(size));
  t->implementation = "rows:nearest";
  cast_row(DType::kFloat32, ctx.dtype(0))(&rules.extrapolation, &t->fill, 1);
  int first = 0, last = g.rank;  // the axes that change
  while (first < last && is_identity(rules, g.axes[first])) t->outer *= g.axes[first++].in;
  while (last > first && is_identity(rules, g.axes[last - 1])) --last;
  t->in_bytes = t->out_bytes = size;
  for (int i = g.rank - 1; i >= first; --i) {
    const ResizeAxis& a = g.axes[i];
    if (i < last) t->levels.insert(t->levels.begin(), {t->in_bytes, t->out_bytes, nearest_positions(rules, a)});
    t->in_bytes *= a.in;
    t->out_bytes *= a.out;
  }
  if (first == last) t->in_bytes = t->out_bytes = size * t->outer, t->outer = 1;
  if (!t->levels.empty() && t->levels.back().in_block == size)
    t->repeat = repeats_of(t->levels.back(), g.axes[last - 1].in);
  return t;
}

}  // namespace asc::cpu
