// Fuzzes the C interface (c_api/*.h): the input is a sequence of calls with their arguments, on two env pools, two
// populations of tiny networks, a rollout and a vector environment. Handles and arrays may be null, and numbers far out
// of range, but an array has the length that is passed to the call; the headers' preconditions are met: a rollout's
// pool and population outlive it, and no other call writes rows while it plays. Each call returns 0 or a code with a
// message.
#include <array>
#include <cstdint>

#include "c_api/neuroevo.h"
#include "c_api/rollout.h"
#include "fuzz/native/c_interface/arguments.h"
#include "fuzz/native/c_interface/env_calls.h"
#include "fuzz/native/c_interface/population_calls.h"
#include "fuzz/native/c_interface/rollout_calls.h"
#include "fuzz/native/c_interface/toy.h"
#include "fuzz/native/target.h"

namespace neuroevo::fuzz {
namespace {

constexpr int kMaxCalls = 60;

class Session {
 public:
  explicit Session(Arguments* in) : in_(in) {}

  void Call() {
    const int64_t which = in_->Below(2);
    switch (in_->Below(17)) {
      case 0:
        if (rollout_.playing() && played_pool_ == which) rollout_.Free();
        in_->Chance(90) ? pools_[which].Make(in_) : pools_[which].Free();
        break;
      case 1:
        if (rollout_.playing() && played_rows_ == which) rollout_.Free();
        in_->Chance(90) ? rows_[which].Make(in_) : rows_[which].Free();
        break;
      case 2:
        played_pool_ = which;
        played_rows_ = in_->Chance(80) ? which : 1 - which;
        rollout_.Start(pools_[played_pool_], rows_[played_rows_], in_);
        break;
      case 3:
      case 4:
      case 5:
        rollout_.Call(in_->Below(Rollout::kCalls), in_);
        break;
      case 6:
        in_->Chance(40) ? vector_.Make(in_) : vector_.Call(in_->Below(Vector::kCalls), in_);
        break;
      case 7:
        vector_.Call(in_->Below(2), in_);
        break;
      case 8:
        in_->Chance(50) ? Sum(in_) : Process();
        break;
      case 9:
        rows_[which].Call(1, playing(which), in_);
        break;
      case 10:
      case 11:
      case 12:
        rows_[which].Call(in_->Below(Rows::kCalls), playing(which), in_);
        break;
      case 16:
        Play(which);
        break;
      default:
        pools_[which].Call(in_->Below(Pool::kCalls), in_);
    }
  }

 private:
  // A pool, rows and a rollout that fit each other, as calls at random seldom do, with episodes.
  void Play(int64_t which) {
    rollout_.Free();
    const bool buttons = in_->Chance(50);
    const int64_t slots = 1 + in_->Below(4);
    pools_[which].Make(buttons ? "fuzz_buttons" : "fuzz_joints", {}, 0, slots);
    rows_[which].MakeFitting(buttons, slots + in_->Below(4), in_);
    played_pool_ = played_rows_ = which;
    rollout_.Start(pools_[which], rows_[which], in_);
    for (const int64_t call : {Rollout::kSubmit, Rollout::kResults, Rollout::kResults}) rollout_.Call(call, in_);
  }

  bool playing(int64_t which) const { return rollout_.playing() && played_rows_ == which; }

  // What belongs to the whole process.
  void Process() {
    static const int32_t kThreads[] = {1, 2, 3, 0, -1, 4097, INT32_MIN, INT32_MAX};
    switch (in_->Below(3)) {
      case 0:
        Succeeded(neuroevo_set_threads(kThreads[in_->Below(8)]));
        Require(neuroevo_get_threads() >= 1 && neuroevo_busy_seconds() >= 0, "no threads");
        break;
      case 1:
        Succeeded(neuroevo_trace_start(in_->Index(5)));
        break;
      default: {
        neuroevo_span spans[3];
        int64_t count = 0, dropped = 0;
        neuroevo_trace_stop();
        Succeeded(neuroevo_trace_read(spans, in_->Index(4) % 4, &count, &dropped));
        Require(count >= 0 && dropped >= 0, count, " spans, ", dropped, " dropped");
      }
    }
  }

  Arguments* in_;
  std::array<Pool, 2> pools_;
  std::array<Rows, 2> rows_;
  Vector vector_;
  int64_t played_pool_ = 0, played_rows_ = 0;
  Rollout rollout_;  // is freed first
};

}  // namespace
}  // namespace neuroevo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neuroevo::fuzz;
  static const bool registered = (RegisterToys(), true);
  (void)registered;
  neuroevo_set_threads(2);
  Arguments in(data, size);
  {
    Session session(&in);
    for (int call = 0; call < kMaxCalls && !in.empty(); ++call) session.Call();
  }
  neuroevo_trace_stop();
  // No thread but this one is left when libFuzzer looks for leaks: where the system gives a thread the number of an
  // earlier one, clang's runtime finds that one, which has ended, and takes the new one's memory for lost.
  neuroevo_set_threads(1);
  return 0;
}
