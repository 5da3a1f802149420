#include "kernel/kernel.h"

#include <utility>

#include "base/error.h"

namespace asc {

void TilingContext::unsupported(const std::string& what) const {
  throw UnsupportedError("[tiling] " + node_.op + " '" + node_.name + "': " + what);
}

std::shared_ptr<const Tiling> create_tiling_with(const Kernel& kernel, const TilingContext& ctx) {
  std::shared_ptr<const Tiling> tiling = kernel.tiling(ctx);
  // Just made, and nobody else's: only tilings without threads of their own are shared.
  if (ctx.threads_used() > 1) const_cast<Tiling&>(*tiling).threads = ctx.threads_used();
  return tiling;
}

// Kernels of one operator are tried in the order of their registration.
void KernelRegistry::add(std::string op, DTypeSet types, TilingFn tiling, int type_input, const void* data) {
  std::vector<Kernel>& list = kernels_[op];
  list.push_back({std::move(op), types, type_input, tiling, data});
  ++count_;
}

const Kernel* KernelRegistry::find(std::string_view op, const std::vector<DType>& input_types,
                                   DType output_type) const {
  const auto found = kernels_.find(std::string(op));
  if (found != kernels_.end()) {
    for (const Kernel& kernel : found->second) {
      const auto i = static_cast<size_t>(kernel.type_input);
      const bool has_input = i < input_types.size() && input_types[i] != DType::kUndefined;
      if (kernel.types.contains(has_input ? input_types[i] : output_type)) return &kernel;
    }
  }
  return fallback_.tiling ? &fallback_ : nullptr;
}

}  // namespace asc
