#include <array>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "bindings/arrays.h"
#include "bindings/executable.h"
#include "bindings/module.h"
#include "graph/serialize.h"

namespace asc {
namespace {

// (structure, contents of the constants with their offsets, bytes of all contents)
py::tuple graph_bytes(const PyExecutable& e) {
  GraphBytes bytes;
  {
    py::gil_scoped_release unlocked;
    bytes = serialize(folded_graph(e.core->plan()));
  }
  py::list constants;
  for (size_t i = 0; i < bytes.constants.size(); ++i) {
    const HostTensor& t = bytes.constants[i];
    const TensorView flat{DType::kUInt8, {static_cast<int64_t>(t.bytes())}, const_cast<void*>(t.data())};
    constants.append(py::make_tuple(bytes.offsets[i], make_array(flat, t.buffer)));
  }
  return py::make_tuple(py::bytes(bytes.structure), constants, bytes.data_bytes);
}

// By run: (shape, contents or none) by input.
py::list hot_shapes(const PyExecutable& e) {
  py::list runs;
  for (const HotShape& hot : e.core->hot_shapes()) {
    py::list inputs;
    for (size_t i = 0; i < hot.shapes.size(); ++i) {
      py::tuple shape(hot.shapes[i].rank());
      for (int d = 0; d < hot.shapes[i].rank(); ++d) shape[d] = hot.shapes[i][d];
      const HostTensor& t = hot.values[i];
      py::object value = py::none();
      if (t.dtype != DType::kUndefined) value = py::bytes(static_cast<const char*>(t.data()), t.bytes());
      inputs.append(py::make_tuple(shape, value));
    }
    runs.append(inputs);
  }
  return runs;
}

struct Section {
  uint64_t offset, bytes, hash;
};

ArrayView<const char> section_of(const MappedFile& file, const Section& s) {
  if (s.offset > file.bytes() || s.bytes > file.bytes() - s.offset)
    throw GraphError("[load] the file ends inside a section: " + std::to_string(file.bytes()) +
                     " bytes; save it again");
  const ArrayView<const char> view(file.data() + s.offset, s.bytes);
  if (hash_bulk(view.data(), view.size()) != s.hash)
    throw GraphError("[load] a section of " + std::to_string(s.bytes) +
                     " bytes does not fit its checksum; save it again");
  return view;
}

std::shared_ptr<Graph> map_graph(const std::string& path, const std::array<uint64_t, 3>& structure,
                                 const std::array<uint64_t, 3>& data) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (data[0] % kAlignment) throw GraphError("[load] the constants are not aligned; save the file again");
  return std::make_shared<Graph>(deserialize(section_of(*file, {structure[0], structure[1], structure[2]}),
                                             section_of(*file, {data[0], data[1], data[2]}), file));
}

// Of the bytes from `offset` to the end.
uint64_t file_hash(const std::string& path, uint64_t offset) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (offset > file->bytes()) throw GraphError("[file] '" + path + "' has shrunk; do not change it meanwhile");
  return hash_bulk(file->data() + offset, file->bytes() - offset);
}

uint64_t bytes_hash(const py::bytes& bytes) {
  const auto view = static_cast<std::string_view>(bytes);
  return hash_bulk(view.data(), view.size());
}

}  // namespace

void bind_store(py::module_& m) {
  m.def("graph_bytes", &graph_bytes);
  m.def("hot_shapes", &hot_shapes);
  m.def("map_graph", &map_graph, py::arg("path"), py::arg("structure"), py::arg("data"),
        py::call_guard<py::gil_scoped_release>());
  m.def("file_hash", &file_hash, py::arg("path"), py::arg("offset") = 0, py::call_guard<py::gil_scoped_release>());
  m.def("bytes_hash", &bytes_hash, py::arg("data"));
}

}  // namespace asc
