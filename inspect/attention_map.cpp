#include "attention_map.hpp"

#include <xtensor/xview.hpp>

#include <bit>
#include <charconv>
#include <utility>

#include "../engine/array/internal/error.hpp"
#include "../layers/model/internal/atomic_file.hpp"
#include "gnuplot.hpp"
#include "internal/attention_picture.hpp"

namespace tapegrad {
namespace {

template <class T> void require_consistent(const char* operation, const AttentionMap<T>& map) {
  const Shape& s = map.weights.shape();
  detail::require(s.size() == 3 && s[1] == map.queries.size() && s[2] == map.keys.size(), operation,
                  "expected weights (H, ", map.queries.size(), ", ", map.keys.size(), ") for these tokens, got ", s);
  detail::require(map.layers > 0 && s[0] % map.layers == 0, operation,
                  "expected a number of heads divisible by layers = ", map.layers, ", got weights ", s);
  detail::require(map.gradients.size() == 0 || map.gradients.shape() == s, operation,
                  "expected no gradients or the weights' shape ", s, ", got ", map.gradients.shape());
}

// The shortest digits that round-trip.
template <class T> std::string digits(T number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

// NumPy's format, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html: version 1.0, the length of
// the header in 2 bytes, the header, padding to a multiple of 64 bytes, the numbers. xtensor's own header depends on
// the global locale.
template <class T> std::string npy(const Array<T>& array) {
  static_assert(std::endian::native == std::endian::little);
  std::string shape;
  for (const std::size_t extent : array.shape()) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  if (array.dimension() == 1) shape += ',';
  std::string header =
      "{'descr': '<f" + std::to_string(sizeof(T)) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr std::size_t front = 10;
  header.resize((front + header.size() + 1 + 63) / 64 * 64 - front - 1, ' ');
  header += '\n';
  const char length[] = {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  std::string bytes("\x93NUMPY\1\0", front - sizeof length);
  bytes.append(length, sizeof length).append(header);
  return bytes.append(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(T));
}

// Quoted according to RFC 4180.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

template <class T>
AttentionMap<T> attention_map(const Tensor<T>& weights, std::size_t entry, std::vector<std::string> queries,
                              std::vector<std::string> keys) {
  constexpr const char* name = "attention_map";
  const Shape& s = weights.shape();
  detail::require(s.size() == 4, name, "expected weights (B, H, T, S), got ", s);
  detail::require_in_range(entry < s[0], name, "expected a batch entry below ", s[0], ", got ", entry);
  AttentionMap<T> map{
      .queries = std::move(queries), .keys = std::move(keys), .weights = xt::view(weights.value(), entry)};
  if (weights.has_grad()) map.gradients = xt::view(weights.grad(), entry);
  require_consistent(name, map);
  return map;
}

template <class T> void save_npy(const Array<T>& array, const std::filesystem::path& path) {
  detail::replace_file("save_npy", path, npy(array));
}

template <class T> void save_csv(const AttentionMap<T>& map, const std::filesystem::path& path) {
  require_consistent("save_csv", map);
  const bool with_gradients = map.gradients.size() > 0;
  const bool with_layers = map.layers > 1;
  const std::size_t heads = map.weights.shape()[0], heads_of_one = heads / map.layers;
  std::string text = with_layers ? "layer," : "";
  text += "head,query,key,query_token,key_token,weight";
  text += with_gradients ? ",gradient\n" : "\n";
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t t = 0; t < map.queries.size(); ++t)
      for (std::size_t s = 0; s < map.keys.size(); ++s) {
        if (with_layers) text += std::to_string(h / heads_of_one) + ',';
        text += std::to_string(h % heads_of_one) + ',' + std::to_string(t) + ',' + std::to_string(s) + ',';
        text += csv_field(map.queries[t]) + ',' + csv_field(map.keys[s]) + ',' + digits(map.weights(h, t, s));
        if (with_gradients) text += ',' + digits(map.gradients(h, t, s));
        text += '\n';
      }
  detail::replace_file("save_csv", path, text);
}

template <class T>
void save_picture(const AttentionMap<T>& map, const std::filesystem::path& path, const std::string& title) {
  constexpr const char* name = "save_picture";
  require_consistent(name, map);
  detail::require(map.weights.size() > 0, name, "expected a map with elements, got weights ", map.weights.shape());
  const Array<double> weights = map.weights;
  save_plot(detail::picture_script(weights, map.layers, map.queries, map.keys, title), path, name);
}

#define INSTANTIATE(T)                                                                            \
  template AttentionMap<T> attention_map(const Tensor<T>&, std::size_t, std::vector<std::string>, \
                                         std::vector<std::string>);                               \
  template void save_npy(const Array<T>&, const std::filesystem::path&);                          \
  template void save_csv(const AttentionMap<T>&, const std::filesystem::path&);                   \
  template void save_picture(const AttentionMap<T>&, const std::filesystem::path&, const std::string&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
