// A fused node as the CPU runs it: units one after the other in one launch. What a launch reads lies close together,
// for between two launches the caches hold weights.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "backends/cpu/attention.h"
#include "backends/cpu/element_program.h"
#include "backends/cpu/fused_norm.h"
#include "kernel/kernel.h"
#include "ops/fused.h"

namespace asc::cpu {

// Indices below are into the table of a launch: absent operand, inputs, results of steps, then a workspace and a packed
// entry per unit.
constexpr size_t kMaxFusedTable = 1 + kMaxFusedInputs + 3 * kMaxFusedSteps;

// A step with a kernel of its own, or an attention.
struct KernelCall {
  static constexpr size_t kMaxInputs = kMaxAttentionInputs;
  static_assert(kMaxInputs >= kMaxStepInputs);
  Task task;                                                // its node is unknown
  uint32_t operands[kMaxInputs + 1 + kExtraOperands] = {};  // inputs, result, workspace, packed, extent
};

// A view: the same memory under another name.
struct Alias {
  uint32_t from = 0;
};

struct FusedUnit {
  uint32_t result = 0;
  std::variant<StepRow, KernelCall, NormRows, Alias, std::unique_ptr<ElementProgram>> what;
};

// The tiling behind a KernelCall, and which inputs of the node it may pack.
struct InnerTiling {
  std::shared_ptr<const Tiling> tiling;
  ValueId packed_inputs[kMaxStepInputs] = {kNoValue, kNoValue, kNoValue, kNoValue, kNoValue};
  size_t packed_offset = 0;
};

struct FusedTiling : Tiling {
  enum class Memory : uint32_t { kWorkspace, kPacked, kResult };
  struct Place {
    Memory memory = Memory::kWorkspace;
    uint32_t index = 0;
    size_t offset = 0;
  };
  std::vector<FusedUnit> units;
  std::vector<Place> places;
  std::vector<InnerTiling> inner;
  std::string text;  // behind `implementation`

  size_t bytes() const override;
};

// Where the node is a function of one byte: a table of its 256 values, made once when the node is packed; null
// elsewhere. `build` makes the tiling that computes the table.
std::shared_ptr<const Tiling> try_lookup(const TilingContext& ctx,
                                         std::shared_ptr<const Tiling> (*build)(const TilingContext& ctx));

// Sets launch and pack, when all units are there.
void finish_fused(FusedTiling* tiling);

}  // namespace asc::cpu
