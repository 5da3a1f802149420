#include "backends/cpu/build_info.h"

#include "backends/cpu/blas.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/onednn.h"

namespace asc {
namespace {

std::string onednn_version() {
#if ASC_HAVE_ONEDNN
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
#else
  return "absent";
#endif
}

}  // namespace

std::vector<std::pair<std::string, std::string>> cpu_build_info() {
  return {{"onednn", onednn_version()},
          {"blas", cpu::blas_name()},
          {"isa", kIsaNames[static_cast<int>(current_isa())]},
          {"compiler", __VERSION__}};
}

}  // namespace asc
