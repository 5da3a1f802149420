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

// Most readers read everything. Where the system can, it then reads in pieces as large as its largest pages: a file
// that it keeps page by page takes five times as long to map and read, whenever somebody does it again.
void advise_reading(void* data, size_t bytes) {
#ifdef MADV_HUGEPAGE
  if (madvise(data, bytes, MADV_HUGEPAGE) == 0) return;
#endif
  madvise(data, bytes, MADV_WILLNEED);
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, const char* what) {
  const auto fail = [&](const char* why) {
    throw GraphError(std::string(what) + " '" + path + "': " + why + "; check the path and its permissions");
  };
  if (path.find('\0') != std::string::npos)
    throw GraphError(std::string(what) + " a path with a null byte behind '" + path.c_str() +
                     "'; pass the path of a file");
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail(std::strerror(errno));
  struct stat status;
  if (fstat(file.fd, &status) != 0) fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail("not a regular file");
  const auto bytes = static_cast<size_t>(status.st_size);
  void* data = nullptr;
  if (bytes) {
    data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (data == MAP_FAILED) fail(std::strerror(errno));
    advise_reading(data, bytes);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(data), bytes));
}

MappedFile::~MappedFile() {
  if (bytes_) munmap(const_cast<char*>(data_), bytes_);
}

}  // namespace asc
