// Argument checks shared by all backends. They throw before anything has changed.
#include "population/population.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/trace.h"

namespace neuroevo {

namespace {

constexpr int64_t kMaxRows = 1 << 24;
constexpr int64_t kMaxReference = 1 << 20;  // observations; the paper's batch has 128

void CheckSize(const char* what, size_t size, const char* other, size_t expected) {
  if (size != expected) ThrowInvalid(what, " has ", size, " entries, expected ", expected, " as in ", other);
}

void CheckPointer(const char* what, const void* pointer, size_t entries) {
  if (pointer == nullptr && entries > 0) ThrowInvalid(what, " is null for ", entries, " rows");
}

void CheckStride(int64_t stride, const Network& network) {
  if (stride < network.dimension()) {
    ThrowInvalid("stride is ", stride, ", expected at least the network's D = ", network.dimension());
  }
}

std::string InputOf(const Network& network) {
  std::string text = NameOf(network.input_dtype());
  for (int dim : network.input_shape()) text += " " + std::to_string(dim);
  return text;
}

int64_t CheckedRows(int64_t rows) {
  if (rows < 1 || rows > kMaxRows) ThrowInvalid("rows is ", rows, ", expected 1 to ", kMaxRows);
  return rows;
}

[[noreturn]] void ThrowNoVbn() {
  throw Error(Error::Kind::kInternal, "this backend does not support networks with vbn");
}

}  // namespace

Population::Population(std::vector<Network> networks, int64_t rows, std::shared_ptr<ThreadPool> pool, int rank,
                       int64_t float_rows)
    : networks_(std::move(networks)),
      rows_(CheckedRows(rows)),
      pool_(std::move(pool)),
      members_(rank, float_rows, rows) {
  if (networks_.empty()) ThrowInvalid("a population needs at least 1 network, found 0");
  if (!pool_) ThrowInvalid("a population needs a thread pool, found null");
  for (size_t i = 1; i < networks_.size(); ++i) CheckFits(static_cast<int64_t>(i), networks_[i]);
  for (const Network& network : networks_) {
    state_size_ = std::max(state_size_, network.state_size());
    largest_row_ = std::max(largest_row_, network.row_size());
  }
  since_.assign(networks_.size(), 1);
  row_network_.assign(rows_, -1);
  content_.assign(rows_, 0);
  prepared_.assign(rows_, 0);
  cleared_.assign(recurrent() ? rows_ : 0, 0);
}

void Population::CheckFits(int64_t index, const Network& network) const {
  const Network& first = networks_[0];
  if (InputOf(network) != InputOf(first)) {
    ThrowInvalid("network ", index, " has input ", InputOf(network), ", but network 0 has input ", InputOf(first));
  }
  if (network.output_size() != first.output_size()) {
    ThrowInvalid("network ", index, " has ", network.output_size(), " outputs, but network 0 has ",
                 first.output_size());
  }
}

void Population::Replace(int32_t index, Network network) {
  CheckIndex("network", index, static_cast<int64_t>(networks_.size()));
  if (members_.count() > 0) ThrowInvalid("networks of members of low rank cannot be replaced");
  CheckFits(index, network);
  if (network.row_size() > largest_row_ || network.state_size() > state_size_) {
    ThrowInvalid("network ", index, " has ", network.row_size(), " weights and a state of ", network.state_size(),
                 ", expected at most ", largest_row_, " and ", state_size_,
                 " as in the largest network that the population was created with");
  }
  since_[index] = ++fills_;
  std::swap(networks_[index], network);
  try {
    DoReplace(index);
  } catch (...) {
    std::swap(networks_[index], network);
    throw;
  }
}

bool Population::Filled(int64_t row) const {
  return row_network_[row] >= 0 && content_[row] >= since_[row_network_[row]];
}

void Population::SetNetwork(int64_t row, int32_t network) {
  row_network_[row] = network;
  content_[row] = ++fills_;
  prepared_[row] = 0;
}

template <class Body>
void Population::WriteRows(const std::vector<int64_t>& rows, Body body) {
  try {
    body();
  } catch (...) {
    for (int64_t row : rows) row_network_[row] = -1;
    throw;
  }
}

void Population::CheckTheta(int64_t, bool) const {}

void Population::CheckChains(const std::vector<int64_t>&, const std::vector<int64_t>&) const {}

void Population::CheckRow(const char* what, int64_t row) const { CheckIndex(what, row, rows_); }

void Population::CheckFilled(int64_t row) const {
  if (!Filled(row)) {
    ThrowInvalid("row ", row, " has no network yet: fill it with Init, Assign or Perturb first");
  }
}

void Population::CheckUsable(int64_t row) const {
  CheckRow("row", row);
  CheckFilled(row);
  members_.CheckCenter(row, content_);
}

void Population::CheckPrepared(int64_t row) const {
  if (NetworkOf(row).has_vbn() && !prepared_[row]) {
    ThrowInvalid("row ", row, " has a network with vbn and was not prepared since it was filled: call Prepare first");
  }
}

void Population::CheckFill(const std::vector<int64_t>& rows, const std::vector<int32_t>& network) const {
  CheckSize("network", network.size(), "rows", rows.size());
  std::unordered_set<int64_t> seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    CheckRow("row", rows[i]);
    members_.CheckHoldsWeights("row", rows[i]);
    CheckIndex("network", network[i], static_cast<int64_t>(networks_.size()));
    if (!seen.insert(rows[i]).second) ThrowInvalid("row ", rows[i], " is given twice, expected different rows");
  }
}

void Population::Init(const std::vector<int64_t>& rows, const std::vector<int32_t>& network,
                      const std::vector<uint64_t>& seeds) {
  const trace::Scope scope("init", static_cast<int64_t>(rows.size()));
  CheckFill(rows, network);
  CheckSize("seeds", seeds.size(), "rows", rows.size());
  for (size_t i = 0; i < rows.size(); ++i) SetNetwork(rows[i], network[i]);
  WriteRows(rows, [&] { DoInit(rows, seeds); });
}

void Population::Assign(const std::vector<int64_t>& rows, const std::vector<int32_t>& network, const float* thetas,
                        int64_t stride) {
  CheckFill(rows, network);
  CheckPointer("thetas", thetas, rows.size());
  for (int32_t index : network) CheckStride(stride, networks_[index]);
  for (size_t i = 0; i < rows.size(); ++i) SetNetwork(rows[i], network[i]);
  WriteRows(rows, [&] { DoAssign(rows, thetas, stride); });
}

void Population::Read(const std::vector<int64_t>& rows, float* out, int64_t stride) {
  CheckPointer("out", out, rows.size());
  for (int64_t row : rows) {
    CheckUsable(row);
    CheckTheta(row, false);
    CheckStride(stride, NetworkOf(row));
  }
  DoRead(rows, out, stride);
}

void Population::Perturb(const std::vector<int64_t>& dst, const std::vector<int64_t>& src,
                         const std::vector<uint64_t>& seeds, const std::vector<float>& scale,
                         std::vector<int64_t> spreads) {
  if (spreads.empty()) spreads.assign(dst.size(), -1);
  const trace::Scope scope("perturb", static_cast<int64_t>(dst.size()));
  CheckSize("src", src.size(), "dst", dst.size());
  CheckSize("seeds", seeds.size(), "dst", dst.size());
  CheckSize("scale", scale.size(), "dst", dst.size());
  CheckSize("spreads", spreads.size(), "dst", dst.size());
  std::vector<int32_t> network(dst.size());
  std::unordered_map<int64_t, int32_t> filled;  // networks of the rows written by earlier entries
  const bool members = !dst.empty() && members_.Is(dst[0]);
  for (size_t i = 0; i < dst.size(); ++i) {
    CheckRow("dst row", dst[i]);
    CheckRow("src row", src[i]);
    members_.CheckHoldsWeights("src row", src[i]);
    if (!std::isfinite(scale[i])) ThrowInvalid("scale ", i, " is ", scale[i], ", expected a finite number");
    const auto earlier = filled.find(src[i]);
    if (earlier == filled.end()) {
      CheckFilled(src[i]);
      CheckTheta(src[i], src[i] == dst[i]);
    }
    network[i] = earlier == filled.end() ? row_network_[src[i]] : earlier->second;
    if (members_.Is(dst[i]) != members) {
      ThrowInvalid("one of dst rows ", dst[0], " and ", dst[i], " is a member, expected only members or no members");
    }
    if (members && filled.count(dst[i]) > 0)
      ThrowInvalid("member ", dst[i], " is given twice, expected different members");
    filled[dst[i]] = network[i];
  }
  for (size_t i = 0; i < dst.size(); ++i) {
    if (spreads[i] != -1) CheckSpread(spreads[i], dst[i], network[i], filled);
  }
  CheckChains(dst, src);
  for (const auto& [row, index] : filled) SetNetwork(row, index);
  if (!members) return WriteRows(dst, [&] { DoPerturb(dst, src, network, seeds, scale, spreads); });
  for (size_t i = 0; i < dst.size(); ++i) members_.Set(dst[i], {src[i], content_[src[i]], scale[i]});
  WriteRows(dst, [&] { DoPerturbMembers(dst, seeds); });
}

void Population::CheckSpread(int64_t row, int64_t dst, int32_t network,
                             const std::unordered_map<int64_t, int32_t>& filled) const {
  CheckRow("spread row", row);
  members_.CheckHoldsWeights("spread row", row);
  if (members_.Is(dst)) {
    ThrowInvalid("member ", dst, " has spread row ", row,
                 ", expected -1: noise of low rank is not scaled weight by weight");
  }
  if (filled.count(row) > 0) {
    ThrowInvalid("spread row ", row, " is written by the same call, expected a row that the call does not write");
  }
  CheckFilled(row);
  CheckTheta(row, false);
  if (row_network_[row] != network) {
    ThrowInvalid("spread row ", row, " has network ", row_network_[row], ", expected ", network, " as dst row ", dst);
  }
}

void Population::DoPerturbMembers(const std::vector<int64_t>&, const std::vector<uint64_t>&) {
  throw Error(Error::Kind::kInternal, "this backend does not support members of low rank");
}

void Population::SetReference(const void* observations, int64_t count) {
  if (count < 1 || count > kMaxReference) {
    ThrowInvalid("the reference batch has ", count, " observations, expected 1 to ", kMaxReference);
  }
  CheckPointer("observations", observations, static_cast<size_t>(count));
  if (reference_count_ > 0) {
    ThrowInvalid("the reference batch is already set, with ", reference_count_, " observations; set it only once");
  }
  const Network& network = networks_.front();  // all have the same input
  const char* bytes = static_cast<const char*>(observations);
  const int64_t size = network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype()));
  reference_.assign(bytes, bytes + count * size);
  reference_count_ = count;
  try {
    DoSetReference();
  } catch (...) {
    reference_count_ = 0;
    throw;
  }
}

void Population::Prepare(const std::vector<int64_t>& rows) {
  std::vector<int64_t> unprepared;
  std::unordered_set<int64_t> seen;
  for (int64_t row : rows) {
    CheckUsable(row);
    if (!NetworkOf(row).has_vbn() || prepared_[row] || !seen.insert(row).second) continue;
    if (reference_count_ == 0) {
      ThrowInvalid("row ", row, " has a network with vbn, but no reference batch is set: call SetReference first");
    }
    unprepared.push_back(row);
  }
  if (unprepared.empty()) return;
  const trace::Scope scope("prepare", static_cast<int64_t>(unprepared.size()));
  DoPrepare(unprepared);
  for (int64_t row : unprepared) prepared_[row] = 1;
}

void Population::DoPrepare(const std::vector<int64_t>&) { ThrowNoVbn(); }

void Population::DoReadStatistics(int64_t, float*, int64_t) { ThrowNoVbn(); }

std::vector<float> Population::Statistics(int64_t row) {
  CheckUsable(row);
  CheckPrepared(row);
  const Network& network = NetworkOf(row);
  std::vector<float> statistics(network.row_size() - network.dimension());
  if (!statistics.empty()) DoReadStatistics(row, statistics.data(), static_cast<int64_t>(statistics.size()));
  return statistics;
}

void Population::CheckForward(const std::vector<int64_t>& rows, const void* observations, const float* out,
                              const std::vector<int64_t>& states) const {
  CheckPointer("observations", observations, rows.size());
  CheckPointer("out", out, rows.size());
  for (int64_t row : rows) {
    CheckUsable(row);
    CheckPrepared(row);
  }
  if (!recurrent() && states.empty()) return;
  if (states.size() != rows.size()) {
    ThrowInvalid(recurrent() ? "networks are recurrent, and there" : "there", " are ", states.size(),
                 " states, expected ", rows.size(), ", one for each row");
  }
  std::unordered_set<int64_t> seen;
  for (int64_t state : states) {
    CheckRow("state", state);
    if (recurrent() && !cleared_[state])
      ThrowInvalid("state ", state, " was never cleared: call ClearStates when an episode begins");
    if (!seen.insert(state).second) ThrowInvalid("state ", state, " is given twice, expected different states");
  }
}

void Population::Forward(const std::vector<int64_t>& rows, const void* observations, float* out,
                         const std::vector<int64_t>& states) {
  const trace::Scope scope("forward", static_cast<int64_t>(rows.size()), observations);
  CheckForward(rows, observations, out, states);
  DoForward(rows, observations, out, states);
}

void Population::ClearStates(const std::vector<int64_t>& states) {
  for (int64_t state : states) CheckRow("state", state);
  if (!recurrent() || states.empty()) return;
  DoClearStates(states);
  for (int64_t state : states) cleared_[state] = 1;
}

void Population::DoClearStates(const std::vector<int64_t>&) {
  throw Error(Error::Kind::kInternal, "this backend does not support recurrent networks");
}

}  // namespace neuroevo
