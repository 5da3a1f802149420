// The shape of a reduction: loops over kept positions, loops over reduced ones, and the contiguous row inside.
#pragma once

#include "backends/cpu/loops.h"
#include "backends/cpu/tiling_base.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {

enum class ReduceKind : uint8_t { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };

struct ReduceTiling : TilingOf<ReduceTiling> {
  const VecTable* vec = &vec_table();
  ReduceKind kind = ReduceKind::kSum;
  bool row_is_reduced = true;  // otherwise the row is kept, and reduced rows are combined element by element
  int keep_rank = 0, reduce_rank = 0;
  int64_t row = 1;    // elements
  int64_t count = 1;  // elements behind each output
  Loop keep[kMaxRank];
  Loop reduce[kMaxRank];  // out_stride is 0
};

// Launch functions for one kind and element type; null where the pair is not supported.
LaunchFn find_float_reduce(DType type);                   // float32, float16, bfloat16
LaunchFn find_exact_reduce(ReduceKind kind, DType type);  // float64, integers, bool

// The parts of the family, one file each.
void register_reduce(KernelRegistry& registry);
void register_arg_reduce(KernelRegistry& registry);
void register_cumsum(KernelRegistry& registry);
void register_topk(KernelRegistry& registry);
void register_softmax(KernelRegistry& registry);
void register_layer_norm(KernelRegistry& registry);
void register_channel_norm(KernelRegistry& registry);

}  // namespace asc::cpu
