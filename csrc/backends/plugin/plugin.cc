#include "backends/plugin/plugin.h"

#include "backends/plugin/kernels.h"

namespace asc {

Plugin::Plugin(const asc_device* device) : source_(device) {
  if (!device) refuse("the pointer is null");
  if (device->version != ASC_DEVICE_VERSION)
    refuse("version " + std::to_string(device->version) + ", expected " + std::to_string(ASC_DEVICE_VERSION));
  // A newer header of the same version has more at its end, which this core does not know.
  if (device->size < sizeof(asc_device))
    refuse(std::to_string(device->size) + " bytes, expected " + std::to_string(sizeof(asc_device)));
  std::memcpy(&functions_, device, sizeof functions_);
  check_name();
  check_functions();
  add_kernels();
}

void Plugin::check_name() {
  const char* name = functions_.name;
  if (!name || !*name || std::strlen(name) > 64 ||
      std::strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != std::strlen(name))
    refuse("its name is not made of up to 64 lower-case letters, digits, '-' and '_'");
  name_ = name;
  for (const char* ours : {"cpu", "null", "timed", "sim"})
    if (name_ == ours) refuse("the name is one of our own devices'");
}

void Plugin::check_functions() const {
  const auto check = [this](const char* name, bool is_there) {
    if (!is_there) refuse("function " + std::string(name) + " is missing");
  };
  const asc_device& f = functions_;
  check("open", f.open);
  check("close", f.close);
  check("describe", f.describe);
  check("allocate", f.allocate);
  check("release", f.release);
  check("create_stream", f.create_stream);
  check("destroy_stream", f.destroy_stream);
  check("launch", f.launch);
  check("submit", f.submit);
  check("copy", f.copy);
  check("record", f.record);
  check("synchronize", f.synchronize);
  check("load_chain", f.load_chain);
  check("unload_chain", f.unload_chain);
}

void Plugin::add_kernels() {
  constexpr uint32_t kMaxKernels = 10'000;
  if (functions_.kernel_count > kMaxKernels) refuse(std::to_string(functions_.kernel_count) + " kernels");
  if (functions_.kernel_count && !functions_.kernels) refuse("kernels is null");
  if (functions_.kernel_count && functions_.kernel_size < sizeof(asc_kernel))
    refuse("kernels of " + std::to_string(functions_.kernel_size) + " bytes, expected " +
           std::to_string(sizeof(asc_kernel)));
  const char* at = reinterpret_cast<const char*>(functions_.kernels);
  for (uint32_t i = 0; i < functions_.kernel_count; ++i, at += functions_.kernel_size) {
    const auto& kernel = *reinterpret_cast<const asc_kernel*>(at);
    const std::string which = "kernel " + std::to_string(i);
    if (!kernel.op || !*kernel.op) refuse(which + " has no operator");
    if (!kernel.launch) refuse(which + ", " + kernel.op + ": function launch is missing");
    if (!OpRegistry::instance().find(kernel.op)) refuse(which + ": there is no operator '" + kernel.op + "'");
    if (kernel.type_input < 0 || kernel.type_input > ASC_MAX_OPERANDS)
      refuse(which + ", " + kernel.op + ": type_input " + std::to_string(kernel.type_input));
    const DTypeSet types = types_of(kernel.types);
    if (types.is_empty()) refuse(which + ", " + kernel.op + ": no element type");
    kernels_.add(kernel.op, types, make_plugin_tiling, kernel.type_input, &kernel);
  }
  const asc_kernel& identity = identity_kernel();
  kernels_.add(identity.op, kAnyType, make_plugin_tiling, 0, &identity);
}

void Plugin::refuse(const std::string& what) const {
  throw DeviceError("[device" + (name_ == "?" ? std::string("] a plug-in") : " '" + name_ + "'] the plug-in") + ": " +
                    what + "; build the package against ascendsched.get_include()");
}

std::string Plugin::complaint(const char* function, const std::string& what) const {
  return "[device '" + name_ + "'] " + function + ": " + what + "; check the device, or ask the plug-in's author";
}

void Plugin::raise(const char* function, int status, char* error) const {
  error[ASC_ERROR_BYTES - 1] = 0;
  const std::string text = complaint(function, error[0] ? error : "it failed with " + std::to_string(status));
  if (status == ASC_OUT_OF_MEMORY) throw OutOfMemoryError(text);
  if (status == ASC_UNAVAILABLE) throw DeviceUnavailableError(text);
  throw DeviceError(text);
}

}  // namespace asc
