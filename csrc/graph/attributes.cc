// Attributes of a node: a small list sorted by name.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/hash.h"
#include "graph/graph.h"

namespace asc {
namespace {

constexpr const char* kTypeNames[] = {"an int",           "a float",           "a string", "a list of ints",
                                      "a list of floats", "a list of strings", "a tensor", "a graph"};

template <typename T>
const T& get_as(const Attribute& a, size_t wanted) {
  if (const T* value = std::get_if<T>(&a.data)) return *value;
  throw GraphError("[attribute] '" + a.name + "' is " + kTypeNames[a.data.index()] + ", expected " +
                   kTypeNames[wanted] + "; correct the node that carries it");
}

// An absent list reads as empty.
template <typename T>
const std::vector<T>& get_list(const Attribute* a, size_t wanted) {
  static const std::vector<T> kEmpty;
  return a ? get_as<std::vector<T>>(*a, wanted) : kEmpty;
}

std::string text_of(int64_t v) { return std::to_string(v); }

// Shortest text that reads back as the same number, in every locale.
std::string text_of(double v) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  return std::string(text, end);
}

std::string text_of(const std::string& v) {
  std::string s = "\"";
  for (char c : v) {
    if (c == '"' || c == '\\') s += '\\';
    if (c == '\n')
      s += "\\n";
    else
      s += c;
  }
  return s + "\"";
}

template <typename T>
std::string text_of(const std::vector<T>& list) {
  std::string s = "[";
  for (size_t i = 0; i < list.size(); ++i) s += (i ? ", " : "") + text_of(list[i]);
  return s + "]";
}

// Contents by hash: attributes may hold large tensors.
std::string text_of(const HostTensor& t) {
  char hash[17];
  const auto end = std::to_chars(hash, hash + sizeof hash, hash_bytes(t.data(), t.bytes()), 16).ptr;
  return std::string(name_of(t.dtype)) + t.shape.text() + "#" + std::string(hash, end);
}

std::string text_of(const std::shared_ptr<Graph>& g) { return "graph " + text_of(g ? g->name : std::string()); }

// Bits, so that -0.0 differs from 0.0 and a NaN equals itself.
bool same_bits(const double* a, const double* b, size_t count) {
  return count == 0 || std::memcmp(a, b, count * sizeof(double)) == 0;
}

bool same_data(const Attribute::Data& a, const Attribute::Data& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&b](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, double>)
          return same_bits(&x, &y, 1);
        else if constexpr (std::is_same_v<T, std::vector<double>>)
          return x.size() == y.size() && same_bits(x.data(), y.data(), x.size());
        else if constexpr (std::is_same_v<T, HostTensor>)
          return x.same_value(y);
        else if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>)
          return x == y || (x && y && x->same_structure(*y));
        else
          return x == y;
      },
      a);
}

}  // namespace

void Attributes::set(std::string name, Attribute::Data data) {
  const auto at = std::lower_bound(list_.begin(), list_.end(), name,
                                   [](const Attribute& a, const std::string& n) { return a.name < n; });
  if (at != list_.end() && at->name == name)
    at->data = std::move(data);
  else
    list_.insert(at, Attribute{std::move(name), std::move(data)});
}

// Nodes carry a handful of attributes: a scan that compares lengths first beats a binary search.
const Attribute* Attributes::find(std::string_view name) const {
  for (const Attribute& a : list_)
    if (a.name.size() == name.size() && std::memcmp(a.name.data(), name.data(), name.size()) == 0) return &a;
  return nullptr;
}

int64_t Attributes::get_int(std::string_view name, int64_t fallback) const {
  const Attribute* a = find(name);
  return a ? get_as<int64_t>(*a, 0) : fallback;
}

double Attributes::get_float(std::string_view name, double fallback) const {
  const Attribute* a = find(name);
  return a ? get_as<double>(*a, 1) : fallback;
}

std::string_view Attributes::get_string(std::string_view name, std::string_view fallback) const {
  const Attribute* a = find(name);
  return a ? std::string_view(get_as<std::string>(*a, 2)) : fallback;
}

const std::vector<int64_t>& Attributes::get_ints(std::string_view name) const {
  return get_list<int64_t>(find(name), 3);
}

const std::vector<double>& Attributes::get_floats(std::string_view name) const {
  return get_list<double>(find(name), 4);
}

const std::vector<std::string>& Attributes::get_strings(std::string_view name) const {
  return get_list<std::string>(find(name), 5);
}

const HostTensor* Attributes::get_tensor(std::string_view name) const {
  const Attribute* a = find(name);
  return a ? &get_as<HostTensor>(*a, 6) : nullptr;
}

const std::shared_ptr<Graph>& Attributes::get_graph(std::string_view name) const {
  const Attribute* a = find(name);
  if (!a) throw GraphError("[attribute] body '" + std::string(name) + "' is missing; give the node that graph");
  return get_as<std::shared_ptr<Graph>>(*a, 7);
}

std::string Attributes::text() const {
  std::string s = "{";
  for (const Attribute& a : list_) {
    if (s.size() > 1) s += ", ";
    s += a.name + "=" + std::visit([](const auto& v) { return text_of(v); }, a.data);
  }
  return s + "}";
}

bool Attributes::same_value(const Attributes& o) const {
  if (list_.size() != o.list_.size()) return false;
  for (size_t i = 0; i < list_.size(); ++i)
    if (list_[i].name != o.list_[i].name || !same_data(list_[i].data, o.list_[i].data)) return false;
  return true;
}

}  // namespace asc
