// Floating-point control modes: TensorFlow's threads flush denormals to zero, and results must not depend on the
// thread.
#ifndef NEUROEVO_CORE_FLOATING_POINT_H_
#define NEUROEVO_CORE_FLOATING_POINT_H_

#ifdef __x86_64__
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace neuroevo {

// Scope guard: sets this thread's floating-point modes to the defaults and restores the previous ones at scope exit.
class DefaultFloatingPoint {
 public:
#ifdef __x86_64__
  // <cfenv> would take half a microsecond, since it also sets the registers of long double.
  DefaultFloatingPoint() { _mm_setcsr(kDefault); }
  ~DefaultFloatingPoint() { _mm_setcsr(before_); }
#else
  DefaultFloatingPoint() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatingPoint() { std::fesetenv(&before_); }
#endif
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
#ifdef __x86_64__
  static constexpr unsigned kDefault = 0x1f80;  // round to nearest, keep denormals, no traps
  const unsigned before_ = _mm_getcsr();
#else
  std::fenv_t before_;
#endif
};

}  // namespace neuroevo

#endif  // NEUROEVO_CORE_FLOATING_POINT_H_
