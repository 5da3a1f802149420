// Padding with zeros becomes the padding of the convolutions and averages that read it: exporters write it apart where
// its sides differ or were computed. One pass over memory less, and the layout of the convolution before may stay.
#include <algorithm>

#include "plan/uses.h"

namespace asc {
namespace {

class PadJoiner {
 public:
  explicit PadJoiner(LevelBuilder& b) : b_(b), uses_(b) {}

  void run() {
    for (PlanNode& p : b_.nodes)
      if (p.node.op == "Pad" && adds_zeros(p)) join(p);
  }

 private:
  const HostTensor* constant(const PlanNode& p, size_t i) const {
    const bool is_given = i < p.node.inputs.size() && p.node.inputs[i] != kNoValue;
    return is_given ? b_.values[p.node.inputs[i]].constant.get() : nullptr;
  }

  static bool is_given(const PlanNode& p, size_t i) { return i < p.node.inputs.size() && p.node.inputs[i] != kNoValue; }

  // Only float32, for other types need not know zero by its bytes.
  bool adds_zeros(const PlanNode& p) const {
    if (p.node.attributes.get_string("mode", "constant") != "constant" || is_given(p, 3)) return false;
    if (p.output_types[0] != DType::kFloat32 || !constant(p, 1) || constant(p, 1)->dtype != DType::kInt64) return false;
    if (!is_given(p, 2)) return true;
    const HostTensor* value = constant(p, 2);
    return value && value->shape.num_elements() == 1 && *static_cast<const float*>(value->data()) == 0.0f;
  }

  // All readers take the padding, or none: a second copy of the input would otherwise be read.
  void join(const PlanNode& pad) {
    const ValueId in = pad.node.inputs[0], out = pad.node.outputs[0];
    const HostTensor& counts = *constant(pad, 1);
    const auto* by_axis = static_cast<const int64_t*>(counts.data());
    const std::vector<int64_t> more(by_axis, by_axis + counts.shape.num_elements());
    const std::vector<int>& users = uses_.users(out);
    if (!uses_.is_inner(out) || users.empty() || !pads_windows_only(more)) return;
    for (int u : users)
      if (!takes(b_.nodes[u], out, more)) return;
    for (int u : users) {
      Node& n = b_.nodes[u].node;
      n.inputs[0] = in;
      n.attributes.set("pads", sum(b_.nodes[u], more));
      n.attributes.set("auto_pad", std::string("NOTSET"));
      if (n.op == "AveragePool") n.attributes.set("count_include_pad", int64_t{1});
    }
  }

  // Not batch and channels, and no cropping.
  static bool pads_windows_only(const std::vector<int64_t>& more) {
    const size_t rank = more.size() / 2;
    if (more.size() % 2 || rank < 3) return false;
    for (size_t i = 0; i < more.size(); ++i)
      if (more[i] < 0 || more[i] > kMostPadding || (i % rank < 2 && more[i] != 0)) return false;
    return true;
  }

  bool takes(const PlanNode& p, ValueId padded, const std::vector<int64_t>& more) const {
    const Node& n = p.node;
    const size_t spatial = more.size() / 2 - 2;
    if (p.is_on_host || std::count(n.inputs.begin(), n.inputs.end(), padded) != 1 || n.inputs[0] != padded)
      return false;
    const std::string_view mode = n.attributes.get_string("auto_pad", "NOTSET");
    if (mode != "NOTSET" && mode != "VALID") return false;
    const std::vector<int64_t>& own = n.attributes.get_ints("pads");
    if (!own.empty() && own.size() != 2 * spatial) return false;
    if (n.op == "Conv") {  // of another rank, it is refused either way
      const std::optional<Shape>& weights = b_.static_shapes[n.inputs[1]];
      return weights && weights->rank() == static_cast<int>(spatial) + 2;
    }
    if (n.op != "AveragePool" || n.attributes.get_int("ceil_mode", 0) != 0) return false;
    const bool has_own = mode == "NOTSET" && std::any_of(own.begin(), own.end(), [](int64_t pad) { return pad != 0; });
    if (has_own && n.attributes.get_int("count_include_pad", 0) == 0) return false;
    const std::vector<int64_t>& kernel = n.attributes.get_ints("kernel_shape");
    if (kernel.size() != spatial) return false;
    const std::vector<int64_t> pads = sum(p, more);
    for (size_t i = 0; i < pads.size(); ++i)  // pooling takes no more padding than that
      if (pads[i] >= kernel[i % spatial]) return false;
    return true;
  }

  static std::vector<int64_t> sum(const PlanNode& p, const std::vector<int64_t>& more) {
    const size_t spatial = more.size() / 2 - 2;
    std::vector<int64_t> pads = p.node.attributes.get_ints("pads");
    if (pads.empty() || p.node.attributes.get_string("auto_pad", "NOTSET") == "VALID") pads.assign(2 * spatial, 0);
    for (size_t i = 0; i < spatial; ++i) {
      pads[i] += more[2 + i];
      pads[spatial + i] += more[spatial + 4 + i];
    }
    return pads;
  }

  static constexpr int64_t kMostPadding = int64_t{1} << 20;

  LevelBuilder& b_;
  const Uses uses_;
};

}  // namespace

void join_pads(LevelBuilder& b) {
  const auto is_pad = [](const PlanNode& p) { return p.node.op == "Pad"; };
  if (b.options->fuse && std::any_of(b.nodes.begin(), b.nodes.end(), is_pad)) PadJoiner(b).run();
}

}  // namespace asc
