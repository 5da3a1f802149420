#include "graph/serialize.h"

#include <unordered_map>

#include "base/bulk_hash.h"
#include "base/utf8.h"

namespace asc {
namespace {

constexpr int kMaxDepth = 64;                        // of nested bodies, as in validation
constexpr size_t kValueBytes = 14, kNodeBytes = 20;  // at least
constexpr uint32_t kNoConstant = 0xFFFFFFFFu;

// The position of a type in Attribute::Data is its code in the file.
enum Kind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor, kGraph };

class Writer {
 public:
  explicit Writer(GraphBytes& target) : target_(target) {}

  void graph(const Graph& g, int depth) {
    if (depth > kMaxDepth) throw UnsupportedError("[save] bodies are nested too deeply; flatten the model");
    text(g.name);
    number<uint8_t>(g.is_rewritten);
    number<uint8_t>(g.is_channels_last);
    number<uint32_t>(g.value_count());
    for (size_t v = 0; v < g.value_count(); ++v) value(g.value(static_cast<ValueId>(v)));
    list(g.inputs());
    list(g.outputs());
    number<uint32_t>(g.nodes().size());
    for (const Node& n : g.nodes()) node(n, depth);
    number<uint32_t>(g.own_nodes.size());
    for (const OwnNode& own : g.own_nodes) {
      number<uint32_t>(own.first);
      number<uint32_t>(own.count);
      node(own.node, depth);
    }
  }

  // The table of constants, known once the graph is written.
  std::string constants() {
    std::string body = std::move(out_);
    out_.clear();
    number<uint32_t>(target_.constants.size());
    for (size_t i = 0; i < target_.constants.size(); ++i) {
      const HostTensor& t = target_.constants[i];
      number<uint8_t>(static_cast<uint8_t>(t.dtype));
      number<uint8_t>(static_cast<uint8_t>(t.shape.rank()));
      for (int64_t d : t.shape) number(d);
      number(target_.offsets[i]);
    }
    return std::move(out_) + body;
  }

 private:
  template <typename T, typename V>
  void number(V v) {
    const T fixed = static_cast<T>(v);
    out_.append(reinterpret_cast<const char*>(&fixed), sizeof fixed);
  }
  void number(int64_t v) { number<int64_t, int64_t>(v); }
  void number(uint64_t v) { number<uint64_t, uint64_t>(v); }
  void number(int32_t v) { number<int32_t, int32_t>(v); }
  void number(double v) { number<double, double>(v); }
  void number(const std::string& v) { text(v); }

  void text(const std::string& s) {
    number<uint32_t>(s.size());
    out_ += s;
  }
  template <typename T>
  void list(const std::vector<T>& values) {
    number<uint32_t>(values.size());
    for (const T& v : values) number(v);
  }

  void value(const Value& v) {
    text(v.name);
    number<uint8_t>(static_cast<uint8_t>(v.type.dtype));
    number<uint8_t>(v.type.has_rank);
    number<uint32_t>(v.type.dims.size());
    for (const Dim& d : v.type.dims) {
      number(d.value);
      text(d.symbol);
    }
    number<uint32_t>(v.constant ? index_of(*v.constant) : kNoConstant);
  }

  void node(const Node& n, int depth) {
    text(n.name);
    text(n.op);
    list(n.inputs);
    list(n.outputs);
    number<uint32_t>(n.attributes.all().size());
    for (const Attribute& a : n.attributes.all()) attribute(a, depth);
  }

  void attribute(const Attribute& a, int depth) {
    text(a.name);
    number<uint8_t>(a.data.index());
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, HostTensor>)
            number<uint32_t>(index_of(v));
          else if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>)
            graph(*v, depth + 1);
          else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, std::string>)
            number(v);
          else
            list(v);
        },
        a.data);
  }

  uint32_t index_of(const HostTensor& t) {
    const uint64_t hash = hash_bulk(t.data(), t.bytes());
    for (auto [it, end] = known_.equal_range(hash); it != end; ++it)
      if (target_.constants[it->second].same_value(t)) return it->second;
    const auto index = static_cast<uint32_t>(target_.constants.size());
    known_.emplace(hash, index);
    target_.constants.push_back(t);
    target_.offsets.push_back(target_.data_bytes);
    target_.data_bytes += round_up(t.bytes());
    return index;
  }

  GraphBytes& target_;
  std::string out_;
  std::unordered_multimap<uint64_t, uint32_t> known_;
};

class Reader {
 public:
  Reader(ArrayView<const char> bytes, ArrayView<const char> data, std::shared_ptr<const void> owner)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), data_(data), owner_(std::move(owner)) {}

  Graph run() {
    const uint32_t count = count_of(2 + sizeof(uint64_t));
    for (uint32_t i = 0; i < count; ++i) constants_.push_back(constant());
    Graph g = graph(0);
    if (at_ != end_) fail("bytes follow the graph");
    return g;
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw GraphError(std::string("[load] the saved graph is damaged: ") + what + "; save it again");
  }

  template <typename T>
  T number() {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) fail("it ends early");
    T v;
    std::memcpy(&v, at_, sizeof v);
    at_ += sizeof v;
    return v;
  }
  // A number of things of at least `bytes` each: more than the rest can hold are not allocated.
  uint32_t count_of(size_t bytes) {
    const auto n = number<uint32_t>();
    if (n > static_cast<size_t>(end_ - at_) / bytes) fail("a count exceeds the bytes");
    return n;
  }
  std::string text() {
    const uint32_t n = count_of(1);
    std::string s(at_, n);
    at_ += n;
    if (!is_utf8(s)) fail("a name or text is not UTF-8");
    return s;
  }
  template <typename T>
  std::vector<T> list() {
    std::vector<T> values(count_of(sizeof(T)));
    for (T& v : values) v = number<T>();
    return values;
  }
  DType dtype() {
    const auto code = number<uint8_t>();
    if (code >= kDTypeCount) fail("an element type is unknown");
    return static_cast<DType>(code);
  }

  std::shared_ptr<const HostTensor> constant() {
    auto t = std::make_shared<HostTensor>();
    t->dtype = dtype();
    if (t->dtype == DType::kUndefined) fail("a constant has no type");
    const auto rank = number<uint8_t>();
    if (rank > kMaxRank) fail("a constant has too many dimensions");
    for (int i = 0; i < rank; ++i) t->shape.push_back(number<int64_t>());
    const auto offset = number<uint64_t>();
    const size_t bytes = t->bytes();  // refuses negative and huge dimensions
    if (offset % kAlignment || offset > data_.size() || bytes > data_.size() - offset) fail("a constant lies outside");
    t->buffer = std::make_shared<const Buffer>(owner_, data_.data() + offset, bytes);
    if (t->dtype == DType::kBool)
      for (size_t i = 0; i < bytes; ++i)
        if (t->as<uint8_t>()[i] > 1) fail("a bool is neither 0 nor 1");
    return t;
  }
  const std::shared_ptr<const HostTensor>& constant_at(uint32_t index) const {
    if (index >= constants_.size()) fail("a constant is missing");
    return constants_[index];
  }

  Value value() {
    Value v;
    v.name = text();
    v.type.dtype = dtype();
    v.type.has_rank = number<uint8_t>() != 0;
    v.type.dims.resize(count_of(sizeof(int64_t) + sizeof(uint32_t)));
    if (!v.type.dims.empty() && !v.type.has_rank) fail("a type has dimensions without a rank");
    for (Dim& d : v.type.dims) {
      d.value = number<int64_t>();
      if (d.value < -1) fail("a dimension is negative");
      d.symbol = text();
    }
    const auto index = number<uint32_t>();
    if (index != kNoConstant) v.constant = constant_at(index);
    return v;
  }

  Graph graph(int depth) {
    if (depth > kMaxDepth) fail("bodies are nested too deeply");
    Graph g;
    g.name = text();
    g.is_rewritten = number<uint8_t>() != 0;
    g.is_channels_last = number<uint8_t>() != 0;
    const uint32_t values = count_of(kValueBytes);
    g.reserve(values, 0);
    for (uint32_t i = 0; i < values; ++i) g.add_value(value());
    for (ValueId v : list<ValueId>()) g.add_input(v);
    for (ValueId v : list<ValueId>()) g.add_output(v);
    const uint32_t nodes = count_of(kNodeBytes);
    g.reserve(values, nodes);
    for (uint32_t i = 0; i < nodes; ++i) g.add_node(node(depth));
    g.own_nodes.resize(count_of(kNodeBytes));
    for (OwnNode& own : g.own_nodes) {
      own.first = number<uint32_t>();
      own.count = number<uint32_t>();
      own.node = node(depth);
    }
    return g;
  }

  Node node(int depth) {
    Node n;
    n.name = text();
    n.op = text();
    n.inputs = list<ValueId>();
    n.outputs = list<ValueId>();
    const uint32_t count = count_of(1);
    for (uint32_t i = 0; i < count; ++i) {
      std::string name = text();
      n.attributes.set(std::move(name), attribute(depth));
    }
    return n;
  }

  Attribute::Data attribute(int depth) {
    switch (number<uint8_t>()) {
      case kInt:
        return number<int64_t>();
      case kFloat:
        return number<double>();
      case kString:
        return text();
      case kInts:
        return list<int64_t>();
      case kFloats:
        return list<double>();
      case kStrings: {
        std::vector<std::string> values(count_of(sizeof(uint32_t)));
        for (std::string& v : values) v = text();
        return values;
      }
      case kTensor:
        return *constant_at(number<uint32_t>());
      case kGraph:
        return std::make_shared<Graph>(graph(depth + 1));
      default:
        fail("an attribute has an unknown kind");
    }
  }

  const char* at_;
  const char* end_;
  ArrayView<const char> data_;
  std::shared_ptr<const void> owner_;
  std::vector<std::shared_ptr<const HostTensor>> constants_;
};

void check_byte_order() {
  const uint16_t probe = 1;
  unsigned char first;
  std::memcpy(&first, &probe, 1);
  if (!first) throw UnsupportedError("[save] saved executables need a little-endian host; compile the model instead");
}

}  // namespace

GraphBytes serialize(const Graph& graph) {
  check_byte_order();
  GraphBytes bytes;
  Writer w(bytes);
  w.graph(graph, 0);
  bytes.structure = w.constants();
  return bytes;
}

Graph deserialize(ArrayView<const char> structure, ArrayView<const char> data, std::shared_ptr<const void> owner) {
  check_byte_order();
  return Reader(structure, data, std::move(owner)).run();
}

}  // namespace asc
