// Virtual batch normalization on a GPU: statistics and outputs are bit-identical to the CPU's, for every kind of layer
// and any number of rows that are prepared together.
#include "native/on_gpu/rows.h"

using namespace neuroevo;

namespace {

const char kVirtualBn[] =
    "input uint8 84 84 4; conv 16 8 8 4 same 1.0; vbn; bias; relu; conv 32 4 4 2 same 1.0; vbn; bias; relu; "
    "dense 256 1.0; vbn; bias; relu; dense 18 1.0; bias";

void SetReference(Both* both, size_t count) {
  const Network& network = both->cpu.population->networks()[0];
  const auto set = [&](const auto& batch) {
    both->Do([&](Population& p) { p.SetReference(batch.data(), static_cast<int64_t>(count)); });
  };
  if (network.input_dtype() == DType::kUint8) {
    set(Observations<uint8_t>(network, count, 17));
  } else {
    set(Observations<float>(network, count, 17));
  }
}

void CheckStatistics(const Both& both, const std::vector<int64_t>& rows, const std::string& what) {
  for (int64_t row : rows) {
    CheckSame(both.gpu.population->Statistics(row), both.cpu.population->Statistics(row), Concat(what, ", row ", row));
  }
}

}  // namespace

TEST(EveryKindOfLayer) {
  NotForThreadSanitizer();
  for (const std::string text : {
           "input float32 7; vbn; dense 5 1; vbn; bias; relu; dense 3 1; bias",
           "input float32 376; vbn; dense 64 1; bias; tanh; dense 33 1; vbn; tanh; dense 17 1; bias; vbn",
           "input float32 4 6; vbn; tanh; dense 19 1; vbn; dense 2 1; vbn; tanh",
           "input float32 3 5 4; vbn; bias",
           "input float32 7 10 3; conv 5 3 2 2 same 1; vbn; bias; tanh; conv 19 2 3 1 valid 1; vbn; relu; dense 9 1",
           "input float32 9 9 1; relu; vbn; conv 17 2 2 3 same 1; bias; vbn; relu; conv 33 3 3 2 same 1; vbn; dense 1 "
           "1",
           "input float32 2 3 1; conv 70 5 7 1 same 1; tanh; vbn; vbn; conv 16 1 1 1 valid 1; vbn",
           "input uint8 50; dense 20 1; vbn; bias; relu; dense 4 1",
           "input uint8 9 11 2; vbn; conv 6 3 3 2 same 1; vbn; bias; relu; dense 5 1; vbn",
       }) {
    for (size_t references : {1, 3, 40}) {
      Both both({text}, 5);
      both.Fill();
      SetReference(&both, references);
      both.Do([](Population& p) { p.Prepare({0, 1, 2, 3, 4}); });
      const std::string what = Concat("'", text, "', ", references, " references");
      CheckStatistics(both, {0, 1, 2, 3, 4}, what);
      for (Sharing sharing : kSharings) CheckForward(both, RowsOf(sharing, 20, 5, 3), 99, what);
    }
  }
}

TEST(VirtualBn) {
  NotForThreadSanitizer();
  // At full size, more rows than are prepared in one batch.
  const int64_t rows = FullSize() ? 50 : 2;
  Both both({kVirtualBn}, rows);
  both.Fill();
  SetReference(&both, FullSize() ? 128 : 3);
  std::vector<int64_t> all(rows);
  std::iota(all.begin(), all.end(), 0);
  both.Do([&](Population& p) { p.Prepare(all); });
  CheckStatistics(both, all, "VirtualBN");
  CHECK(AnyNonZero(CheckForward(both, RowsOf(Sharing::kMixed, FullSize() ? 300 : 3, rows, 4), 5, "VirtualBN")));
}

TEST(RowsOfTwoNetworksThatAreFilledAnew) {
  NotForThreadSanitizer();
  Both both({"input float32 6 6 2; conv 3 3 3 1 same 1; vbn; relu; dense 4 1; bias",
             "input float32 6 6 2; vbn; dense 11 1; vbn; tanh; dense 4 1", "input float32 6 6 2; dense 4 1"},
            9);
  both.Fill();
  const auto forward = [&] { CheckForward(both, {4, 0, 3, 2, 8, 4}, 3, "two networks"); };
  CHECK_THROWS(forward(), "row 4 has a network with vbn and was not prepared since it was filled");
  CHECK_THROWS(both.gpu.population->Prepare({2, 4}), "row 4 has a network with vbn, but no reference batch is set");
  SetReference(&both, 10);
  both.Do([](Population& p) { p.Prepare({8, 0, 4, 4, 3, 0, 2}); });
  CheckStatistics(both, {0, 2, 3, 4, 8}, "two networks");
  forward();
  both.Do([](Population& p) { p.Perturb({4, 3}, {1, 1}, {7, 8}, {0.1f, 0.2f}); });
  CHECK_THROWS(forward(), "row 4 has a network with vbn and was not prepared since it was filled");
  both.Do([](Population& p) { p.Prepare({3, 4}); });
  CheckStatistics(both, {3, 4}, "refilled");
  forward();
}

TEST(Int8IsRefused) {
  NeedGpu();
  const auto make = [] {
    Rows(NEUROEVO_CUDA_BACKEND, {"input uint8 6; dense 3 1; vbn; relu; dense 2 1"}, 1, DType::kInt8);
  };
  CHECK_THROWS((make(), 0), "network 0 cannot be evaluated as int8: layer 2 'vbn' is not supported");
}
