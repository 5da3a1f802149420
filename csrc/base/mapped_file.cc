#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace asc {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw GraphError("[file] '" + path + "': " + what + "; check the path and its permissions");
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail(path, std::strerror(errno));
  struct stat status;
  if (fstat(file.fd, &status) != 0) fail(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(path, "not a regular file");
  const auto bytes = static_cast<size_t>(status.st_size);
  void* data = nullptr;
  if (bytes) {
    data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (data == MAP_FAILED) fail(path, std::strerror(errno));
    madvise(data, bytes, MADV_WILLNEED);  // most readers read everything
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(data), bytes));
}

MappedFile::~MappedFile() {
  if (bytes_) munmap(const_cast<char*>(data_), bytes_);
}

}  // namespace asc
