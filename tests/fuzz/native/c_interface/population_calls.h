// Calls of the C interface about populations.
#ifndef NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_POPULATION_CALLS_H_
#define NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_POPULATION_CALLS_H_

#include <string>
#include <vector>

#include "c_api/low_rank.h"
#include "c_api/neuroevo.h"
#include "c_api/noise_sum.h"
#include "c_api/vbn.h"
#include "fuzz/native/c_interface/arguments.h"
#include "networks/network.h"

namespace neuroevo::fuzz {

// Tiny networks for the toys of toy.h: bytes [6] to 3, float32 [3] to 2 or to 4; and some that fit neither.
inline const std::vector<const char*>& Texts() {
  static const std::vector<const char*> texts = {
      "input uint8 6; dense 3 1",
      "input uint8 6; dense 5 1; vbn; relu; dense 3 1; bias",
      "input uint8 6; lstm 2 1; dense 3 1",
      "input uint8 2 3 1; conv 2 2 2 1 same 1; relu; dense 3 1",
      "input float32 3; dense 2 1; bias; tanh",
      "input float32 3; lstm 2 1",
      "input float32 3; dense 17 1; layer_norm; gelu; dense 4 1",
      "input float32 2; dense 1 1",
      "input uint8 6; dense 99999999 1",
      "dense 3",
  };
  return texts;
}

class Rows {
 public:
  ~Rows() { Free(); }

  neuroevo_population* handle() const { return handle_; }
  int64_t rows() const { return rows_; }
  int64_t networks() const { return networks_; }
  int64_t dimension() const { return dimension_; }

  void Free() {
    neuroevo_population_free(handle_);
    handle_ = nullptr;
    rows_ = networks_ = dimension_ = 0;
  }

  void Make(Arguments* in) {
    Free();
    const int64_t first = in->Below(static_cast<int64_t>(Texts().size()));
    std::vector<const char*> texts = {Texts()[first]};
    while (in->Chance(20) && texts.size() < 3) texts.push_back(in->OneOf(Texts()));
    if (in->Chance(3)) texts.clear();
    const int64_t told = in->Told(static_cast<int64_t>(texts.size())),
                  rows = in->Chance(10) ? in->Index(9) : 1 + in->Below(9);
    const char* backend = in->OneOf({"cpu", "reference", "cpu", "reference", "gpu"});
    const bool every = in->Chance(50), low_rank = in->Chance(25);
    const int64_t float_rows = every ? -1 : in->Index(rows);
    int code;
    if (low_rank) {
      const auto rank = static_cast<int32_t>(in->Index(4));
      code = neuroevo_population_make_low_rank(backend, texts.data(), told, rows, float_rows, rank, &handle_);
    } else {
      const char* dtype = in->OneOf({"float32", "int8", "float32", "int8", "int4"});
      code = neuroevo_population_make(backend, texts.data(), told, rows, dtype, float_rows, &handle_);
    }
    if (Succeeded(code)) Remember(rows, told, texts[0]);
  }
  // With a network that sees and does what the toys do.
  void MakeFitting(bool buttons, int64_t rows, Arguments* in) {
    Free();
    const char* text = Texts()[buttons ? in->Below(4) : 4 + in->Below(3)];
    const char* backend = in->Chance(50) ? "reference" : "cpu";
    const char* dtype = buttons && in->Chance(50) ? "int8" : "float32";
    if (Succeeded(neuroevo_population_make(backend, &text, 1, rows, dtype, -1, &handle_))) Remember(rows, 1, text);
  }

  // playing: a rollout has it, and the calls that may then not be made are left out.
  void Call(int64_t what, bool playing, Arguments* in) {
    const int64_t length = in->Length(), told = in->Told(length);
    const auto rows = in->Indices(length, rows_);
    if (playing && what > 0) return;
    switch (what) {
      case 0: {
        int64_t dimension = 0;
        int recurrent = 0;
        Succeeded(neuroevo_population_dimension(handle_, in->Index(networks_), &dimension));
        Succeeded(neuroevo_population_recurrent(handle_, &recurrent));
        break;
      }
      case 1: {
        const auto networks = in->Networks(length, networks_);
        const auto seeds = in->Seeds(length);
        Succeeded(neuroevo_population_init(handle_, rows.get(), told, networks.get(), seeds.get()));
        break;
      }
      case 2:
      case 3: {  // which have a stride: D or more, of arrays that long, or none
        const int64_t stride = in->Chance(80) ? dimension_ + in->Below(3) : -in->Below(3);
        const auto networks = in->Networks(length, networks_);
        auto thetas = in->EqualFloats(length * std::max<int64_t>(stride, 0));
        Succeeded(what == 2
                      ? neuroevo_population_assign(handle_, rows.get(), told, networks.get(), thetas.get(), stride)
                      : neuroevo_population_read(handle_, rows.get(), told, thetas.get(), stride));
        break;
      }
      case 4: {
        const auto sources = in->Indices(length, rows_);
        const auto seeds = in->Seeds(length);
        const auto scales = in->Floats(length);
        const bool spread = in->Chance(30);
        const auto spreads = in->Indices(spread ? length : 0, rows_);
        Succeeded(neuroevo_population_perturb(handle_, rows.get(), sources.get(), told, seeds.get(), scales.get(),
                                              spread ? spreads.get() : nullptr));
        break;
      }
      case 5: {
        const auto states = in->Indices(length, rows_);
        const auto observations = in->Observations(length * observation_);
        auto outputs = in->Room<float>(length * outputs_);
        const bool with_states = in->Chance(60);
        Succeeded(neuroevo_population_forward(handle_, rows.get(), told, observations.get(), outputs.get(),
                                              with_states ? states.get() : nullptr));
        break;
      }
      case 6:
        Succeeded(neuroevo_population_clear_states(handle_, rows.get(), told));
        break;
      case 7: {
        const int64_t count = in->Below(4);
        const auto observations = in->Observations(count * observation_);
        Succeeded(neuroevo_population_set_reference(handle_, observations.get(), in->Chance(5) ? -1 : count));
        break;
      }
      case 8:
        Succeeded(neuroevo_population_prepare(handle_, rows.get(), told));
        break;
      case 9: {  // with one that is no larger than those before, or refused
        const char* text = in->OneOf(Texts());
        const auto index = static_cast<int32_t>(in->Index(networks_));
        Succeeded(neuroevo_population_replace(handle_, index, text));
        break;
      }
      default: {
        const int64_t n = in->Below(20);
        auto statistics = in->Room<float>(n);
        int64_t count = 0;
        const int64_t row = in->Index(rows_), told_n = in->Told(n);
        Succeeded(neuroevo_population_statistics(handle_, row, statistics.get(), told_n, &count));
        break;
      }
    }
  }
  static constexpr int64_t kCalls = 11;

 private:
  void Remember(int64_t rows, int64_t networks, const char* text) {
    rows_ = rows;
    networks_ = networks;
    dimension_ = 0;
    for (int64_t i = 0; i < networks_; ++i) {
      int64_t dimension = 0;
      Require(Succeeded(neuroevo_population_dimension(handle_, i, &dimension)), "network ", i, " has no D");
      dimension_ = std::max(dimension_, dimension);
    }
    const Network network = Network::Parse(text);
    observation_ = network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype()));
    outputs_ = network.output_size();
    if (dimension_ > kMostWeights) Free();  // its rows take memory when they are filled, but arrays take it at once
  }

  static constexpr int64_t kMostWeights = 1'000'000;

  neuroevo_population* handle_ = nullptr;
  int64_t rows_ = 0, networks_ = 0, dimension_ = 0, observation_ = 0, outputs_ = 0;
};

inline void Sum(Arguments* in) {
  const int64_t n = in->Length(), told = in->Told(n);
  const auto seeds = in->Seeds(n);
  const auto weights = in->Floats(n);
  if (in->Chance(50)) {
    const int64_t room = in->Below(40), begin = in->Index(100);
    auto out = in->Room<float>(room), squares = in->Room<float>(room);
    const auto square_weights = in->Floats(n);
    const int64_t count = in->Told(room);
    const bool both = in->Chance(50);
    Succeeded(neuroevo_noise_sum(seeds.get(), weights.get(), told, begin, count, out.get(),
                                 both ? square_weights.get() : nullptr, both ? squares.get() : nullptr));
    return;
  }
  const char* text = in->OneOf(Texts());
  int64_t dimension = in->Index(30);
  try {
    if (text != nullptr && in->Chance(80)) dimension = Network::Parse(text).dimension();
  } catch (const Error&) {
  }
  // Of another length it may only be refused.
  auto sums = in->Room<double>(dimension > 0 && dimension < 1000 ? dimension : 0);
  if (dimension >= 1000) return;
  const auto rank = static_cast<int32_t>(in->Index(5));
  Succeeded(neuroevo_low_rank_sum(text, rank, seeds.get(), weights.get(), told, dimension, sums.get()));
}

}  // namespace neuroevo::fuzz

#endif  // NEUROEVO_TESTS_FUZZ_NATIVE_C_INTERFACE_POPULATION_CALLS_H_
