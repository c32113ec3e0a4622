// The forward pass with a stream and memory provided by the caller (DeviceForward), as used by benchmarks: the results
// are the same, only outputs and workspace are written, and the work of a stream runs in order.
#include "native/on_gpu/rows.h"
#include "population/cuda/device_forward.h"

using namespace neuroevo;

namespace {

constexpr int64_t kGuard = 1 << 16;  // bytes before and after every part

const char kImages[] =
    "input uint8 19 23 4; conv 32 8 8 4 same 1; bias; relu; conv 64 4 4 2 same 1; bias; relu; dense 64 1; bias; relu; "
    "dense 6 1; bias";

struct OwnStream {
  device::Stream stream = device::MakeStream();
  ~OwnStream() { device::FreeStream(stream); }
};

// Device memory with guards around it. All bytes are initially 0xa5.
class Guarded {
 public:
  Guarded(int64_t bytes, device::Stream stream) : bytes_(bytes), memory_(device::Where::kDevice, bytes + 2 * kGuard) {
    device::FillBytes(memory_.data(), 0xa5, memory_.bytes(), stream);
  }
  char* data() const { return memory_.data() + kGuard; }
  void CheckGuards(device::Stream stream) const {
    const std::string all = Read(memory_.data(), memory_.bytes(), stream);
    for (int64_t i = 0; i < kGuard; ++i) {
      CHECK_EQ(all[i], '\xa5');
      CHECK_EQ(all[kGuard + bytes_ + i], '\xa5');
    }
  }
  std::string Bytes(device::Stream stream) const { return Read(data(), bytes_, stream); }

 private:
  static std::string Read(const char* from, int64_t bytes, device::Stream stream) {
    std::string values(bytes, 0);
    device::CopyOut(values.data(), from, bytes, stream);
    device::Synchronize(stream);
    return values;
  }
  int64_t bytes_;
  device::Memory memory_;
};

// Caller with device memory for one call and a stream.
struct Caller {
  OwnStream own;
  Guarded in, out, workspace;

  Caller(const Rows& rows, int64_t slots)
      : in(slots * InputBytes(rows), own.stream),
        out(slots * rows.A() * 4, own.stream),
        workspace(Device(rows).WorkspaceBytes(slots), own.stream) {}
  static int64_t InputBytes(const Rows& rows) {
    const Network& network = rows.population->networks()[0];
    return network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype()));
  }
  static cuda::DeviceForward& Device(const Rows& rows) {
    auto* device = dynamic_cast<cuda::DeviceForward*>(rows.population.get());
    CHECK(device != nullptr);
    return *device;
  }
  // Queues a call on the stream.
  void Queue(const Rows& rows, const std::vector<int64_t>& slots, const std::vector<uint8_t>& observations) {
    device::CopyIn(in.data(), observations.data(), static_cast<int64_t>(observations.size()), own.stream);
    Device(rows).ForwardOnDevice(slots, in.data(), reinterpret_cast<float*>(out.data()), {}, workspace.data(),
                                 own.stream);
  }
  std::vector<float> Outputs() {
    const std::string bytes = out.Bytes(own.stream);
    std::vector<float> values(bytes.size() / 4);
    memcpy(values.data(), bytes.data(), bytes.size());
    for (const Guarded* part : {&in, &out, &workspace}) part->CheckGuards(own.stream);
    return values;
  }
};

}  // namespace

TEST(ForwardOnTheCallersMemoryAndStream) {
  NotForThreadSanitizer();
  for (DType dtype : {DType::kFloat32, DType::kInt8}) {
    std::vector<std::string> texts = {kImages};
    if (FullSize()) texts.push_back(kLargeModel);
    for (const std::string& text : texts) {
      Both both({text}, 7, dtype);
      both.Fill();
      for (int64_t k : FullSize() ? std::vector<int64_t>{1, 5, 64, 200} : std::vector<int64_t>{1, 5, 14}) {
        const auto rows = RowsOf(Sharing::kMixed, k, 7, k);
        const auto observations = Observations<uint8_t>(both.cpu.population->networks()[0], k, k);
        Caller caller(both.gpu, k);
        caller.Queue(both.gpu, rows, observations);
        CheckSame(caller.Outputs(), both.cpu.Forward(rows, observations), Concat(k, " slots"));
        CHECK_EQ(caller.in.Bytes(caller.own.stream), std::string(observations.begin(), observations.end()));
      }
    }
  }
}

TEST(CallsOfOneStreamFollowEachOtherWithoutWaiting) {
  NotForThreadSanitizer();
  for (DType dtype : {DType::kFloat32, DType::kInt8}) {
    Both both({kImages}, 40, dtype);
    both.Fill();
    constexpr int64_t kCalls = 6, kSlots = 9;
    Caller caller(both.gpu, kSlots);
    std::vector<std::vector<float>> expected;
    std::vector<std::unique_ptr<Guarded>> kept;
    const int64_t out_bytes = kSlots * both.gpu.A() * 4;
    for (int64_t c = 0; c < kCalls; ++c) {  // all use the same memory; lists go out of scope before the calls have run
      const auto rows = RowsOf(kSharings[c % 3], kSlots, 40, c);
      const auto observations = Observations<uint8_t>(both.cpu.population->networks()[0], kSlots, c);
      caller.Queue(both.gpu, rows, observations);
      kept.push_back(std::make_unique<Guarded>(out_bytes, caller.own.stream));
      device::CopyWithin(kept.back()->data(), caller.out.data(), out_bytes, caller.own.stream);
      expected.push_back(both.cpu.Forward(rows, observations));
    }
    for (int64_t c = 0; c < kCalls; ++c) {
      const std::string bytes = kept[c]->Bytes(caller.own.stream);
      std::vector<float> values(kSlots * both.gpu.A());
      memcpy(values.data(), bytes.data(), bytes.size());
      CheckSame(values, expected[c], Concat("call ", c));
    }
    caller.Outputs();
  }
}

TEST(TwoCallersOverlap) {
  Both both({kImages}, 20);
  both.Fill();
  Caller a(both.gpu, 11), b(both.gpu, 20);
  for (uint64_t round = 0; round < 4; ++round) {
    const auto rows_a = RowsOf(Sharing::kMixed, 11, 20, round), rows_b = RowsOf(Sharing::kNone, 20, 20, round);
    const auto seen_a = Observations<uint8_t>(both.cpu.population->networks()[0], 11, round);
    const auto seen_b = Observations<uint8_t>(both.cpu.population->networks()[0], 20, round + 10);
    a.Queue(both.gpu, rows_a, seen_a);
    b.Queue(both.gpu, rows_b, seen_b);
    CheckSame(a.Outputs(), both.cpu.Forward(rows_a, seen_a), "a");
    CheckSame(b.Outputs(), both.cpu.Forward(rows_b, seen_b), "b");
  }
}

TEST(EventsMeasureAStreamsTime) {
  NeedGpu();
  OwnStream own;
  const int64_t bytes = FullSize() ? int64_t{1} << 30 : 1 << 22;
  const device::Memory memory(device::Where::kDevice, bytes);
  device::Event begin, middle, end;
  device::FillBytes(memory.data(), 1, bytes, own.stream);
  begin.Record(own.stream);
  device::FillBytes(memory.data(), 2, bytes, own.stream);
  middle.Record(own.stream);
  device::FillBytes(memory.data(), 3, bytes, own.stream);
  end.Record(own.stream);
  device::Synchronize(own.stream);
  CHECK(begin.SecondsUntil(middle) > 0);
  CHECK(begin.SecondsUntil(end) >= begin.SecondsUntil(middle));
  CHECK(begin.SecondsUntil(end) < 10);
}
