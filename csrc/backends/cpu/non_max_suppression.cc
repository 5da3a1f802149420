// NonMaxSuppression: per class, the best-scored boxes that overlap no better one too much. Ties go to the lower box
// number. The number of selected boxes is written to the task's extent.
#include <algorithm>
#include <string>

#include "backends/cpu/image.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

struct NmsTiling : TilingOf<NmsTiling> {
  int64_t batches = 0, classes = 0, boxes = 0;
  int64_t limit = 0;  // boxes to select per class, at most `boxes`
  bool is_center = false;
  size_t corners_offset = 0;  // in the workspace, behind the candidates
};

struct Candidate {
  float score;
  int64_t box;
};

struct Corners {
  float low[2], high[2], area;
};

// Worst first, as heaps want it. NaN is the worst score.
bool is_worse(const Candidate& a, const Candidate& b) {
  const bool a_is_nan = a.score != a.score, b_is_nan = b.score != b.score;
  if (a_is_nan != b_is_nan) return a_is_nan;
  if (!a_is_nan && a.score != b.score) return a.score < b.score;
  return a.box > b.box;
}

Corners corners_of(const float* box, bool is_center) {
  Corners c;
  for (int i = 0; i < 2; ++i) {
    if (is_center) {
      c.low[i] = box[i] - box[i + 2] / 2;
      c.high[i] = box[i] + box[i + 2] / 2;
    } else {
      c.low[i] = std::min(box[i], box[i + 2]);
      c.high[i] = std::max(box[i], box[i + 2]);
    }
  }
  c.area = (c.high[0] - c.low[0]) * (c.high[1] - c.low[1]);
  return c;
}

bool overlaps(const Corners& a, const Corners& b, float threshold) {
  const float height = std::min(a.high[0], b.high[0]) - std::max(a.low[0], b.low[0]);
  const float width = std::min(a.high[1], b.high[1]) - std::max(a.low[1], b.low[1]);
  if (!(height > 0 && width > 0 && a.area > 0 && b.area > 0)) return false;
  const float shared = height * width, together = a.area + b.area - shared;
  return together > 0 && shared / together > threshold;
}

// The boxes of one class, best first; returns the end of what is written to `out`.
int64_t* select(const NmsTiling& t, const float* boxes, Candidate* candidates, int64_t count, Corners* selected,
                float threshold, int64_t batch, int64_t class_number, int64_t* out) {
  std::make_heap(candidates, candidates + count, is_worse);
  int64_t found = 0;
  for (; count > 0 && found < t.limit; --count) {
    std::pop_heap(candidates, candidates + count, is_worse);
    const int64_t box = candidates[count - 1].box;
    const Corners c = corners_of(boxes + 4 * box, t.is_center);
    bool is_free = true;
    for (int64_t i = 0; is_free && i < found; ++i) is_free = !overlaps(c, selected[i], threshold);
    if (!is_free) continue;
    selected[found++] = c;
    *out++ = batch;
    *out++ = class_number;
    *out++ = box;
  }
  return out;
}

Status launch_nms(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const NmsTiling*>(task.tiling);
  const float *boxes = task.input<float>(slots, 0), *scores = task.input<float>(slots, 1);
  const float threshold = task.has_input(slots, 3) ? *task.input<float>(slots, 3) : 0.0f;
  const float* score_threshold = task.has_input(slots, 4) ? task.input<float>(slots, 4) : nullptr;
  if (!(threshold >= 0 && threshold <= 1))
    return worker.fail(Status::kInvalidValue, "iou_threshold is " + std::to_string(threshold) + "; expected 0 to 1");
  auto* workspace = static_cast<char*>(task.workspace(slots));
  auto* candidates = reinterpret_cast<Candidate*>(workspace);
  auto* selected = reinterpret_cast<Corners*>(workspace + t.corners_offset);
  int64_t* const begin = task.output<int64_t>(slots, 0);
  int64_t* out = begin;
  for (int64_t list = 0; t.limit > 0 && list < t.batches * t.classes; ++list, scores += t.boxes) {
    int64_t count = 0;
    for (int64_t i = 0; i < t.boxes; ++i)
      if (!score_threshold || scores[i] > *score_threshold) candidates[count++] = {scores[i], i};
    const int64_t batch = list / t.classes;
    out = select(t, boxes + batch * t.boxes * 4, candidates, count, selected, threshold, batch, list % t.classes, out);
  }
  int64_t* extent = task.extent(slots);
  extent[0] = (out - begin) / 3;
  extent[1] = 3;
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_nms(const TilingContext& ctx) {
  const Shape& scores = ctx.input(1);
  auto t = create_tiling<NmsTiling>(launch_nms, "heap");
  t->batches = scores[0], t->classes = scores[1], t->boxes = scores[2];
  t->limit = ctx.has_input(2) ? std::clamp<int64_t>(read_int(ctx, 2), 0, t->boxes) : 0;
  t->is_center = ctx.attr("center_point_box", 0) != 0;
  t->corners_offset = round_up(static_cast<size_t>(t->boxes) * sizeof(Candidate));
  t->workspace_bytes = t->corners_offset + static_cast<size_t>(t->limit) * sizeof(Corners);
  return t;
}

}  // namespace

void register_non_max_suppression(KernelRegistry& registry) {
  registry.add("NonMaxSuppression", DType::kFloat32, tile_nms);
}

}  // namespace asc::cpu
