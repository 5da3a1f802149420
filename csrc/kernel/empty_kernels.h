// Kernels that compute nothing, for devices that only imitate one (DeviceInfo::computes == false).
#pragma once

#include <memory>

namespace asc {

class KernelRegistry;
class TilingContext;
struct Tiling;

// Accepts every operator and type. Outputs keep whatever their memory holds; data-dependent operators report the upper
// bound of their output shapes as the extent. Built once; thread-safe.
const KernelRegistry& empty_kernels();

// The tiling that they use, for registries that do something besides.
std::shared_ptr<const Tiling> make_empty_tiling(const TilingContext& ctx);

}  // namespace asc
