// State of one Loop while it runs: the results of its body between iterations.
#pragma once

#include <memory>
#include <vector>

#include "runtime/body_results.h"

namespace asc {

constexpr int64_t kIterationsInFlight = 64;  // of a loop, before the host waits: bounds the tables held

// The numbers of iterations, where tasks read them: those in flight at once in one piece of memory.
class IterationNumbers {
 public:
  // Called for each iteration in turn; what is given out lives until holdings release it, and in runs on the caller's
  // thread until the next call.
  void* next(int64_t i, RunContext& run);

 private:
  std::shared_ptr<const HostTensor> numbers_;
};

// Owns the blocks of carried values and of scanned outputs.
class LoopState {
 public:
  LoopState(RunContext& run, const PlanNode& node, const Level& body, size_t carried);
  ~LoopState();

  // Where an iteration puts what it makes.
  BodyResults& results() { return results_; }
  // Takes what an iteration made; in `arguments`, it is what the next one gets.
  void take(std::vector<Argument>& arguments);
  // The same for shapes and what the host knows; true where the next iteration, and so all that follow, differ in
  // contents only, which the host does not read. Throws GraphError where a scanned output changes its shape.
  bool take_shapes(std::vector<Argument>& arguments);
  // All iterations from here on are alike, and there are `trips` in all: scanned outputs go where they stay.
  void expect(int64_t trips);

  bool has_run() const { return count_ > 0; }
  // Where no iteration ran, and the body has inferred what it gives for the initial values: the shapes of scanned
  // outputs, of which there are none.
  void take_shapes_of_none();

  // After the last iteration. The initial value, copied, where there was none.
  Block take_carried(size_t i, const Argument& argument);
  // The results of all iterations side by side along a new first axis.
  Block take_scanned(size_t i, Shape& shape);

 private:
  struct Scanned {
    DType dtype = DType::kFloat32;
    Shape shape;  // of an iteration's
    size_t bytes = 0;
    Block whole;  // for all iterations, where their number is known
    std::vector<Block> pieces;
  };

  size_t output_of(size_t scanned) const { return 1 + carried_.size() + scanned; }
  static std::byte* place_of(const Scanned& s, int64_t iteration);
  // Moves the pieces, which are those of iterations `first` and behind, into the whole.
  void gather(Scanned& s, int64_t first);

  RunContext& run_;
  const PlanNode& node_;
  const Level& body_;
  int64_t count_ = 0;  // of iterations
  BodyResults results_;
  std::vector<Block> carried_;
  std::vector<Scanned> scans_;
};

}  // namespace asc
