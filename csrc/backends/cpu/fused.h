// A fused node as the CPU runs it: units one after the other in one launch. What a launch reads lies close together,
// for between two launches the caches hold weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/element_program.h"
#include "backends/cpu/fused_norm.h"
#include "kernel/kernel.h"
#include "ops/fused.h"

namespace asc::cpu {

// Indices below are into the table of a launch: absent operand, inputs, results of steps, then a workspace and a packed
// entry per unit.
constexpr size_t kMaxFusedTable = 1 + kMaxFusedInputs + 3 * kMaxFusedSteps;

struct FusedUnit {
  enum class Kind : uint8_t { kRow, kProgram, kNorm, kKernel };
  Kind kind = Kind::kProgram;
  uint32_t result = 0;
  StepRow row;                                                  // kRow
  Task task;                                                    // kKernel: of `inner`; its node is unknown
  uint32_t operands[kMaxStepInputs + 1 + kExtraOperands] = {};  // kKernel: inputs, result, workspace, packed, extent
  NormRows norm;                                                // kNorm
  std::unique_ptr<ElementProgram> program;                      // kProgram
  std::shared_ptr<const Tiling> inner;                          // kKernel
  ValueId packed_inputs[kMaxStepInputs] = {-1, -1, -1, -1};     // kKernel: inputs of the node that it may pack
  size_t packed_offset = 0;
};

struct FusedTiling : Tiling {
  enum class Memory : uint8_t { kWorkspace, kPacked, kResult };
  struct Place {
    Memory memory = Memory::kWorkspace;
    uint32_t index = 0;
    size_t offset = 0;
  };
  std::vector<FusedUnit> units;
  std::vector<Place> places;
  std::string text;  // behind `implementation`

  size_t bytes() const override;
};

// Sets launch and pack, when all units are there.
void finish_fused(FusedTiling* tiling);

}  // namespace asc::cpu
