#include "gpu_calls.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"
#include "machine.h"

namespace neuroevo {

namespace {

constexpr int kSamples = 5;  // at least

// The median of sample(), for as long as there is time.
double MedianOf(double seconds, const std::function<double()>& sample) {
  std::vector<double> samples;
  for (const double end = Seconds() + seconds; samples.size() < kSamples || Seconds() < end;) {
    samples.push_back(sample());
  }
  return Median(samples);
}

// Seconds of the stream's work that body queues, by events.
double StreamSeconds(device::Stream stream, const std::function<void()>& body) {
  device::Event begin, end;
  begin.Record(stream);
  body();
  end.Record(stream);
  device::Synchronize(stream);
  return begin.SecondsUntil(end);
}

double WallSeconds(const std::function<void()>& body) { return 1e-6 * Microseconds(body); }

std::unique_ptr<Population> MakePopulation(const std::string& network, DType dtype, int64_t rows) {
  return Population::Make(NEUROEVO_CUDA_BACKEND, {Network::Parse(network)}, rows, std::make_shared<ThreadPool>(4),
                          dtype, 0);
}

std::vector<int64_t> Order(int64_t n) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

DeviceCalls::DeviceCalls(const std::string& network, DType dtype, int64_t rows)
    : dtype_(dtype),
      population_(MakePopulation(network, dtype, rows)),
      forward_(dynamic_cast<cuda::DeviceForward*>(population_.get())),
      in_(device::Where::kDevice),
      out_(device::Where::kDevice),
      workspace_(device::Where::kDevice),
      pinned_(device::Where::kHost) {
  if (forward_ == nullptr) ThrowInvalid("the backend ", NEUROEVO_CUDA_BACKEND, " has no forward pass on the device");
  const std::vector<int64_t> all = Order(rows);
  population_->Init(all, std::vector<int32_t>(rows, 0), std::vector<uint64_t>(all.begin(), all.end()));
}

int64_t DeviceCalls::weight_bytes() const {
  return population_->networks()[0].dimension() * (dtype_ == DType::kInt8 ? 1 : 4);
}

std::vector<int64_t> DeviceCalls::NextRows(int64_t k, Play play) {
  std::vector<int64_t> list(k);
  const int64_t call = call_++;
  if (play == Play::kScattered) {  // k of a random order of all
    list = Order(rows());
    for (int64_t i = 0; i < k; ++i) {
      const uint64_t word = PhiloxWords(call, i).word[0];
      std::swap(list[i], list[i + static_cast<int64_t>(word % static_cast<uint64_t>(rows() - i))]);
    }
    list.resize(k);
    return list;
  }
  for (int64_t i = 0; i < k; ++i) list[i] = (play == Play::kOneRow ? call : call * k + i) % rows();
  return list;
}

void DeviceCalls::Prepare(int64_t k) {
  if (prepared_ == k) return;
  const Network& network = population_->networks()[0];
  const int64_t values = k * network.input_size();
  const int64_t bytes = values * static_cast<int64_t>(SizeOf(network.input_dtype()));
  in_.Grow(bytes);
  out_.Grow(k * network.output_size() * 4);
  workspace_.Grow(forward_->WorkspaceBytes(k));
  pinned_.Grow(bytes);
  // Random bytes, half of them zero as behind a ReLU and on Atari screens; floats alike.
  for (int64_t i = 0; i < values; ++i) {
    const uint32_t word = PhiloxWords(5, i).word[0];
    const uint8_t value = word & 256 ? static_cast<uint8_t>(word) : 0;
    if (network.input_dtype() == DType::kUint8) {
      reinterpret_cast<uint8_t*>(pinned_.data())[i] = value;
    } else {
      reinterpret_cast<float*>(pinned_.data())[i] = static_cast<float>(value) / 255;
    }
  }
  device::CopyIn(in_.data(), pinned_.data(), bytes, own_.stream);
  device::Synchronize(own_.stream);
  prepared_ = k;
}

CallTimes DeviceCalls::Time(int64_t k, Play play, double seconds) {
  Prepare(k);
  std::vector<int64_t> list;
  const auto call = [&] {
    forward_->ForwardOnDevice(list, in_.data(), reinterpret_cast<float*>(out_.data()), {}, workspace_.data(),
                              own_.stream);
  };
  const auto alone = [&] {
    list = NextRows(k, play);
    return StreamSeconds(own_.stream, call);
  };
  for (int i = 0; i < 3; ++i) alone();
  CallTimes times = {};
  times.alone = MedianOf(seconds / 3, alone);
  // Enough calls one behind the other that what comes before the first and after the last does not count.
  const int calls = static_cast<int>(std::max(3.0, std::min(200.0, 0.02 / times.alone)));
  std::vector<std::vector<int64_t>> lists(calls);
  times.queued = MedianOf(seconds * 2 / 3, [&] {
    for (auto& each : lists) each = NextRows(k, play);
    return StreamSeconds(own_.stream,
                         [&] {
                           for (auto& each : lists) {
                             list.swap(each);
                             call();
                           }
                         }) /
           calls;
  });
  return times;
}

double DeviceCalls::TimeFromHost(int64_t k, double seconds) {
  Prepare(k);
  const Network& network = population_->networks()[0];
  const int64_t bytes = k * network.input_size() * static_cast<int64_t>(SizeOf(network.input_dtype()));
  const std::shared_ptr<char> observations = population_->HostMemory(bytes);  // as the lane runner has them
  std::copy_n(pinned_.data(), bytes, observations.get());
  std::vector<float> out(k * network.output_size());
  const auto sample = [&] {
    const std::vector<int64_t> list = NextRows(k, Play::kOwnRows);
    return WallSeconds([&] { population_->Forward(list, observations.get(), out.data()); });
  };
  for (int i = 0; i < 3; ++i) sample();
  return MedianOf(seconds, sample);
}

double CopyBandwidth(int64_t bytes, double seconds) {
  const device::Memory from(device::Where::kDevice, bytes), to(device::Where::kDevice, bytes);
  const device::Stream stream = device::MakeStream();
  device::FillBytes(from.data(), 0x5a, bytes, stream);
  const auto copy = [&] {
    return StreamSeconds(stream, [&] { device::CopyWithin(to.data(), from.data(), bytes, stream); });
  };
  copy();
  const double time = MedianOf(seconds, copy);
  device::FreeStream(stream);
  return 2 * static_cast<double>(bytes) / time;
}

std::pair<double, double> BusBandwidth(int64_t bytes, double seconds) {
  const device::Memory on_device(device::Where::kDevice, bytes), pinned(device::Where::kHost, bytes);
  const device::Stream stream = device::MakeStream();
  const auto in = [&] {
    return StreamSeconds(stream, [&] { device::CopyIn(on_device.data(), pinned.data(), bytes, stream); });
  };
  const auto out = [&] {
    return StreamSeconds(stream, [&] { device::CopyOut(pinned.data(), on_device.data(), bytes, stream); });
  };
  in();
  const double in_time = MedianOf(seconds / 2, in), out_time = MedianOf(seconds / 2, out);
  device::FreeStream(stream);
  return {static_cast<double>(bytes) / in_time, static_cast<double>(bytes) / out_time};
}

MakeTimes TimeMaking(const std::string& network, DType dtype, int64_t rows, double seconds) {
  constexpr int64_t kParents = 20, kChain = 10;
  // An int8 row from Init alone keeps no theta; parents do.
  auto population = Population::Make(NEUROEVO_CUDA_BACKEND, {Network::Parse(network)}, kParents + rows,
                                     std::make_shared<ThreadPool>(4), dtype, kParents);
  const std::vector<int64_t> parents = Order(kParents);
  population->Init(parents, std::vector<int32_t>(kParents, 0), std::vector<uint64_t>(kParents, 1));
  std::vector<int64_t> made, from, chain_dst, chain_src;
  for (int64_t i = 0; i < rows; ++i) {
    made.push_back(kParents + i);
    from.push_back(i % kParents);
    for (int64_t c = 0; c < kChain; ++c) {
      chain_dst.push_back(made.back());
      chain_src.push_back(c == 0 ? from.back() : made.back());
    }
  }
  uint64_t seed = 0;
  const auto seeds = [&](size_t n) {
    std::vector<uint64_t> list(n);
    for (uint64_t& each : list) each = ++seed;
    return list;
  };
  const double n = static_cast<double>(rows);
  const auto per_row = [&](double count, const std::function<void()>& make) {
    make();
    return MedianOf(seconds / 2, [&] { return WallSeconds(make) / count; });
  };
  MakeTimes times = {};
  times.init = per_row(n, [&] { population->Init(made, std::vector<int32_t>(made.size(), 0), seeds(made.size())); });
  times.perturb =
      per_row(n, [&] { population->Perturb(made, from, seeds(made.size()), std::vector<float>(made.size(), 0.002f)); });
  times.perturb_one = per_row(1, [&] { population->Perturb({made[0]}, {from[0]}, seeds(1), {0.002f}); });
  times.chain = per_row(n, [&] {
    population->Perturb(chain_dst, chain_src, seeds(chain_dst.size()), std::vector<float>(chain_dst.size(), 0.002f));
  });
  return times;
}

}  // namespace neuroevo
