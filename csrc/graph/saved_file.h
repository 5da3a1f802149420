// A saved executable as a file: a header, the structure of a graph, a description that belongs to whoever wrote it, and
// the contents of the graph's constants. Every byte is under a checksum, and lengths must add up to the file's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "graph/graph.h"

namespace asc {

class SavedFile {
 public:
  static constexpr uint64_t kFormat = 3;
  // Sections follow one another; the description is padded so that the constants are aligned.
  static constexpr size_t kHeaderBytes = 72;

  // Maps the file, and checks header and description. Throws GraphError where it cannot be read; what is wrong with
  // what was read is its fault.
  static std::shared_ptr<const SavedFile> open(const std::string& path);

  // The header for a file that is complete but for it. Throws GraphError where the file is not as long as that.
  static std::string header_for(const std::string& path, uint64_t structure_bytes, uint64_t description_bytes);

  // Why the file is not used; "": header and description are as they were written.
  const std::string& fault() const { return fault_; }
  // Where there is no fault. It lives as long as this.
  std::string_view description() const { return description_; }

  // Where there is no fault: checks the rest, and reads the graph, whose constants stay in the mapped file. Throws
  // GraphError where anything does not fit.
  Graph graph() const;

 private:
  explicit SavedFile(std::shared_ptr<const MappedFile> file);
  std::string find_fault();

  std::shared_ptr<const MappedFile> file_;
  std::string_view structure_, description_, constants_;
  uint64_t structure_hash_ = 0, constants_hash_ = 0;
  std::string fault_;
};

}  // namespace asc
