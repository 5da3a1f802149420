// Kernels that compute nothing, for devices that only imitate one (DeviceInfo::computes == false).
#pragma once

namespace asc {

class KernelRegistry;

// Accepts every operator and type. Outputs keep whatever their memory holds; data-dependent operators report the upper
// bound of their output shapes as the extent. Built once; thread-safe.
const KernelRegistry& empty_kernels();

}  // namespace asc
