#include "score.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "../common/ranks.hpp"
#include "file_names.hpp"

namespace tg = tapegrad;

std::vector<Window> windows_of(std::size_t size, std::size_t context) {
  std::vector<Window> windows;
  const std::size_t last = size - 1, step = std::max<std::size_t>(1, context / 2);
  for (std::size_t end = 0; end < last;) {
    const std::size_t before = end;
    end = std::min(last, end == 0 ? context : end + step);
    windows.push_back({end < context ? 0 : end - context, end, end - before});
  }
  return windows;
}

Score score(const LanguageModel<>& model, std::size_t context, std::span<const std::int64_t> ids,
            const std::function<void(std::size_t, const Score&)>& report) {
  constexpr std::int64_t scored_before = -100;
  const tg::mpi::Group ranks;
  const std::vector<Window> windows = windows_of(ids.size(), context);
  Score all;
  for (std::size_t i = ranks.rank(); i < windows.size(); i += ranks.size()) {
    const auto& [begin, end, scored] = windows[i];
    const tg::Shape shape{1, end - begin};  // (1, T)
    tg::IntArray seen(shape), next(shape, scored_before);
    std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(begin), end - begin, seen.begin());
    std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(end + 1 - scored), scored,
                next.end() - static_cast<std::ptrdiff_t>(scored));
    tg::CrossEntropyOptions<float> options;
    options.ignore_index = scored_before;
    options.reduction = tg::Reduction::sum;
    const Score of_window{double(tg::cross_entropy(model(seen), next, options).item()), scored};
    all.loss += of_window.loss;
    all.tokens += of_window.tokens;
    if (report) report(i, of_window);
  }
  return {ranks.sum(all.loss), ids.size() - 1};
}

void require_finite(double loss, const std::filesystem::path& folder) {
  if (!std::isfinite(loss))
    throw std::runtime_error((folder / file_names::weights).string() +
                             ": expected weights with a finite loss on the text, got invalid ones");
}
