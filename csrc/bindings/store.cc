#include "base/bulk_hash.h"
#include "base/mapped_file.h"
#include "bindings/arrays.h"
#include "bindings/executable.h"
#include "bindings/module.h"
#include "bindings/unlocked.h"
#include "graph/saved_file.h"
#include "graph/serialize.h"

namespace asc {
namespace {

// (structure, contents of the constants with their offsets, bytes of all contents)
py::tuple graph_bytes(const PyExecutable& e) {
  GraphBytes bytes;
  {
    const Unlocked unlocked;
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

std::shared_ptr<Graph> graph_of(const SavedFile& file) { return std::make_shared<Graph>(file.graph()); }

uint64_t file_hash(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return hash_bulk(file->data(), file->bytes());
}

uint64_t bytes_hash(const py::bytes& bytes) {
  const auto view = static_cast<std::string_view>(bytes);
  return hash_bulk(view.data(), view.size());
}

}  // namespace

void bind_store(py::module_& m) {
  m.def("graph_bytes", &graph_bytes);
  m.def("hot_shapes", &hot_shapes);
  py::class_<SavedFile, std::shared_ptr<SavedFile>>(m, "SavedFile")
      .def(py::init([](const std::string& path) { return std::const_pointer_cast<SavedFile>(SavedFile::open(path)); }),
           py::arg("path"))
      .def_property_readonly("fault", &SavedFile::fault)
      .def_property_readonly("description", [](const SavedFile& f) { return py::str(std::string(f.description())); })
      .def("graph", &graph_of, py::call_guard<Unlocked>());
  m.attr("SAVED_HEADER_BYTES") = SavedFile::kHeaderBytes;
  m.def(
      "saved_header",
      [](const std::string& path, uint64_t structure_bytes, uint64_t description_bytes) {
        std::string header;
        {
          const Unlocked unlocked;
          header = SavedFile::header_for(path, structure_bytes, description_bytes);
        }
        return py::bytes(header);
      },
      py::arg("path"), py::arg("structure_bytes"), py::arg("description_bytes"));
  m.def("file_hash", &file_hash, py::arg("path"), py::call_guard<Unlocked>());
  m.def("bytes_hash", &bytes_hash, py::arg("data"));
}

}  // namespace asc
