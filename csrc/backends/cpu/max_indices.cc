// MaxPool with its second output, the position of each maximum in the input, position by position.
#include "backends/cpu/nn.h"
#include "backends/cpu/plain_window.h"

namespace asc::cpu {
namespace {

struct MaxIndicesTiling : TilingOf<MaxIndicesTiling> {
  PlainWindow window;
  int64_t planes = 0;
  bool is_column_major = false;  // storage_order: how positions inside a plane are counted
};

// The first largest element that output (z, y, x) sees in a plane; NaN wins. -1 where it sees none.
template <typename T>
int64_t find_maximum(const PlainWindow& w, const T* plane, int64_t z, int64_t y, int64_t x) {
  const IndexRange kz = inside_kernel(w, 0, z), ky = inside_kernel(w, 1, y), kx = inside_kernel(w, 2, x);
  int64_t best = -1;
  for (int64_t a = kz.low; a < kz.high; ++a)
    for (int64_t b = ky.low; b < ky.high; ++b)
      for (int64_t c = kx.low; c < kx.high; ++c) {
        const int64_t at = (w.position(0, z, a) * w.input[1] + w.position(1, y, b)) * w.input[2] + w.position(2, x, c);
        if (best < 0 || plane[at] > plane[best] || (plane[at] != plane[at] && plane[best] == plane[best])) best = at;
      }
  return best;
}

int64_t column_major(const PlainWindow& w, int64_t at) {
  const int64_t x = at % w.input[2], y = at / w.input[2] % w.input[1], z = at / (w.input[2] * w.input[1]);
  return (x * w.input[1] + y) * w.input[0] + z;
}

template <typename T>
Status launch_max_indices(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const MaxIndicesTiling*>(task.tiling);
  const PlainWindow& w = t.window;
  const T* plane = task.input<T>(slots, 0);
  T* out = task.has_output(slots, 0) ? task.output<T>(slots, 0) : nullptr;
  int64_t* indices = task.has_output(slots, 1) ? task.output<int64_t>(slots, 1) : nullptr;
  int64_t k = 0;
  for (int64_t p = 0; p < t.planes; ++p, plane += w.input_size())
    for (int64_t z = 0; z < w.output[0]; ++z)
      for (int64_t y = 0; y < w.output[1]; ++y)
        for (int64_t x = 0; x < w.output[2]; ++x, ++k) {
          const int64_t at = find_maximum(w, plane, z, y, x);
          if (at < 0) return worker.fail(Status::kInvalidValue, "a window lies in the padding alone; reduce the pads");
          if (out) out[k] = plane[at];
          if (indices) indices[k] = p * w.input_size() + (t.is_column_major ? column_major(w, at) : at);
        }
  return Status::kOk;
}

LaunchFn find_launch(const TilingContext& ctx) {
  switch (ctx.dtype(0)) {
    case DType::kFloat32:
      return launch_max_indices<float>;
    case DType::kFloat64:
      return launch_max_indices<double>;
    case DType::kInt8:
      return launch_max_indices<int8_t>;
    case DType::kUInt8:
      return launch_max_indices<uint8_t>;
    default:
      ctx.unsupported(std::string("element type ") + name_of(ctx.dtype(0)) + "; insert a Cast");
  }
}

}  // namespace

std::shared_ptr<const Tiling> tile_max_indices(const TilingContext& ctx) {
  auto t = create_tiling<MaxIndicesTiling>(find_launch(ctx), "scalar:indices");
  t->window = make_plain_window(ctx, ctx.attributes().get_ints("kernel_shape").data(), true);
  t->planes = ctx.input(0)[0] * ctx.input(0)[1];
  t->is_column_major = ctx.attr("storage_order", 0) != 0;
  return t;
}

}  // namespace asc::cpu
