#include "backends/cpu/onednn.h"

#if ASC_HAVE_ONEDNN

#include <omp.h>

#include <string>
#include <string_view>

#include "base/hash.h"

namespace asc::cpu {

const dnnl::engine& onednn_engine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

OpenMpThreads::OpenMpThreads(int threads) : saved_(omp_get_max_threads()) {
  if (saved_ != threads) omp_set_num_threads(threads);
}

OpenMpThreads::~OpenMpThreads() {
  if (omp_get_max_threads() != saved_) omp_set_num_threads(saved_);
}

struct OneDnnPrimitive::Call {
  dnnl::stream stream;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;  // refer to `memories`
};

OneDnnPrimitive::OneDnnPrimitive(const dnnl::primitive& primitive, std::vector<Argument> arguments)
    : primitive_(primitive), arguments_(std::move(arguments)), threads_(omp_get_max_threads()) {
  idle_ = create_call().release();
}

OneDnnPrimitive::~OneDnnPrimitive() { delete idle_.load(); }

std::unique_ptr<OneDnnPrimitive::Call> OneDnnPrimitive::create_call() const {
  auto call = std::make_unique<Call>();
  call->stream = dnnl::stream(onednn_engine());
  for (const Argument& a : arguments_) {
    call->memories.emplace_back(a.desc, onednn_engine(), nullptr);
    call->arguments.push_back({a.name, call->memories.back().get()});
  }
  return call;
}

Status OneDnnPrimitive::execute(void* const* data, Worker& worker) const {
  std::unique_ptr<Call> call(idle_.exchange(nullptr));
  try {
    if (!call) call = create_call();
  } catch (const std::exception& e) {
    return worker.fail(Status::kFailed, std::string("[onednn] memory objects failed: ") + e.what());
  }
  const OpenMpThreads threads(threads_);
  dnnl_status_t status = dnnl_success;
  for (size_t i = 0; i < call->arguments.size() && status == dnnl_success; ++i)
    status = dnnl_memory_set_data_handle(call->arguments[i].memory, data[i]);
  if (status == dnnl_success)
    status = dnnl_primitive_execute(primitive_.get(), call->stream.get(), static_cast<int>(call->arguments.size()),
                                    call->arguments.data());
  Call* none = nullptr;
  if (idle_.compare_exchange_strong(none, call.get())) call.release();
  if (status == dnnl_success) return Status::kOk;
  return worker.fail(Status::kFailed, "[onednn] execution failed with status " + std::to_string(status) +
                                          "; disable use_onednn to run without it");
}

std::unique_ptr<OneDnnPrimitive> create_reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const dnnl::reorder::primitive_desc pd(onednn_engine(), from, onednn_engine(), to);
  return std::make_unique<OneDnnPrimitive>(
      dnnl::reorder(pd), std::vector<OneDnnPrimitive::Argument>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void reorder_now(const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to, void* target) {
  dnnl::memory input(from, onednn_engine(), const_cast<void*>(source)), output(to, onednn_engine(), target);
  dnnl::stream stream(onednn_engine());
  dnnl::reorder(input, output).execute(stream, input, output);
  stream.wait();
}

uint64_t layout_hash(const dnnl::memory::desc& desc) {
  std::vector<int64_t> words = {static_cast<int64_t>(desc.get_data_type()), static_cast<int64_t>(desc.get_size())};
  for (const auto& list :
       {desc.get_dims(), desc.get_padded_dims(), desc.get_strides(), desc.get_inner_blks(), desc.get_inner_idxs()}) {
    words.push_back(static_cast<int64_t>(list.size()));
    words.insert(words.end(), list.begin(), list.end());
  }
  return hash_bytes(words.data(), words.size() * sizeof(int64_t)) | 1;
}

bool is_reference(const dnnl::primitive_desc_base& primitive) {
  return std::string_view(primitive.impl_info_str()).substr(0, 3) == "ref";
}

}  // namespace asc::cpu

#endif
