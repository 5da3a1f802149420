// What the files of the bindings share about executables.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/module.h"
#include "bindings/unlocked.h"
#include "runtime/executable.h"
#include "runtime/run.h"

namespace asc {

// Shared ownership whose release may join threads or wait for a run: never with the GIL held.
template <typename T>
class Owned {
 public:
  explicit Owned(std::shared_ptr<T> p) : p_(std::move(p)) {}
  Owned(Owned&&) noexcept = default;
  ~Owned() {
    if (!p_) return;
    const Unlocked unlocked;
    p_.reset();
  }
  T* operator->() const { return p_.get(); }
  T& operator*() const { return *p_; }

 private:
  std::shared_ptr<T> p_;
};

// The caller's arrays of one run or binding, in graph order.
struct Feeds {
  std::vector<TensorView> views;
  std::vector<py::object> held;
};

// What is known of a signature that can be repeated (Executable::repeat). Used under the GIL.
struct RecentCall {
  Repeat::Signature signature;
  bool is_short = true;  // one of its last repetitions was
  uint32_t untimed = 0;  // repetitions to go until one is timed again
};

// The caller's arrays for results, by position.
struct BoundResults {
  std::vector<TensorView> views;   // kUndefined where a fresh one is wanted; may be empty
  std::vector<py::object> arrays;  // None there
  py::object named;                // all of them by name, where all are bound; else null
  // What inputs and results were last found to fit, if its id is still that.
  mutable RecentCall* call = nullptr;
  mutable uint64_t fits_id = 0;
};

struct PyExecutable {
  Owned<Executable> core;
  std::vector<py::str> input_names, output_names;
  py::object normalize;          // (name, dtype, value) -> usable array; for what is not usable in place
  bool is_always_timed = false;  // its time may change from run to run
  mutable std::array<RecentCall, Repeats::kMost> recent = {};
  mutable size_t last = 0;  // of them
  // Input arrays that had to be copied: for their layout (strides, alignment), for their type or byte order.
  mutable uint64_t copies_for_layout = 0, copies_for_type = 0;
};

// For messages: names may be any object, and text without a UTF-8 form.
std::string text_of(py::handle object);

// Arrays that can be read in place, made where those given cannot. Throws GraphError.
Feeds take_feeds(const PyExecutable& exe, const py::dict& given);
// A run, completed.
py::list run_now(const PyExecutable& exe, const Feeds& feeds, const BoundResults& bound);
py::dict as_dict(const PyExecutable& exe, const py::list& results);

// Ends the recording that is on: its spans and what readers need besides.
py::dict stop_profile(PyExecutable& exe);

// A device that was given up may still use what a run was given: these objects are never freed then.
void keep_if_lost(const Run& run, const std::vector<py::object>& objects);

// The recent call whose signature fits, the last one tried first; null: there is none.
template <typename Fits>
RecentCall* find_recent(const PyExecutable& exe, const Fits& fits) {
  const auto is_it = [&](const RecentCall& call) { return call.signature.id != 0 && fits(call.signature); };
  if (is_it(exe.recent[exe.last])) return &exe.recent[exe.last];
  for (size_t i = 0; i < exe.recent.size(); ++i)
    if (i != exe.last && is_it(exe.recent[i])) return &exe.recent[exe.last = i];
  return nullptr;
}
// After a run that was started: what can be repeated now.
void update_recent(const PyExecutable& exe);
// A recent signature once more, on these addresses in graph order; false where a run has to be started.
bool repeat_addresses(const PyExecutable& exe, RecentCall& call, void* const* inputs, void* const* outputs);

// Runs that repeat a recent signature; a null object where a run has to be started.
py::object repeat_by_name(const PyExecutable& exe, const py::dict& feeds);
py::object repeat_in_order(const PyExecutable& exe, const py::args& arrays);
py::object repeat_bound(const PyExecutable& exe, const Feeds& feeds, const BoundResults& bound);

}  // namespace asc
