// A file mapped into memory to read: an immutable value, shared by whoever holds a part of it. Whoever rewrites the
// file must replace it (rename) instead of changing it in place: a mapping shows changes, and ends where the file ends.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace asc {

class MappedFile {
 public:
  // Throws GraphError where the file cannot be opened or mapped; its message starts with `what`.
  static std::shared_ptr<const MappedFile> open(const std::string& path, const char* what = "[file]");
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  MappedFile(const char* data, size_t bytes) : data_(data), bytes_(bytes) {}
  const char* data_;
  size_t bytes_;
};

}  // namespace asc
