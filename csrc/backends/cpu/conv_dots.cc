// Convolution with few output positions and weights that are no constant: what each position sees is a row, and every
// output a dot product with weights where they lie. To reorder or pack them at each launch would take longer.
#include <algorithm>
#include <vector>

#include "backends/cpu/conv.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/small_gemm.h"
#include "backends/cpu/transpose_4x4.h"

namespace asc::cpu {
namespace {

constexpr int64_t kOutside = -1;

struct DotsConv : Tiling {
  ConvShape shape;
  std::vector<int64_t> seen;  // by position and kernel position: where in a plane of the input, or kOutside
  size_t sums_offset = 0;
  int threads = 1;
  int64_t parts = 1;  // of the outputs

  size_t bytes() const override { return sizeof(DotsConv) + seen.size() * sizeof(int64_t); }
  int64_t rows() const { return shape.batch * shape.output_size(); }
  bool lies_as_row() const { return shape.is_pointwise() && shape.output_size() == 1; }
};

std::vector<int64_t> positions_seen(const ConvShape& s) {
  std::vector<int64_t> seen;
  seen.reserve(static_cast<size_t>(s.output_size() * s.kernel_size()));
  const auto size = [&s](int axis, bool of_kernel) { return of_kernel ? s.kernel[axis] : s.output[axis]; };
  const auto for_each = [&size](bool of_kernel, auto f) {
    for (int64_t z = 0; z < size(0, of_kernel); ++z)
      for (int64_t y = 0; y < size(1, of_kernel); ++y)
        for (int64_t x = 0; x < size(2, of_kernel); ++x) f(z, y, x);
  };
  for_each(false, [&](int64_t oz, int64_t oy, int64_t ox) {
    for_each(true, [&](int64_t kz, int64_t ky, int64_t kx) {
      const int64_t z = s.position(0, oz, kz), y = s.position(1, oy, ky), x = s.position(2, ox, kx);
      const bool is_inside = s.is_inside(0, z) && s.is_inside(1, y) && s.is_inside(2, x);
      seen.push_back(is_inside ? (z * s.input[1] + y) * s.input[2] + x : kOutside);
    });
  });
  return seen;
}

// Rows of one image, a position each.
void unfold_rows(const DotsConv& t, const float* image, float* to) {
  const ConvShape& s = t.shape;
  const int64_t kernel = s.kernel_size();
  const int64_t* seen = t.seen.data();
  for (int64_t p = 0; p < s.output_size(); ++p, seen += kernel) {
    const float* plane = image;
    for (int64_t c = 0; c < s.channels; ++c, plane += s.input_size())
      for (int64_t k = 0; k < kernel; ++k) *to++ = seen[k] == kOutside ? 0.0f : plane[seen[k]];
  }
}

Status launch_dots(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const DotsConv*>(task.tiling);
  const ConvShape& s = t.shape;
  const auto* x = task.input<float>(slots, 0);
  auto* y = task.output<float>(slots, 0);
  auto* workspace = static_cast<char*>(task.workspace(slots));
  const int64_t size = s.output_size();
  auto* rows = reinterpret_cast<float*>(workspace);
  auto* sums = size == 1 ? y : reinterpret_cast<float*>(workspace + t.sums_offset);
  for (int64_t i = 0; i < s.batch && !t.lies_as_row(); ++i)
    unfold_rows(t, x + i * s.channels * s.input_size(), rows + i * size * s.depth());
  parallel_for(t.threads, t.parts, [&](int64_t part) {
    const Part own = part_of(s.out_channels, 4, t.parts, part);
    SmallGemmArgs g;
    g.m = t.rows(), g.n = own.end - own.begin, g.k = s.depth();
    g.a = t.lies_as_row() ? x : rows, g.a_row = s.depth();
    g.b = task.input<float>(slots, 1) + own.begin * s.depth(), g.ldb = s.depth();
    g.c = sums + own.begin, g.ldc = s.out_channels;
    g.add = s.has_bias ? task.input<float>(slots, 2) + own.begin : nullptr;
    small_gemm().dots(g);
  });
  for (int64_t i = 0; i < s.batch && sums != y; ++i)
    transpose_rows(sums + i * size * s.out_channels, s.out_channels, size, s.out_channels,
                   y + i * s.out_channels * size, size);
  return Status::kOk;
}

}  // namespace

bool wants_dots(const TilingContext& ctx, const ConvShape& s) {
  constexpr int64_t kShortSum = 32;  // the ends of dot products weigh more
  return !ctx.is_constant(1) && s.groups == 1 && s.depth() >= kShortSum &&
         prefers_dots(s.batch * s.output_size(), s.out_channels, s.depth());
}

std::shared_ptr<const Tiling> tile_dots(const ConvShape& s, int threads) {
  constexpr int64_t kOutputsOfPart = 32;
  auto t = create_tiling<DotsConv>(launch_dots, "vector:dots");
  t->shape = s;
  t->threads = threads;
  if (threads > 1) t->parts = std::clamp<int64_t>(s.out_channels / kOutputsOfPart, 1, 2 * threads);
  if (!t->lies_as_row()) {
    t->seen = positions_seen(s);
    t->sums_offset = round_up(static_cast<size_t>(t->rows() * s.depth()) * sizeof(float));
  }
  const int64_t sums = s.output_size() == 1 ? 0 : t->rows() * s.out_channels;
  t->workspace_bytes = t->sums_offset + static_cast<size_t>(sums) * sizeof(float);
  return t;
}

}  // namespace asc::cpu
