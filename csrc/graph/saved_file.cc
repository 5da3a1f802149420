#include "graph/saved_file.h"

#include <cstring>

#include "base/bulk_hash.h"
#include "graph/serialize.h"

namespace asc {
namespace {

constexpr char kMagic[] = "ASCEXE\r\n";  // a transfer in text mode changes it
constexpr size_t kMagicBytes = 8;
constexpr int kSections = 3;  // structure, description, constants

struct Header {
  char magic[kMagicBytes];
  uint64_t format;
  uint64_t bytes[kSections], hashes[kSections];
  uint64_t hash;  // of all before
};
static_assert(sizeof(Header) == SavedFile::kHeaderBytes);

uint64_t hash_of(const Header& header) { return hash_bulk(&header, offsetof(Header, hash)); }
uint64_t hash_of(std::string_view section) { return hash_bulk(section.data(), section.size()); }

}  // namespace

std::shared_ptr<const SavedFile> SavedFile::open(const std::string& path) {
  return std::shared_ptr<const SavedFile>(new SavedFile(MappedFile::open(path, "[load] cannot read")));
}

std::string SavedFile::header_for(const std::string& path, uint64_t structure_bytes, uint64_t description_bytes) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path, "[save] cannot read");
  const uint64_t all = file->bytes();
  if (all < kHeaderBytes || structure_bytes > all - kHeaderBytes ||
      description_bytes > all - kHeaderBytes - structure_bytes)
    throw GraphError("[save] '" + path + "' has " + std::to_string(all) + " bytes; do not change it while it is saved");
  Header header{};
  std::memcpy(header.magic, kMagic, kMagicBytes);
  header.format = kFormat;
  header.bytes[0] = structure_bytes;
  header.bytes[1] = description_bytes;
  header.bytes[2] = all - kHeaderBytes - structure_bytes - description_bytes;
  const char* at = file->data() + kHeaderBytes;
  for (int i = 0; i < kSections; at += header.bytes[i++]) header.hashes[i] = hash_bulk(at, header.bytes[i]);
  header.hash = hash_of(header);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header);
}

SavedFile::SavedFile(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) { fault_ = find_fault(); }

std::string SavedFile::find_fault() {
  const size_t all = file_->bytes();
  if (all < kMagicBytes || std::memcmp(file_->data(), kMagic, kMagicBytes) != 0)
    return "it is not a saved executable, or its first bytes are damaged";
  Header header{};
  std::memcpy(&header, file_->data(), std::min(all, sizeof header));
  if (all >= kMagicBytes + sizeof header.format && header.format != kFormat)
    return "it has format " + std::to_string(header.format) + ", this version reads " + std::to_string(kFormat);
  if (all < sizeof header || header.hash != hash_of(header))
    return "the file is damaged: its header does not fit the checksum";
  uint64_t rest = all - sizeof header;
  const char* at = file_->data() + sizeof header;
  for (std::string_view* section : {&structure_, &description_, &constants_}) {
    const uint64_t bytes = header.bytes[section == &structure_ ? 0 : section == &description_ ? 1 : 2];
    if (bytes > rest)
      return "the file is truncated or damaged: it has " + std::to_string(all) + " bytes, and lacks some";
    *section = {at, static_cast<size_t>(bytes)};
    at += bytes;
    rest -= bytes;
  }
  if (rest != 0) return "the file is truncated or damaged: " + std::to_string(rest) + " bytes follow its end";
  if (hash_of(description_) != header.hashes[1])
    return "the file is damaged: its description does not fit the checksum";
  structure_hash_ = header.hashes[0];
  constants_hash_ = header.hashes[2];
  return "";
}

Graph SavedFile::graph() const {
  if (reinterpret_cast<uintptr_t>(constants_.data()) % kAlignment != 0)
    throw GraphError("[load] the constants are not aligned; save the file again");
  for (const auto& [section, hash] : {std::pair(structure_, structure_hash_), std::pair(constants_, constants_hash_)})
    if (hash_of(section) != hash)
      throw GraphError("[load] a section of " + std::to_string(section.size()) +
                       " bytes does not fit its checksum; save it again");
  return deserialize({structure_.data(), structure_.size()}, {constants_.data(), constants_.size()}, file_);
}

}  // namespace asc
