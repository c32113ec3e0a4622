#include "population/perturb_chains.h"

#include <cstddef>
#include <numeric>
#include <unordered_map>

namespace neuroevo {

std::vector<std::vector<int32_t>> PerturbChains(const std::vector<int64_t>& dst, const std::vector<int64_t>& src) {
  std::unordered_map<int64_t, int32_t> writer;  // row -> an entry that writes it
  std::vector<int32_t> parent(dst.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int32_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (size_t i = 0; i < dst.size(); ++i) {
    const auto [it, first] = writer.emplace(dst[i], static_cast<int32_t>(i));
    if (!first) parent[root(static_cast<int32_t>(i))] = root(it->second);
  }
  for (size_t i = 0; i < src.size(); ++i) {
    const auto it = writer.find(src[i]);
    if (it != writer.end()) parent[root(static_cast<int32_t>(i))] = root(it->second);
  }
  std::vector<std::vector<int32_t>> chains;
  std::unordered_map<int32_t, size_t> index;
  for (size_t i = 0; i < dst.size(); ++i) {
    const auto [it, first] = index.emplace(root(static_cast<int32_t>(i)), chains.size());
    if (first) chains.emplace_back();
    chains[it->second].push_back(static_cast<int32_t>(i));
  }
  return chains;
}

}  // namespace neuroevo
